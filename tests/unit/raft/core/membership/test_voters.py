"""What a majority is, for every size that a cluster has or passes (Raft thesis 3.3, 4.1)."""

from __future__ import annotations

from itertools import combinations

import pytest

from holdfast.raft.core.membership.voters import NEVER, Voters


def voters(names: str, node: str = "A") -> Voters:
    return Voters.of(node, names)


@pytest.mark.parametrize(
    ("names", "majority"),
    [("A", 1), ("AB", 2), ("ABC", 2), ("ABCD", 3), ("ABCDE", 3), ("ABCDEF", 4), ("ABCDEFG", 4)],
)
def test_a_majority_is_more_than_half(names: str, majority: int) -> None:
    assert voters(names).majority == majority


@pytest.mark.parametrize("names", ["A", "AB", "ABC", "ABCD", "ABCDE", "ABCDEF"])
def test_majorities_of_sizes_that_differ_by_one_have_a_voter_in_common(names: str) -> None:
    """That is why one node at a time may come or go (Raft thesis 4.1)."""
    more = names + "Z"
    for before in combinations(names, voters(names).majority):
        for after in combinations(more, voters(more).majority):
            assert set(before) & set(after)


def test_only_voters_are_counted() -> None:
    assert not voters("ABC").have_majority(["A", "X", "Y", "Z"])
    assert voters("ABC").have_majority(["A", "X", "C"])


def test_a_node_that_is_no_voter_does_not_count_itself() -> None:
    outsider = voters("ABC", node="X")

    assert outsider.others == ("A", "B", "C")
    assert not outsider.have_majority(["X", "A"])
    assert outsider.reached({"A": 5.0}, own=9.0) == NEVER
    assert outsider.reached({"A": 5.0, "B": 3.0}, own=9.0) == 3.0


def test_what_a_majority_has_reached() -> None:
    """S10 c: of five, two others and the node itself make a majority."""
    five = voters("ABCDE")

    assert five.reached({"B": 7.0}, own=9.0) == NEVER
    assert five.reached({"B": 7.0, "C": 2.0}, own=9.0) == 2.0
    assert five.reached({"B": 7.0, "C": 2.0, "D": 4.0}, own=9.0) == 4.0
    assert five.reached({"B": 7.0, "X": 8.0}, own=9.0) == NEVER


def test_the_only_voter_is_enough_for_itself() -> None:
    assert voters("A").is_alone
    assert voters("A").reached({"X": 1.0}, own=9.0) == 9.0


def test_the_only_voter_is_company_for_a_node_that_is_none() -> None:
    assert not voters("A", node="X").is_alone
