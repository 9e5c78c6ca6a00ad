"""How a type of group describes its groups and members, for people and tools. Plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from holdfast.coordinator.model.ids import (
    GroupId,
    InstanceId,
    MemberId,
    Principal,
    TopicName,
    TopicPartitions,
)
from holdfast.coordinator.model.member_profile import ClientAssignor, MemberProfile
from holdfast.coordinator.model.rejections import Rejection
from holdfast.coordinator.model.replies import OwnedPartition


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


@dataclass(frozen=True, slots=True)
class DescribedConsumerMember:
    """One member of a described group of the heartbeat protocol; partitions are sorted."""

    member_id: MemberId
    instance_id: InstanceId | None
    rack_id: str | None
    member_epoch: int
    """-2: its process has stopped, and its place is kept."""
    client_id: str
    client_host: str
    topics: tuple[TopicName, ...]
    """Those that it names."""
    regex: str
    """"": it has none."""
    assignment: tuple[TopicPartitions, ...]
    """What it owns, with what it has been asked to give up and still may own."""
    target: tuple[TopicPartitions, ...]
    state: str
    """`stable`, `unrevoked` or `unreleased`."""
    revoking: tuple[TopicPartitions, ...]
    """What it has been asked to give up and still may own."""
    owned: tuple[OwnedPartition, ...]
    """What it owns otherwise, with tokens (S13)."""
    principal: Principal
    rebalance_timeout_ms: int
    server_assignor: str
    """"": any."""
    classic: bool = False
    """It speaks the classic protocol."""
    should_compute: bool = False
    """It is the one to compute the target, by an assignor of its own (KIP-848)."""
    client_assignors: tuple[ClientAssignor, ...] = ()
    """Those that it can run, the most wanted first."""

    @property
    def released(self) -> bool:
        """Whether its process has stopped, and its place is kept."""
        return self.member_epoch == _RELEASED


_RELEASED: Final = -2


@dataclass(frozen=True, slots=True)
class DescribedConsumerGroup:
    """One described group of the heartbeat protocol (K-K5, K-K6); an error stands alone."""

    error: Rejection | None
    group_id: GroupId
    state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor: str = ""
    members: tuple[DescribedConsumerMember, ...] = ()
    passed_over: str = ""
    """The assignor that all members share, and for which the group is too large; "": none."""
    left_out: tuple[TopicPartitions, ...] = ()
    """Partitions that the newest target, of a member's assignor, gives to nobody (ADR 53, 7)."""


class PreparedMember(NamedTuple):
    """A member as the assignor of the chosen one sees it (KIP-848)."""

    member_id: MemberId
    member_epoch: int
    instance_id: InstanceId | None
    rack_id: str | None
    topics: tuple[TopicName, ...]
    """Those that it subscribes to, by name or by an expression, and that exist; sorted."""
    assignor: ClientAssignor
    """What it says for the assignor."""
    target: tuple[TopicPartitions, ...]
    """Until now."""


class PreparedAssignment(NamedTuple):
    """What an assignor that runs in a member needs: the group at one moment (KIP-848)."""

    group_epoch: int
    assignor: str
    version: int
    """The newest version of metadata that all members understand."""
    members: tuple[PreparedMember, ...]
    """In the order of joining."""
    topics: tuple[tuple[TopicName, int], ...]
    """How many partitions each topic has that a member subscribes to; sorted."""
    wanted: frozenset[TopicName] = frozenset()
    """All that members subscribe to, be there such a topic or not: who asks must be able to read
    these."""
