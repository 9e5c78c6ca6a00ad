"""Drive the table of deadlines by the node's clock; `deadline_dispatch` gets what fires (S9).

A stall of the process puts all deadlines off: meanwhile it could process no heartbeats.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from holdfast.runtime.time.clock import Watchdog, boot_ms
from holdfast.runtime.time.deadline_dispatch import DeadlineDispatch
from holdfast.runtime.time.deadline_table import DeadlineTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.coordinator.model.commands import DeadlineFired
    from holdfast.coordinator.model.effects import Effect, Renew
    from holdfast.coordinator.model.ids import GroupId
    from holdfast.coordinator.model.volatile import DeadlineKey
    from holdfast.runtime.ports import ReplicaLike
    from holdfast.runtime.time.deadline_dispatch import Heard

logger = logging.getLogger(__name__)

STALL_TOLD_MS: Final = 500
"""A stall from this length on is logged as a warning: the processor or the loop is overloaded."""


class Timers:
    """All deadlines of a leading node."""

    def __init__(
        self,
        replica: ReplicaLike,
        submit: Callable[[DeadlineFired], None],
        now_ms: Callable[[], int] = boot_ms,
        heard: Heard | None = None,
    ) -> None:
        """`heard`: waits until the arrived heartbeats of some members are processed (S9)."""
        self._now_ms = now_ms
        self._dispatch = DeadlineDispatch(replica, submit, now_ms, heard)
        self._deadlines = DeadlineTable()
        self._watchdog = Watchdog(self.stalled, now_ms)
        self._handle: asyncio.TimerHandle | None = None
        self._wake_ms = 0

    def start(self) -> None:
        """Start to measure stalls in the running loop."""
        self._watchdog.start()

    def stop(self) -> None:
        """Stop: nothing fires any more."""
        self._watchdog.stop()
        self.clear()

    def clear(self) -> None:
        """Drop all deadlines, and what fired and is not judged yet: the leadership is lost."""
        self._deadlines.clear()
        self._forget_wake()
        self._dispatch.clear()

    def carry_out(self, group_id: GroupId, effect: Effect) -> None:
        """Arm, cancel or renew a deadline."""
        self._deadlines.carry_out(group_id, effect, self._now_ms())
        self._plan()

    def renew(self, group_id: GroupId, renewal: Renew) -> None:
        """Renew a session."""
        if self._deadlines.renew(group_id, renewal, self._now_ms()):
            self._plan()

    def left_ms(self, group_id: GroupId, key: DeadlineKey) -> int | None:
        """Return the ms until a deadline fires; 0: it has fired; None: it does not run here."""
        if self._dispatch.holds(group_id, key):
            return 0
        at_ms = self._deadlines.at_ms(group_id, key)
        return None if at_ms is None else max(0, at_ms - self._now_ms())

    def _plan(self) -> None:
        """Schedule `wake` for the earliest deadline."""
        due_ms = self._deadlines.next_due_ms()
        if due_ms is None or (self._handle is not None and self._wake_ms <= due_ms):
            return
        self._forget_wake()
        self._wake_ms = due_ms
        delay = max(0, due_ms - self._now_ms()) / 1000
        self._handle = asyncio.get_running_loop().call_later(delay, self.wake)

    def _forget_wake(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def wake(self) -> None:
        """Dispatch the deadlines that are due."""
        self._handle = None
        self._watchdog.look()
        due = self._deadlines.due(self._now_ms())
        if due:
            self._dispatch.fire(due)
        self._plan()

    def stalled(self, for_ms: int) -> None:
        """Put all deadlines off after a stall, since nobody could be heard meanwhile (S9)."""
        level = logging.WARNING if for_ms >= STALL_TOLD_MS else logging.DEBUG
        logger.log(level, "the process stood still for %d ms; deadlines are put off", for_ms)
        self._deadlines.shift(for_ms)
        self._forget_wake()
        self._plan()
