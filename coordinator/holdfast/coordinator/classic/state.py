"""The body of a classic group, which it has beside the head of every group; and its members.

Only this room and the tests read it; all others ask the table (`groups.group_type`). Immutable
values. Durations are milliseconds; times are log time in milliseconds (S8).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from holdfast.coordinator.model.ids import InstanceId, Life, MemberId, Principal, RequestId
from holdfast.coordinator.model.member_profile import MemberProfile
from holdfast.coordinator.model.state import Group
from holdfast.coordinator.structures.pmap import PMap


class Member(NamedTuple):
    """One member."""

    member_id: MemberId
    instance_id: InstanceId | None
    """Makes it static (KIP-345)."""
    profile: MemberProfile
    request_id: RequestId
    """The request id of the join last served (S14)."""
    joined_seq: int
    """The group_seq of its joining, the order that breaks ties; a swap keeps it."""
    since_ms: int
    """The log time at which this member id took its place."""
    assignment: bytes = b""
    granted_index: int = 0
    """The entry of the event that last granted its assignment (S13); 0 before the first."""
    predecessor_ms: int = 0
    """How long an older holder may still act on the present grant (S12)."""
    released: bool = False
    """Its id is fenced by a planned restart (S12)."""
    abandoned: bytes = b""
    """The assignment that it held until that was abandoned (K-D10), kept until the next one. It
    counts like an assignment (S23), and projections find by it what moved."""
    replaced_requests: tuple[RequestId, ...] = ()
    """The last request ids of joins whose members this one has replaced (S14)."""
    principal: Principal = ""
    """The principal that joined, whose instance id it is; "" if it joined at level 1."""
    replaced_life: Life = ""
    """The newest life of those that had its instance before it, while the group was one of the
    heartbeat protocol (S12); "": none told one."""


class ClassicBody(NamedTuple):
    """The body of a classic group.

    Ids of replaced members are not kept: an unknown id is simply unknown, and an instance id leads
    to the member that it belongs to now.
    """

    protocol_type: str | None = None
    """None: it never had members."""
    protocol_name: str | None = None
    leader: MemberId | None = None
    members: PMap[MemberId, Member] = PMap()
    instances: PMap[InstanceId, MemberId] = PMap()
    rejoined: tuple[MemberId, ...] = ()
    """The members answered when the generation began, until the assignment is stored (S16)."""
    initial: bool = False
    """The open join phase began from Empty (K-D4)."""
    round_timeout_ms: int = 0
    """How long the open join phase may last."""
    predecessors_until_ms: int = 0
    """Until when, in log time, a replaced or removed member may still act on an old grant (S12)."""

    def is_leader(self, member_id: MemberId) -> bool:
        """Return whether this member assigns in the present generation."""
        return self.leader == member_id


ClassicGroup: TypeAlias = Group[ClassicBody]


def restored(body: ClassicBody, members: Iterable[Member]) -> ClassicBody:
    """Return the body with these members, and with the instances that they are."""
    every = tuple(members)
    return body._replace(
        members=PMap((member.member_id, member) for member in every),
        instances=PMap((m.instance_id, m.member_id) for m in every if m.instance_id),
    )
