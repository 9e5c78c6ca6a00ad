"""What the stories of rebalances and of epochs have in common: their bounds, and how they grow.

Values in, values out; knows no event and no type of group.
"""

from __future__ import annotations

from heapq import nsmallest
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from holdfast.coordinator.groups.usage import REBALANCES_MAX, of_texts
from holdfast.coordinator.model.membership import (
    EXPIRED,
    LATE,
    LEFT,
    REFUSED,
    REMOVED,
    REPLACED,
)
from holdfast.coordinator.projections.history import (
    Change,
    Move,
    cut,
    fitting,
    weight,
    weight_of_move,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from holdfast.coordinator.model.ids import TopicPartition
    from holdfast.coordinator.projections.history import History, Rebalance

KEPT_MAX: Final = REBALANCES_MAX
"""Rebalances, or epochs, of a group that are told of."""
REBALANCE_BYTES_MAX: Final = 24_000
"""What one rebalance may weigh, the one under way, too: with long names less is listed of it."""
HISTORY_BYTES_MAX: Final = KEPT_MAX * REBALANCE_BYTES_MAX
"""What all rebalances of a group may weigh."""
LISTED_MAX: Final = 32
"""Members, moves and names that are listed of one rebalance."""
CHANGES_BYTES_MAX: Final = 7_000
"""What the listed members that came or went may weigh."""
NAMES_BYTES_MAX: Final = 5_000
"""What the names of members that have another assignment may weigh; moves get what is left."""
PARTED_MAX: Final = 64
PARTED_BYTES_MAX: Final = 12_000
"""What members that went may weigh with their assignments, kept until the next assignment."""

DEPARTURES: Final[Mapping[str, str | None]] = {
    LEFT: "left",
    REMOVED: "removed",
    EXPIRED: "expired",
    REFUSED: "refused",
    LATE: "expired",
    REPLACED: None,  # the static member stays
}
"""How a member went, in the words of `Change`."""


def kept(history: History) -> History:
    """Return the newest finished rebalances: not too many, with room for the one that begins.

    Earlier versions stored larger ones, of which fewer are kept.
    """
    total = REBALANCE_BYTES_MAX
    for count, told in enumerate(reversed(history)):
        total += weight(told)
        if count == KEPT_MAX - 1 or total > HISTORY_BYTES_MAX:
            return history[len(history) - count :]
    return history


def with_last(history: History, last: Rebalance) -> History:
    """Return the history with its last rebalance replaced."""
    return (*history[:-1], last)


def listed(last: Rebalance, names: Iterable[str], how: str) -> tuple[Change, ...]:
    """Return the changes that are listed, with these members behind them while there is room."""
    if len(last.changes) >= LISTED_MAX:
        return last.changes
    known = chain(last.changes, (Change(cut(name), how) for name in names))
    return fitting(islice(known, LISTED_MAX), of_texts, CHANGES_BYTES_MAX)


def with_moves(
    told: Rebalance, owned: Mapping[TopicPartition, str], owns: Mapping[TopicPartition, str]
) -> Rebalance:
    """Return it with what moved, by the owner of each partition before and after."""
    known = owned.keys() | owns.keys()
    differing = [place for place in known if owned.get(place) != owns.get(place)]
    moves = [
        Move(cut(place.topic), place.partition, cut(owned.get(place, "")), cut(owns.get(place, "")))
        for place in nsmallest(LISTED_MAX, differing)
    ]
    room = REBALANCE_BYTES_MAX - weight(told)
    given = sum(place not in owned for place in differing)
    dropped = sum(place not in owns for place in differing)
    return told._replace(
        moved=len(differing) - given - dropped,
        given=given,
        dropped=dropped,
        moves=fitting(moves, weight_of_move, room),
        counted=True,
    )
