"""The demo's group as an operator is told of it, in the words of its members' protocol.

One way to ask for each protocol, and one value that comes of both. Knows no phase and no process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, TypedDict

from demo import job
from holdfast.client import GroupNotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.client.sync import Admin
    from holdfast.v1.admin_pb2 import ConsumerGroupDescribedMember, DescribedGroupMember


class Group(NamedTuple):
    """What a description comes to."""

    state: str
    number: int
    """The generation, or the epoch."""
    members: int
    tokens: Mapping[int, int]
    """The token of each partition that somebody owns."""


NOBODY: Final = Group("Dead", -1, 0, {})


class Timeouts(TypedDict, total=False):
    """What a member says of its timeouts, in milliseconds; the others are the group's."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    rebalance_timeout_ms: int


class Protocol(NamedTuple):
    """What differs between the two protocols."""

    name: str
    """As `Member(protocol=)` has it."""
    changes: str
    """What one change of the group is called, in the plural."""
    ask: Callable[[Admin], Group]
    timeouts: Timeouts
    settings: Mapping[str, int]
    """What the cluster is started with."""


SESSION_MS: Final = 10_000
HEARTBEAT_MS: Final = 1_000
REBALANCE_MS: Final = 15_000
INITIAL_DELAY_MS: Final = 1_000


def _classic(admin: Admin) -> Group:
    try:
        described = admin.describe_groups(job.GROUP)[job.GROUP]
    except GroupNotFound:
        return NOBODY
    tokens = dict(pair for member in described.members for pair in _granted(member))
    number = described.holdfast.generation_id
    return Group(described.group_state, number, len(described.members), tokens)


def _granted(member: DescribedGroupMember) -> Iterator[tuple[int, int]]:
    """One grant gives all partitions of a member."""
    for topic in member.holdfast.assigned_partitions:
        yield from ((number, member.holdfast.fencing_token) for number in topic.partitions)


def _consumer(admin: Admin) -> Group:
    try:
        described = admin.consumer_group_describe(job.GROUP)[job.GROUP]
    except GroupNotFound:
        return NOBODY
    tokens = dict(pair for member in described.members for pair in _owned(member))
    return Group(described.group_state, described.group_epoch, len(described.members), tokens)


def _owned(member: ConsumerGroupDescribedMember) -> Iterator[tuple[int, int]]:
    """Each partition keeps the token of its own grant."""
    for topic in member.holdfast.partition_tokens:
        yield from zip(topic.partitions, topic.fencing_tokens, strict=True)


CLASSIC: Final = Protocol(
    "classic",
    "rebalances",
    _classic,
    timeouts={
        "session_timeout_ms": SESSION_MS,
        "heartbeat_interval_ms": HEARTBEAT_MS,
        "rebalance_timeout_ms": REBALANCE_MS,
    },
    settings={"group.initial_rebalance_delay_ms": INITIAL_DELAY_MS},
)
CONSUMER: Final = Protocol(
    "consumer",
    "epochs",
    _consumer,
    timeouts={"rebalance_timeout_ms": REBALANCE_MS},
    settings={
        "group.consumer_min_session_timeout_ms": SESSION_MS,
        "group.consumer_session_timeout_ms": SESSION_MS,
        "group.consumer_min_heartbeat_interval_ms": HEARTBEAT_MS,
        "group.consumer_heartbeat_interval_ms": HEARTBEAT_MS,
    },
)
PROTOCOLS: Final = {each.name: each for each in (CLASSIC, CONSUMER)}
