"""What a classic group keeps beside what every group keeps: its body, and its members.

Only this room reads it, and the tests; all others ask the table (`groups.group_type`). Immutable
values. Durations are milliseconds; times are log time in milliseconds (S8).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from holdfast.coordinator.model.ids import InstanceId, MemberId, RequestId
from holdfast.coordinator.model.member_profile import MemberProfile
from holdfast.coordinator.model.pmap import PMap
from holdfast.coordinator.model.state import Group


class Member(NamedTuple):
    """One member. `instance_id` makes it static (KIP-345).

    `joined_seq`: the group_seq of its joining, the order that breaks ties; a swap keeps it.
    `granted_index`: entry of the event that last granted its assignment (S13), 0 before the first.
    `released`: its id is fenced by a planned restart (S12). `predecessor_ms`: how long an older
    holder may still act on the present grant (S12). `request_id`: of the join last served (S14).
    `since_ms`: log time at which this member id took its place. `abandoned`: what it held until its
    assignment was abandoned (K-D10), until the next one: it counts like an assignment (S23), and
    projections tell by it what moved.
    `replaced_requests`: of the joins whose members this one has replaced, the last ones (S14).
    """

    member_id: MemberId
    instance_id: InstanceId | None
    profile: MemberProfile
    request_id: RequestId
    joined_seq: int
    since_ms: int
    assignment: bytes = b""
    granted_index: int = 0
    predecessor_ms: int = 0
    released: bool = False
    abandoned: bytes = b""
    replaced_requests: tuple[RequestId, ...] = ()


class ClassicBody(NamedTuple):
    """The body of a classic group.

    `protocol_type`: None: it never had members. `initial`: the open join phase began from Empty
    (K-D4). `round_timeout_ms`: how long it may last. `rejoined`: until the assignment is stored,
    who was answered when the generation began (S16). `predecessors_until_ms`: until when, in log
    time, a member that was replaced or removed may still act on an old grant (S12). Ids of replaced
    members are not kept: an unknown id is simply unknown, an instance id tells whom it belongs to
    now.
    """

    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: MemberId | None = None
    members: PMap[MemberId, Member] = PMap()
    instances: PMap[InstanceId, MemberId] = PMap()
    rejoined: tuple[MemberId, ...] = ()
    initial: bool = False
    round_timeout_ms: int = 0
    predecessors_until_ms: int = 0

    def is_leader(self, member_id: MemberId) -> bool:
        """Whether this member assigns in the present generation."""
        return self.leader == member_id


ClassicGroup: TypeAlias = Group[ClassicBody]


def restored(body: ClassicBody, members: Iterable[Member]) -> ClassicBody:
    """A body with these members, and with the instances that they are."""
    every = tuple(members)
    return body._replace(
        members=PMap((member.member_id, member) for member in every),
        instances=PMap((m.instance_id, m.member_id) for m in every if m.instance_id),
    )
