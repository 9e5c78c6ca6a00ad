"""The history of groups' rebalances, for people; values, and the memory that they take.

A projection: `rebalances` builds it from the event log beside the state. Nothing is ever decided on
it, so it is neither in the state nor in its digest (S3). It is the same on all nodes, but they do
not compare it. Knows no events. Times are log time in milliseconds (S8).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, TypeVar

from holdfast.coordinator.groups.usage import SIGN_BYTES_MAX, of_text, of_texts
from holdfast.coordinator.model.ids import (
    GroupId,
    InstanceId,
    MemberId,
    Position,
    Principal,
    TopicName,
)
from holdfast.coordinator.structures.pmap import PMap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")

_REBALANCE_BYTES: Final = 1_000

TEXT_BYTES_MAX: Final = 249
"""What a text in a history may take: Kafka's longest topic name, as long as an instance id."""
REASON_BYTES_MAX: Final = 255 * SIGN_BYTES_MAX
"""What a reason may take: as long as the service takes one, whole in every script."""
_GAP: Final = "..."
_END: Final = 36
"""Characters kept of the end of a cut text: a member id ends with what tells it from others."""


class Change(NamedTuple):
    """A member that came or went in a rebalance."""

    name: str
    """Its instance id, else its member id."""
    how: str
    """`joined`, `left`, `removed` (by an operator), `expired`, or `refused` (K-I10)."""


class Move(NamedTuple):
    """A partition whose owner changed."""

    topic: TopicName
    partition: int
    before: str
    """The owner's name; "": none, or one that is not known any more."""
    after: str


class Parted(NamedTuple):
    """A member that left since the last assignment."""

    name: str
    assignment: bytes
    """The assignment that it had."""


class Rebalance(NamedTuple):
    """One rebalance, for people: its reason, its cause, its times and its effects.

    Its size is bounded whatever the group's size and its names: lists have only their first few
    items, the rest is counted; long texts are cut in the middle (`cut`). Moves are counted for
    protocol type `consumer` only, whose bytes can be read.
    """

    number: int
    """Its number in the group's life, from 1."""
    reason: str
    member_id: MemberId
    """The member that caused it; "" for none."""
    at: Position
    log_time_ms: int
    wall_time_ms: int = 0
    rule: str = ""
    command: str = ""
    principal: Principal = ""
    instance_id: InstanceId | None = None
    client_id: str = ""
    members: int = 0
    """How many members there were before it."""
    from_generation: int = 0
    generation: int = 0
    """0 while the join phase is open."""
    closed_ms: int = 0
    """0 while the join phase is open."""
    assigned_ms: int = 0
    """0 until the assignment is stored."""
    came: int = 0
    """How many members came."""
    went: int = 0
    """How many members went."""
    changes: tuple[Change, ...] = ()
    reassigned: int = 0
    """How many members have another assignment than before."""
    reassigned_names: tuple[str, ...] = ()
    moved: int = 0
    """How many partitions had an owner before and have another one."""
    given: int = 0
    """How many partitions have an owner and had none before."""
    dropped: int = 0
    """How many partitions had an owner before and have none."""
    moves: tuple[Move, ...] = ()
    counted: bool = False
    """Whether the moves were counted."""
    parted: tuple[Parted, ...] = ()
    """Kept until the assignment is stored."""
    on_the_way: int = 0
    """Of an epoch: how many members do not own yet what they are to own."""
    relieved: int = 0
    """Of an epoch: how many times a member was asked for its target and has not made it."""
    problem: str = ""
    """The name of the last one, and what it says of that; "": none says anything."""


History: TypeAlias = tuple[Rebalance, ...]
"""The last rebalances of one group, the newest last; it may be under way."""

Histories: TypeAlias = PMap[GroupId, History]
"""By group; a group without rebalances has none."""


def newest(histories: Histories, group_id: GroupId, most: int) -> History:
    """Return at most so many rebalances of a group, the newest first."""
    return histories.get(group_id, ())[::-1][:most]


def epochs(histories: Histories, group_id: GroupId, most: int) -> History:
    """Return at most so many epochs of a group, the newest first.

    What the group's newest record says may wait for an epoch, and is none without.
    """
    told = histories.get(group_id, ())
    return tuple(each for each in told if each.generation)[::-1][:most]


def cut(text: str, bytes_max: int = TEXT_BYTES_MAX) -> str:
    """Return a text of at most `bytes_max`, measured as in `weight`: its begin and its end."""
    most = bytes_max if text.isascii() else bytes_max // SIGN_BYTES_MAX
    if len(text) <= most:
        return text
    return text[: most - len(_GAP) - _END] + _GAP + text[-_END:]


def weight(told: Rebalance) -> int:
    """Return about how many bytes of memory a rebalance takes, measured as in `groups.usage`."""
    texts = (
        told.reason,
        told.member_id,
        told.rule,
        told.command,
        told.principal,
        told.instance_id or "",
        told.client_id,
        told.problem,
    )
    size = _REBALANCE_BYTES + sum(map(of_text, texts)) + of_texts(told.reassigned_names)
    size += sum(map(of_texts, told.changes)) + sum(map(weight_of_move, told.moves))
    return size + sum(map(weight_of_parted, told.parted))


def weight_of_move(move: Move) -> int:
    """Return the bytes of a move."""
    return of_texts((move.topic, move.before, move.after))


def weight_of_parted(parted: Parted) -> int:
    """Return the bytes of a member that left."""
    return of_texts((parted.name,)) + len(parted.assignment)


def fitting(items: Iterable[T], weigh: Callable[[T], int], room: int) -> tuple[T, ...]:
    """Return the first items, as many as together weigh no more than there is room for."""
    found: list[T] = []
    for item in items:
        room -= weigh(item)
        if room < 0:
            break
        found.append(item)
    return tuple(found)
