"""S25: which nodes a local cluster has is noted while it serves, for its next start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.cli.local_cluster import standing
from holdfast.cli.local_cluster.standing import Standing
from holdfast.v1 import admin_pb2 as a

if TYPE_CHECKING:
    from pathlib import Path


def answer(index: int, commit: int = 100, number: int = 0, voter: str = "a") -> Standing | None:
    """What is taken of a node's answer."""
    return standing.told_by(told(index, commit, number, voter))


def told(
    index: int, commit: int = 100, number: int = 0, voter: str = "a"
) -> a.DescribeClusterResponse:
    nodes = [
        a.DescribedNode(name=voter, standing="voter"),
        a.DescribedNode(name="b", standing="learner"),
    ]
    return a.DescribeClusterResponse(
        nodes=nodes,
        removed_nodes=["z"],
        membership_index=index,
        commit_index=commit,
        recovery_number=number,
    )


def test_what_was_noted_is_read_again(tmp_path: Path) -> None:
    noted = answer(7)
    assert noted == Standing(("a",), ("b",), ("z",), 7, 0)
    standing.write(tmp_path, noted)

    assert standing.read(tmp_path) == noted


@pytest.mark.parametrize("content", [None, "", "[]", "{}", '{"voters": 1}', "\xff"])
def test_what_cannot_be_read_is_as_if_nothing_were_noted(
    tmp_path: Path, content: str | None
) -> None:
    """It is a note: without it the nodes' files count, as before the first change."""
    if content is not None:
        (tmp_path / standing.NAME).write_text(content, "latin-1")

    assert standing.read(tmp_path) is None


def test_what_another_leader_may_undo_is_not_noted() -> None:
    """S25 a: it is in force, and not committed."""
    assert answer(101) is None


def test_a_node_of_a_version_that_does_not_tell_is_no_news() -> None:
    assert standing.told_by(a.DescribeClusterResponse(nodes=[a.DescribedNode(name="a")])) is None


def test_the_newest_news_counts_whoever_tells_it_last() -> None:
    older, newer, restored = told(5, voter="x"), told(9), told(0, number=1, voter="r")

    assert standing.newest([newer, older], None) == standing.told_by(newer)
    assert standing.newest([older], standing.told_by(newer)) == standing.told_by(newer)
    assert standing.newest([restored], standing.told_by(newer)) == standing.told_by(restored)
    assert standing.newest([], None) is None
