"""What is remembered of groups' rebalances so that people can be told; values, and what they weigh.

A projection: `rebalances` folds it from the event log beside the state. Nothing is ever decided on
it, so it is neither in the state nor in its digest (S3). Nodes have the same, but nobody compares
it. Knows no events. Times are log time in milliseconds (S8).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from holdfast.coordinator.model.ids import (
    GroupId,
    InstanceId,
    MemberId,
    Position,
    Principal,
    TopicName,
)
from holdfast.coordinator.model.pmap import PMap

if TYPE_CHECKING:
    from collections.abc import Iterable

_REBALANCE_BYTES: Final = 1_000
_LISTED_BYTES: Final = 100
"""One name in a list, beside its text."""
_SIGN_BYTES_MAX: Final = 4


class Change(NamedTuple):
    """Who came or went in a rebalance, by name: the instance id, else the member id.

    `how`: `joined`, `left`, `removed` (by an operator), `expired`, or `refused` (K-I10).
    """

    name: str
    how: str


class Move(NamedTuple):
    """A partition whose owner is another one; "" is nobody, or one who is not known any more."""

    topic: TopicName
    partition: int
    before: str
    after: str


class Parted(NamedTuple):
    """Who went since the last assignment, and what it had been given by it."""

    name: str
    assignment: bytes


class Rebalance(NamedTuple):
    """One rebalance, for people: why, who caused it, when, and what came of it.

    It is bounded whatever the group's size: of everything that is listed the first few are, and the
    rest is counted. `number`: in the group's life, from 1.
    `generation` and `closed_ms` are 0 while the join phase is open, `assigned_ms` until the
    assignment is stored.

    `members`: before it. `came`, `went`: how many. `reassigned`: members whose assignment is not
    the one before. `moved`: partitions with an owner before and another one after; `given`: with
    one only after; `dropped`: with one only before. They are counted for protocol type `consumer`
    only, whose bytes can be read, and only if `counted`. `parted` is there until the assignment.
    """

    number: int
    reason: str
    member_id: MemberId
    at: Position
    log_time_ms: int
    wall_time_ms: int = 0
    rule: str = ""
    command: str = ""
    principal: Principal = ""
    instance_id: InstanceId | None = None
    client_id: str = ""
    members: int = 0
    from_generation: int = 0
    generation: int = 0
    closed_ms: int = 0
    assigned_ms: int = 0
    came: int = 0
    went: int = 0
    changes: tuple[Change, ...] = ()
    reassigned: int = 0
    reassigned_names: tuple[str, ...] = ()
    moved: int = 0
    given: int = 0
    dropped: int = 0
    moves: tuple[Move, ...] = ()
    counted: bool = False
    parted: tuple[Parted, ...] = ()


History: TypeAlias = tuple[Rebalance, ...]
"""The last rebalances of one group, the newest last; it may be under way."""

Histories: TypeAlias = PMap[GroupId, History]
"""By group; a group without rebalances has none."""


def newest(histories: Histories, group_id: GroupId, most: int) -> History:
    """At most so many rebalances of a group, the newest first."""
    return histories.get(group_id, ())[::-1][:most]


def weight(told: Rebalance) -> int:
    """About how many bytes of memory a rebalance takes up, measured as `model.usage` measures."""
    names = [change.name for change in told.changes]
    names += told.reassigned_names
    for move in told.moves:
        names += (move.topic, move.before, move.after)
    parted = sum(len(each.assignment) for each in told.parted)
    names += (each.name for each in told.parted)
    return _REBALANCE_BYTES + _text(told.reason) + _texts(names) + parted


def _texts(texts: Iterable[str]) -> int:
    return sum(_LISTED_BYTES + _text(text) for text in texts)


def _text(text: str) -> int:
    return len(text) if text.isascii() else _SIGN_BYTES_MAX * len(text)
