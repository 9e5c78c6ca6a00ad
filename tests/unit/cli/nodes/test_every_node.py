"""S25: nodes come and go: who is asked is what the newest answer tells, not what was named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli.connect import Cluster
from holdfast.cli.nodes.every_node import named_by, seen_by
from holdfast.cli.target import Target
from holdfast.v1 import admin_pb2 as a

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

    from holdfast.cli.nodes.every_node import Answer


def answer(
    node: str, members: Sequence[str], index: int = 0, removed: Sequence[str] = (), number: int = 0
) -> a.DescribeClusterResponse:
    """What a node tells; `members`: "a" votes and listens at a:1, "+a" learns."""
    nodes = [
        a.DescribedNode(
            name=name.lstrip("+"),
            client_address=f"{name.lstrip('+')}:1",
            standing="learner" if name.startswith("+") else "voter",
        )
        for name in members
    ]
    return a.DescribeClusterResponse(
        node=node,
        nodes=nodes,
        membership_index=index,
        removed_nodes=removed,
        recovery_number=number,
    )


def cluster(
    monkeypatch: pytest.MonkeyPatch,
    named: dict[str, Answer],
    others: dict[str, Answer] | None = None,
    names: Sequence[str] = (),
) -> Cluster:
    """A cluster of which some addresses are named, and what is told there and elsewhere."""
    monkeypatch.setattr(Cluster, "on_every_node", lambda *_: [*named.items()])
    monkeypatch.setattr(Cluster, "on_node", lambda _, address, *__: (others or {}).get(address))
    return Cluster(Target(tuple(named), None, tuple(names)))


def test_nodes_that_nobody_named_are_asked_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    told, second = answer("a", ["a", "b", "+c"]), answer("b", ["a", "b", "+c"])
    seen = seen_by(cluster(monkeypatch, {"a:1": told}, {"b:1": second}))

    assert [one[:2] for one in seen] == [("a", "a:1"), ("b", "b:1"), ("c", "c:1")]
    assert [one.answer for one in seen] == [told, second, None]
    assert [one.standing for one in seen] == ["voter", "voter", "learner"]


def test_the_newest_answer_says_which_nodes_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that lags, or that was removed, tells of nodes that are no more."""
    old, new = answer("a", ["a", "b"], 5), answer("b", ["b"], 9, ["a"])
    seen = seen_by(cluster(monkeypatch, {"a:1": old, "b:1": new}))

    assert [(one.name, one.standing) for one in seen] == [("b", "voter"), ("a", "removed")]


def test_a_restored_cluster_has_newer_news_than_its_past(monkeypatch: pytest.MonkeyPatch) -> None:
    """S13: it begins with the nodes of the files, and no entry says so."""
    past, now = answer("a", ["a", "z"], 50), answer("b", ["b"], 0, number=1)
    seen = seen_by(cluster(monkeypatch, {"a:1": past, "b:1": now}))

    assert [(one.name, one.standing) for one in seen] == [("b", "voter"), ("a", "-")]


def test_a_node_that_is_named_at_another_address_is_seen_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Through a forwarded port, for instance."""
    told = answer("a", ["a"])
    seen = seen_by(cluster(monkeypatch, {"localhost:9": told}))

    assert [one[:3] for one in seen] == [("a", "localhost:9", told)]


def test_a_named_address_where_nobody_is_known_comes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    told = answer("a", ["a"], 3, ["z"])
    named: dict[str, Answer] = {"z:1": None, "q:1": None, "a:1": told}
    seen = seen_by(cluster(monkeypatch, named, names=("z", "q", "a")))

    assert [(one.name, one.standing) for one in seen] == [
        ("a", "voter"),
        ("z", "removed"),
        ("q", "-"),
    ]


def test_if_nobody_answers_those_that_were_named_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = seen_by(cluster(monkeypatch, {"a:1": None}, names=("a",)))

    assert seen == [("a", "a:1", None, "voter")]


def test_a_removed_node_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """cluster.json may name it; it has stopped for good."""
    told = answer("a", ["a"], 3, ["z"])
    named: dict[str, Answer] = {"z:1": None, "q:1": None, "a:1": told}

    assert named_by(cluster(monkeypatch, named, names=("z", "q", "a"))) == [
        ("q:1", None),
        ("a:1", told),
    ]


def test_what_is_where_nobody_answers_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong address is no voter, and a node that was removed may have been named."""
    (seen,) = seen_by(cluster(monkeypatch, {"x:1": None}))

    assert (seen.address, seen.answer, seen.standing) == ("x:1", None, "-")
