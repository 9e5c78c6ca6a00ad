"""When `holdfast cluster wait` lets a script go on: the next node may be stopped then."""

from __future__ import annotations

import pytest

from holdfast.cli.render.readiness import Readiness
from holdfast.v1.admin_pb2 import DescribeClusterResponse, DescribedNode

NAMES = ("a", "b", "c")


def answer(
    node: str,
    *,
    leader: str = "a",
    term: int = 3,
    applied: int = 7,
    committed: int = 7,
    **roles: str,
) -> tuple[str, DescribeClusterResponse | None]:
    """What a node tells, of itself and of the roles of others; all is well unless it is said."""
    nodes = [DescribedNode(name=name, role=roles.get(name, "follower")) for name in NAMES]
    told = DescribeClusterResponse(
        node=node,
        leader=leader,
        term=term,
        applied_index=applied,
        commit_index=committed,
        nodes=nodes,
    )
    return f"{node}:7400", told


WHOLE = [answer(name) for name in NAMES]


def first_look(seen: list[tuple[str, DescribeClusterResponse | None]]) -> str:
    """What is missing at the first look of a wait."""
    return Readiness().missing(seen)


def test_a_cluster_whose_nodes_have_all_applied_what_is_committed_is_whole() -> None:
    assert first_look(WHOLE) == ""


def test_one_node_of_its_own_is_whole() -> None:
    assert first_look([answer("a")]) == ""


@pytest.mark.parametrize(
    ("instead", "missing"),
    [
        (("c:7400", None), "c:7400: no answer"),
        (answer("c", leader="b"), "c does not know yet that a leads in term 3"),
        (answer("c", term=2), "c does not know yet that a leads in term 3"),
        (answer("c", leader=""), "c does not know yet that a leads in term 3"),
        (answer("c", applied=6), "c has applied 6 of 7 entries"),
        (answer("c", c="rebuilding"), "c is rebuilding its disk from the others"),
        (answer("c", c="forming"), "c is forming a new cluster"),
    ],
)
def test_what_one_node_lacks_is_told(
    instead: tuple[str, DescribeClusterResponse | None], missing: str
) -> None:
    """Stopping another one now could leave no majority, or lose time."""
    assert first_look([*WHOLE[:2], instead]) == missing


def test_what_the_leader_sees_of_a_node_counts_too() -> None:
    """S19: only the leader knows whose acks do not count yet."""
    assert "rebuilding" in first_look([answer("a", c="rebuilding"), *WHOLE[1:]])
    assert "not connected" in first_look([answer("a", b="unknown"), *WHOLE[1:]])


def test_without_a_leader_nothing_is_whole() -> None:
    assert first_look([answer(name, leader="") for name in NAMES]) == "none of these nodes leads"
    assert first_look(WHOLE[1:]) == "none of these nodes leads"


def test_a_leader_that_has_applied_nothing_has_no_cluster_yet() -> None:
    """S19: the log's first record creates it, and until then no call is served."""
    seen = [answer(name, applied=0) for name in NAMES]
    for _, one in seen:
        assert one is not None
        one.commit_index = 0
    assert first_look(seen) == "a leads, but has applied no entry yet"


def busy(index: int, *, behind: int = 1) -> list[tuple[str, DescribeClusterResponse | None]]:
    """Nodes asked one after another, the leader last: it has committed more meanwhile."""
    others = [answer(name, leader="c", applied=index - behind) for name in ("a", "b")]
    return [*others, answer("c", leader="c", applied=index, committed=index)]


def test_a_cluster_that_commits_all_the_time_is_whole_at_the_second_look() -> None:
    """No look ever finds its nodes at one entry, since they are not asked at the same moment."""
    readiness = Readiness()

    assert readiness.missing(busy(100)) == "a has applied 99 of 100 entries"
    assert readiness.missing(busy(120)) == ""


def test_a_node_that_falls_behind_the_first_look_is_waited_for() -> None:
    readiness = Readiness()

    assert readiness.missing(busy(100, behind=60))
    assert readiness.missing(busy(150, behind=60)) == "a has applied 90 of 100 entries"


def test_what_is_to_be_applied_is_known_once_a_leader_is_seen() -> None:
    readiness = Readiness()

    assert readiness.missing(WHOLE[1:]) == "none of these nodes leads"
    assert readiness.missing(busy(100)) == "a has applied 99 of 100 entries"
    assert readiness.missing(busy(101)) == ""
