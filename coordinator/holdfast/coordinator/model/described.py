"""What a type of group tells of its groups and members, for people and tools. Plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from holdfast.coordinator.model.ids import InstanceId, MemberId
from holdfast.coordinator.model.member_profile import MemberProfile


class DescribedBody(NamedTuple):
    """What DescribeGroups has of a group's own type; "" for what the type does not know."""

    protocol_type: str = ""
    protocol_data: str = ""
    """The protocol whose data is shown; "" while there is none (K-K2)."""
    leader: MemberId = ""


@dataclass(frozen=True, slots=True)
class DescribedMember:
    """One member of a described group.

    `metadata` is that of the chosen protocol, and empty unless the group is Stable (K-K2).
    `assignment` is the last one that was handed out and not abandoned (K-K2, K-D10).
    `fencing_token` is None before the first grant.
    """

    member_id: MemberId
    instance_id: InstanceId | None
    profile: MemberProfile
    metadata: bytes
    assignment: bytes
    fencing_token: int | None
    released: bool
    since_ms: int
