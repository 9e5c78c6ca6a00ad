"""Sets of partitions with their grants: nothing is lost, doubled or out of order."""

from __future__ import annotations

import pytest

from holdfast.coordinator.consumer import holdings
from holdfast.coordinator.consumer.state import Holding
from holdfast.coordinator.model.errors import InvariantBroken
from unit.coordinator.consumer.talk import parts

HELD = (Holding("t", (0, 2, 5), (2, 3, 3), (10, 11, 12)), Holding("u", (1,), (2,), (10,)))


def test_what_is_taken_away_takes_its_grant_along() -> None:
    left = holdings.without(HELD, (*parts("t2"), *parts("u1", "x9"), *parts("t5")))

    assert left == (Holding("t", (0,), (2,), (10,)),)


def test_what_is_picked_keeps_its_grant() -> None:
    assert holdings.only(HELD, parts("t0", "t5")) == (Holding("t", (0, 5), (2, 3), (10, 12)),)
    with pytest.raises(InvariantBroken):
        holdings.only(HELD, parts("t0", "t1"))
    with pytest.raises(InvariantBroken):
        holdings.only(HELD, parts("x0"))


def test_what_is_joined_is_sorted_by_topic_and_partition() -> None:
    more = holdings.granted(parts("t1", "a0"), 4, 20)

    assert holdings.joined(HELD, more) == (
        Holding("a", (0,), (4,), (20,)),
        Holding("t", (0, 1, 2, 5), (2, 4, 3, 3), (10, 20, 11, 12)),
        Holding("u", (1,), (2,), (10,)),
    )


def test_a_new_token_leaves_the_epoch_and_a_new_epoch_the_token() -> None:
    """S13, and K-J41."""
    assert holdings.regranted(HELD, 30)[0] == Holding("t", (0, 2, 5), (2, 3, 3), (30, 30, 30))
    assert holdings.with_epoch(HELD, 0)[0] == Holding("t", (0, 2, 5), (0, 0, 0), (10, 11, 12))


def test_grants_are_told_by_partition() -> None:
    assert holdings.grants(HELD)["t", 2] == (3, 11)
    assert holdings.pairs(HELD) == {("t", 0), ("t", 2), ("t", 5), ("u", 1)}
    assert holdings.by_topic({("u", 1), ("t", 5), ("t", 0)}) == parts("t0", "t5", "u1")
