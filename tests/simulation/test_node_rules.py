"""INV-16: the judge of changes of nodes says no to what breaks the rule, and to nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.chaos.history import happenings as h
from simulation.node_rules import broken_rules

if TYPE_CHECKING:
    from collections.abc import Sequence

ABC = ("a", "b", "c")
BEGAN = h.Began(0, h.FORMAT, "simulation", ABC, 0.1, {})


def told(
    entry: int,
    voters: str,
    learners: str = "",
    removed: str = "",
    node: str = "a",
    term: int = 2,
) -> h.NodesChanged:
    return h.NodesChanged(entry, node, entry, term, tuple(voters), tuple(learners), tuple(removed))


def found(*told: h.Happening) -> Sequence[str]:
    return [each.what for each in broken_rules([BEGAN, *told])]


def test_one_change_after_another_is_right() -> None:
    assert not found(
        told(3, "abc", "d"),
        told(5, "abcd"),
        told(5, "abcd", node="b"),
        told(7, "bcd", removed="a"),
        told(8, "bcd", "e", removed="a"),
        told(9, "bcd", removed="ae"),
    )


def test_nodes_that_hear_of_it_late_or_not_of_each_are_right() -> None:
    assert not found(
        told(3, "abc", "d"),
        told(5, "abcd"),
        told(3, "abc", "d", node="b"),
        told(5, "abcd", node="c"),
    )


@pytest.mark.parametrize(
    "then",
    [
        told(4, "abcd"),
        told(4, "abc", "de"),
        told(4, "bc"),
        told(4, "c", removed="ab"),
        told(4, "bc", "d", removed="a"),
        told(4, "ab", "c"),
        told(4, "abc"),
    ],
    ids=str,
)
def test_more_than_one_change_at_a_time_is_found(then: h.NodesChanged) -> None:
    """Majorities before and after might not meet: a voter that never learned, two that came."""
    (what,) = found(then)

    assert "is not one change" in what


def test_a_name_that_comes_back_is_found() -> None:
    assert found(told(3, "ab", removed="c"), told(4, "ab", "c", removed="c"))
    assert found(told(3, "ab", removed="c"), told(4, "ab", "c"))


def test_nodes_that_differ_about_an_entry_are_found() -> None:
    (what,) = found(told(3, "abc", "d"), told(3, "abc", "e", node="b"))

    assert "as entry 3" in what


def test_a_removed_node_that_is_elected_afterwards_is_found() -> None:
    """It may have led in the term in which it was removed, and be heard of late."""
    gone = told(3, "ab", removed="c", term=4)
    assert not found(gone, h.Role(5, "c", "leader", 4))

    (what,) = found(gone, h.Role(5, "c", "leader", 5))

    assert "c leads term 5; it was removed in term 4" in what
