"""Groups as a whole: which ids they may have, and deleting them (K-I6, K-K10 to K-K13).

Knows nothing of members' lives; those are their type's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.coordinator.model.events import QUARANTINE_ENDED, GroupDeleted
from holdfast.coordinator.model.rejections import GroupIdNotFound, InvalidGroupId, NonEmptyGroup
from holdfast.coordinator.model.replies import NamedReply, NamedResult
from holdfast.coordinator.structures.pmap import PMap

if TYPE_CHECKING:
    from holdfast.coordinator.groups.draft import Draft
    from holdfast.coordinator.model.commands import DeleteGroup
    from holdfast.coordinator.model.ids import GroupId
    from holdfast.coordinator.model.rejections import Rejection

GROUP_ID_LENGTH_MAX: Final = 512
"""Characters. Kafka has no limit but that of a request; ours keeps keys of the store in bounds."""

_DELETE: Final = 0x7F
_SPACE: Final = 0x20


def invalid_group_id(group_id: GroupId) -> InvalidGroupId | None:
    """Say why a group cannot have this id; None if it can.

    The empty id is refused for everything that writes, also where Kafka lets very old tools commit
    with it (K-I7): in the log it names the cluster's own part.
    """
    if not group_id:
        return InvalidGroupId(group_id, "it is empty")
    if len(group_id) > GROUP_ID_LENGTH_MAX:
        problem = f"it has {len(group_id)} characters, {GROUP_ID_LENGTH_MAX} are allowed"
        return InvalidGroupId(group_id[:GROUP_ID_LENGTH_MAX], problem)
    if not group_id.isprintable() and any(
        ord(sign) < _SPACE or ord(sign) == _DELETE for sign in group_id
    ):
        return InvalidGroupId(group_id, "it has control characters")
    return None


def delete(draft: Draft, command: DeleteGroup) -> NamedReply:
    """Delete a group that has no members, with its offsets (K-K10); else refuse (K-K12, K-K13).

    Deleting is also how an operator ends a quarantine, members or not (S6).
    """
    error = _not_deletable(draft)
    if error is None:
        delete_empty(draft, QUARANTINE_ENDED if _is_quarantined(draft) else "K10")
    return NamedReply((NamedResult(command.group_id, error),))


def _is_quarantined(draft: Draft) -> bool:
    return draft.found is not None and bool(draft.found.quarantined)


def _not_deletable(draft: Draft) -> Rejection | None:
    group = draft.found
    if group is None:
        return GroupIdNotFound(draft.group_id)
    if draft.group_type.is_empty(group) or group.quarantined:
        return None
    return NonEmptyGroup(len(draft.group_type.members(group)))


def delete_empty(draft: Draft, rule: str) -> None:
    """Delete a group that may be deleted; member ids that were given out for it end."""
    for key in tuple(draft.volatile.armed):
        draft.cancel(key)
    draft.volatile = draft.volatile._replace(pending=PMap(), offered=PMap())
    draft.emit(GroupDeleted(), rule)
