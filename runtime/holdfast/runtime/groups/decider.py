"""Has the rules decide the commands of one group; a defect in a rule fails one command alone (S6).

Pure but for the alarm, and for the moments of calls that are traced. Knows no rules.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from holdfast.coordinator.kernel.decide import decide, decide_all
from holdfast.runtime.errors import RuleBroken
from holdfast.runtime.groups.batch import call_of, told
from holdfast.runtime.groups.moments import DECIDED, TAKEN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.coordinator.model.commands import Command
    from holdfast.coordinator.model.effects import Decision
    from holdfast.coordinator.model.ids import GroupId
    from holdfast.coordinator.model.state import State
    from holdfast.coordinator.model.volatile import Volatile
    from holdfast.runtime.groups.batch import Batch
    from holdfast.runtime.groups.desk import Desk

logger = logging.getLogger(__name__)


class Decider:
    """Decides for one group."""

    def __init__(self, group_id: GroupId, desk: Desk) -> None:
        self._group_id, self._desk = group_id, desk

    def alone(self, state: State, volatile: Volatile, command: Command) -> Decision | None:
        """Decide a command; None: a rule has a defect, and the call has failed."""
        self._note((command,), TAKEN)
        try:
            decision = decide(state, volatile, command, self._desk.log_time_ms, self._desk.used())
        except Exception as error:
            logger.critical(
                "alarm: deciding %s for group %r failed; nothing was changed",
                type(command).__name__,
                self._group_id,
                exc_info=True,
                extra=told([command]),
            )
            self._desk.calls.fail(call_of(command), RuleBroken(repr(error)))
            return None
        self._note((command,), DECIDED)
        return decision

    def together(self, batch: Batch, commands: Sequence[Command]) -> Decision | None:
        """Decide commands in one go, on what a batch has decided; None: it failed for one of them.

        Which one, and for which calls, `alone` finds.
        """
        self._note(commands, TAKEN)
        now_ms, used = self._desk.log_time_ms, self._desk.used()
        group_id = self._group_id
        try:
            decision = decide_all(batch.state, batch.volatile, group_id, commands, now_ms, used)
        except Exception:
            logger.exception("group %r: %d commands are decided alone", group_id, len(commands))
            return None
        self._note(commands, DECIDED)
        return decision

    def _note(self, commands: Sequence[Command], name: str) -> None:
        """Note a moment of those calls that are traced."""
        calls = self._desk.calls
        if calls.traced:
            calls.note(map(call_of, commands), name)
