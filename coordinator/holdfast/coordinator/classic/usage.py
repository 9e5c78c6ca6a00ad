"""The size of a classic member, and what its calls enlarge (S7, S23). Decides nothing.

The bytes are estimates, as in `groups.usage`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.coordinator.groups.usage import MEMBER_BYTES, of_text, of_texts
from holdfast.coordinator.model.commands import JoinGroup, SyncGroup
from holdfast.coordinator.model.usage import MORE, NEW, SAME, Growth

if TYPE_CHECKING:
    from holdfast.coordinator.classic.state import ClassicGroup, Member
    from holdfast.coordinator.model.member_profile import Protocol

PROTOCOL_BYTES: Final = 150


def of_member(member: Member) -> int:
    """Return about how many bytes a member takes."""
    held = len(member.assignment) + len(member.abandoned)
    return MEMBER_BYTES + held + of_protocols(member.profile.protocols)


def of_protocols(protocols: tuple[Protocol, ...]) -> int:
    """Return about how many bytes a member's protocols take."""
    return sum(
        PROTOCOL_BYTES + of_text(each.name) + len(each.metadata) + of_texts(each.topics or ())
        for each in protocols
    )


def growth(
    before: ClassicGroup | None, after: ClassicGroup | None, command: JoinGroup | SyncGroup
) -> Growth:
    """Return what a join or a sync that enlarged the state has enlarged.

    A member may always come back with no more than it had, and a leader may always assign no more
    than it did the last time.
    """
    match command:
        case JoinGroup():
            return _growth_by_join(before, command)
        case SyncGroup():
            return MORE if _assigned(after) > _assigned(before) else SAME


def _growth_by_join(before: ClassicGroup | None, command: JoinGroup) -> Growth:
    if before is None:
        return NEW
    holder = command.member_id or before.body.instances.get(command.instance_id or "", "")
    member = before.body.members.get(holder)
    if member is None:
        return NEW  # it is handed an id, or was handed its id and becomes a member now
    known = of_protocols(member.profile.protocols)
    return MORE if of_protocols(command.protocols) > known else SAME


def _assigned(group: ClassicGroup | None) -> int:
    """Return the bytes of the members' assignments, abandoned ones included (K-D10)."""
    members = group.body.members.values() if group else ()
    return sum(len(each.assignment) + len(each.abandoned) for each in members)
