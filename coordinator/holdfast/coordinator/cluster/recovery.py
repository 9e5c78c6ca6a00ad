"""What a cluster does first after a restore, or after the loss of its majority (S13).

Indexes are counted again from the position that was kept, so tokens would repeat, and a store could
not tell the new owners from those of the time that was lost. One event lifts all tokens above them.
Members from before it are removed by the node that leads (`queries.groups_to_clear`): what they
hold was granted in a past that has gone on without them. Pure; that a disk was restored is told by
the command.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.coordinator.model.events import LevelRaised, RecoveryNumberRaised
from holdfast.coordinator.model.levels import SINCE

if TYPE_CHECKING:
    from holdfast.coordinator.groups.draft import Draft
    from holdfast.coordinator.model.commands import RaiseRecoveryNumber


def raise_number(draft: Draft, command: RaiseRecoveryNumber) -> None:
    """Raise the number once, and the level before it if that does not hold such an event.

    Nobody is asked about the level: the version that restores is the one that writes the event, and
    a node of an older one has no place in the cluster before it was told of the restore.
    """
    state = draft.state
    if command.number <= state.recovery_number:
        return
    needed = SINCE[RecoveryNumberRaised]
    if state.level < needed:
        draft.emit(LevelRaised(needed), "S13")
    draft.emit(RecoveryNumberRaised(command.number, command.kept), "S13")
