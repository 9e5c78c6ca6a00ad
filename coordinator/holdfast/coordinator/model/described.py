"""How a type of group describes its groups and members, for people and tools. Plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from holdfast.coordinator.model.ids import InstanceId, MemberId, Principal
from holdfast.coordinator.model.member_profile import MemberProfile


class DescribedBody(NamedTuple):
    """What DescribeGroups has of a group's own type; "" for what the type does not know."""

    protocol_type: str = ""
    protocol_data: str = ""
    """The protocol whose data is shown; "" while there is none (K-K2)."""
    leader: MemberId = ""


class Identity(NamedTuple):
    """Who a member is to people."""

    member_id: MemberId
    instance_id: InstanceId | None
    client_id: str
    """What its process calls itself."""

    @property
    def name(self) -> str:
        """What people know it by, and what outlives a swap: its instance id, else its id."""
        return self.member_id if self.instance_id is None else self.instance_id


@dataclass(frozen=True, slots=True)
class DescribedMember:
    """One member of a described group."""

    member_id: MemberId
    instance_id: InstanceId | None
    profile: MemberProfile
    metadata: bytes
    """That of the chosen protocol; empty unless the group is Stable (K-K2)."""
    assignment: bytes
    """The last one that was given out and not abandoned (K-K2, K-D10)."""
    fencing_token: int | None
    """None before the first grant."""
    released: bool
    since_ms: int
    principal: Principal = ""
    """The principal that joined, whose instance id it is; "" if it joined at level 1."""
