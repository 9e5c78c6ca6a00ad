"""The level in force is raised, by an operator who ends an upgrade. It is never lowered (ADR 26).

Which nodes there are and what they can run is not in the state: the server looks at that before it
makes the command. Knows nothing of nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.events import LevelRaised
from holdfast.coordinator.model.levels import LEVEL_MAX
from holdfast.coordinator.model.rejections import InvalidRequest
from holdfast.coordinator.model.replies import DoneReply

if TYPE_CHECKING:
    from holdfast.coordinator.groups.draft import Draft
    from holdfast.coordinator.model.commands import RaiseLevel


def raise_level(draft: Draft, command: RaiseLevel) -> DoneReply:
    """Raise the level, unless it is as high already.

    A repeated request does not come here: it gets its first answer, whatever the nodes do since.
    Raises InvariantBroken for a level at which this node itself could not run.
    """
    if command.level > LEVEL_MAX:
        raise InvariantBroken("S3", f"level {command.level} is unknown here, {LEVEL_MAX} is newest")
    if command.problem:
        return DoneReply(InvalidRequest("level", command.problem))
    if command.level > draft.state.level:
        draft.emit(LevelRaised(command.level), "S3")
    return DoneReply(None)
