"""Nodes that come and go while the transport runs, on real sockets (S25, docs/adr/0034)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from holdfast.raft.membership import ClusterNode, Membership
from holdfast.raft.messages import Removed, VoteGranted
from holdfast.raft.transport import peer_options
from unit.raft.transport.peer_authority import Authority, old_names
from unit.raft.transport.transports import Nodes, addresses


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    with ExitStack() as stack:
        yield Nodes(stack)


def membership(at: dict[str, str], names: str, removed: str = "") -> Membership:
    voters = tuple(ClusterNode(name, at[name], f"client-of-{name}:1") for name in names)
    return Membership(voters, (), tuple(removed))


def passes(nodes: Nodes, one: str, other: str) -> bool:
    """Whether a message of one node arrives at the other."""
    said = VoteGranted(7)
    nodes.transports[one].send(other, said)
    return nodes.until(lambda: (one, said) in nodes.recorder(other).seen, within_s=0.2)


def is_dialled(node: str) -> bool:
    """Whether some transport of this process has a thread that dials a node."""
    return any(thread.name == f"peer-{node}" for thread in threading.enumerate())


@pytest.mark.parametrize("secure", [True, False])
def test_a_node_that_comes_is_dialled_and_let_in(nodes: Nodes, *, secure: bool) -> None:
    """No file names it: the log does."""
    at, authority = addresses("a", "b"), Authority()
    for node in "ab":
        nodes.start(node, at[node], {}, tls=authority.node(node) if secure else None)
    for node in "ab":
        nodes.transports[node].follow(membership(at, "ab"))

    assert nodes.until(lambda: passes(nodes, "a", "b"))
    assert nodes.until(lambda: passes(nodes, "b", "a"))


@pytest.mark.parametrize("secure", [True, False])
def test_a_node_of_the_cluster_that_nobody_knows_is_heard_and_answered(
    nodes: Nodes, *, secure: bool
) -> None:
    """A follower may be led by a node that was added while it was away: its log cannot say so."""
    at, authority = addresses("a", "b"), Authority()
    nodes.start("a", at["a"], {}, tls=authority.node("a") if secure else None)
    nodes.start("b", at["b"], {"a": at["a"]}, tls=authority.node("b") if secure else None)

    assert nodes.until(lambda: passes(nodes, "b", "a"))
    assert nodes.until(lambda: passes(nodes, "a", "b")), "at the address that it has told"


def test_a_certificate_of_another_cluster_is_no_proof(nodes: Nodes) -> None:
    """FAULT-29: who is in no list has to prove that it is a node, and of this cluster."""
    at, authority = addresses("a", "b", "c"), Authority()
    nodes.start("a", at["a"], {"c": at["c"]}, tls=authority.node("a"))
    of_other = authority.node("b", cluster="other")
    nodes.start("b", at["b"], {"a": at["a"]}, tls=of_other)
    nodes.start("c", at["c"], {"a": at["a"]}, tls=authority.node("c"))
    assert nodes.until(lambda: passes(nodes, "c", "a"))

    assert nodes.until(lambda: bool(nodes.transports["b"].troubles()))
    assert "does not belong to node 'b'" in nodes.transports["b"].troubles()[0]
    assert nodes.until(lambda: not is_dialled("b"))


def test_the_calls_of_a_node_that_is_not_in_the_log_are_refused(nodes: Nodes) -> None:
    """It is heard, for what it says is judged; but it has no claim to what the calls read."""
    at = addresses("a", "b")
    asked = list[bytes]()

    def answer(request: bytes) -> Iterator[bytes]:
        asked.append(request)
        yield b"secret"

    nodes.start("a", at["a"], {}, offers={"m": answer})
    nodes.start("b", at["b"], {"a": at["a"]})

    with pytest.raises(OSError, match="node 'b' is none of the cluster's nodes"):
        nodes.meanwhile(lambda: list(nodes.transports["b"].call("a", "m", b"")))
    assert asked == []
    nodes.transports["a"].follow(membership(at, "ab"))
    assert nodes.meanwhile(lambda: list(nodes.transports["b"].call("a", "m", b""))) == [b"secret"]


def test_s25c_a_node_is_reached_at_the_address_on_the_log_or_not_at_all(nodes: Nodes) -> None:
    """It was heard before it was added, and dialled where it says. As a voter it would be lost."""
    at = addresses("a", "b", "nobody")
    nodes.start("a", at["a"], {})
    nodes.start("b", at["b"], {"a": at["a"]})
    assert nodes.until(lambda: passes(nodes, "a", "b"))

    nodes.transports["a"].follow(membership(at | {"b": at["nobody"]}, "ab"))

    assert not nodes.transports["a"].send("b", VoteGranted(8)), "not even the next message"
    assert nodes.until(lambda: ("b", "down") in nodes.recorder("a").seen)
    assert passes(nodes, "b", "a"), "it is heard, as any node of the cluster"
    nodes.recorder("b").seen.clear()
    assert not passes(nodes, "a", "b")
    nodes.transports["a"].follow(membership(at, "ab"))
    assert nodes.until(lambda: passes(nodes, "a", "b")), "where the log says now"


def test_s25c_a_connection_that_was_dialled_before_the_log_said_where_is_not_used(
    nodes: Nodes,
) -> None:
    """A thread may have made it a moment before: the engine's has not taken it yet."""
    at = addresses("a", "b", "nobody")
    nodes.start("a", at["a"], {"b": at["b"]})
    nodes.start("b", at["b"], {"a": at["a"]})
    a, b = nodes.transports["a"], nodes.transports["b"]
    while "b" not in a.builds():
        b.park(0.005)
        b.poll()

    a.follow(membership(at | {"b": at["nobody"]}, "ab"))

    assert nodes.until(lambda: passes(nodes, "b", "a"))
    assert ("b", "up") not in nodes.recorder("a").seen


def test_a_connection_to_the_address_on_the_log_stays(nodes: Nodes) -> None:
    """Another node comes: nothing changes for those that are there."""
    at = addresses("a", "b", "c")
    nodes.start("a", at["a"], {"b": at["b"]})
    nodes.start("b", at["b"], {"a": at["a"]})
    assert nodes.until(lambda: passes(nodes, "a", "b"))

    nodes.transports["a"].follow(membership(at, "abc"))

    nodes.recorder("b").seen.clear()
    assert passes(nodes, "a", "b")
    assert ("b", "down") not in nodes.recorder("a").seen


def test_s25e_a_node_that_was_removed_is_told_and_then_forgotten(nodes: Nodes) -> None:
    """It goes on asking: until it stops, it can be answered. Then nobody dials it any more."""
    at = addresses("a", "b")
    nodes.start("a", at["a"], {"b": at["b"]})
    nodes.start("b", at["b"], {"a": at["a"]})
    assert nodes.until(lambda: passes(nodes, "a", "b") and passes(nodes, "b", "a"))

    nodes.transports["a"].follow(membership(at, "a", removed="b"))
    assert passes(nodes, "b", "a")
    nodes.transports["a"].send("b", Removed(5))
    assert nodes.until(lambda: ("a", Removed(5)) in nodes.recorder("b").seen)
    assert ("b", "down") not in nodes.recorder("a").seen, "it keeps its connections so long"
    nodes.transports.pop("b").close()

    assert nodes.until(lambda: ("b", "down") in nodes.recorder("a").seen)
    assert nodes.until(lambda: not is_dialled("b"))
    assert nodes.transports["a"].builds() == {}


def test_s25e_a_removed_node_that_starts_again_can_be_told(nodes: Nodes) -> None:
    """It was away when it was removed, and believes what its own log says."""
    at = addresses("a", "b")
    nodes.start("a", at["a"], {"b": at["b"]})
    nodes.transports["a"].follow(membership(at, "a", removed="b"))
    nodes.turn()
    nodes.start("b", at["b"], {"a": at["a"]})
    assert nodes.until(lambda: passes(nodes, "b", "a"))

    def is_told() -> bool:
        nodes.transports["a"].send("b", Removed(5))
        return ("a", Removed(5)) in nodes.recorder("b").seen

    assert nodes.until(is_told)


def test_a_node_that_was_never_there_is_dialled_no_more_when_it_is_removed(nodes: Nodes) -> None:
    """A wrong address costs one thread, and for no longer than it is in the log."""
    at = addresses("a", "b")
    nodes.start("a", at["a"], {})
    nodes.transports["a"].follow(membership(at, "ab"))
    assert is_dialled("b")

    nodes.transports["a"].follow(membership(at, "a", removed="b"))

    assert nodes.until(lambda: not is_dialled("b"))


def test_a_message_may_remove_its_own_sender(nodes: Nodes) -> None:
    """The engine calls from the middle of a turn, in which connections are being read."""
    at = addresses("a", "b")
    nodes.start("a", at["a"], {"b": at["b"]})
    nodes.start("b", at["b"], {"a": at["a"]})
    assert nodes.until(lambda: passes(nodes, "a", "b") and passes(nodes, "b", "a"))
    without = membership(at, "b", removed="a")
    nodes.recorder("b").then = lambda: nodes.transports["b"].follow(without)

    assert passes(nodes, "a", "b")
    nodes.transports.pop("a").close()

    assert nodes.until(lambda: not is_dialled("a"))
    assert nodes.transports["b"].builds() == {}


def test_nodes_that_nobody_knows_are_let_in_up_to_a_bound(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each costs a thread; a peer is always let in."""
    monkeypatch.setattr(peer_options, "OUTSIDERS_MAX", 1)
    at = addresses("a", "b", "c", "d")
    nodes.start("a", at["a"], {"d": at["d"]})
    nodes.start("b", at["b"], {"a": at["a"]})
    assert nodes.until(lambda: passes(nodes, "b", "a"))

    nodes.start("c", at["c"], {"a": at["a"]})
    nodes.start("d", at["d"], {"a": at["a"]})

    assert nodes.until(lambda: passes(nodes, "d", "a"))
    assert nodes.until(lambda: bool(nodes.transports["c"].troubles()))
    assert "does not know 'c' as a node of the cluster" in nodes.transports["c"].troubles()[0]


def test_an_old_name_is_no_proof_for_a_node_that_is_not_in_the_log(nodes: Nodes) -> None:
    """It names no cluster: the node may be another's under the same authority."""
    at, authority = addresses("a", "b"), Authority()
    a = replace(authority.node("a"), accept_old_names=True)
    nodes.start("a", at["a"], {}, tls=a)
    nodes.start("b", at["b"], {"a": at["a"]}, tls=authority.pair(old_names("b")))

    assert nodes.until(lambda: bool(nodes.transports["b"].troubles()))
    assert "it has the name of Holdfast 0.1 alone" in nodes.transports["b"].troubles()[0]


def test_a_node_that_nobody_says_where_to_find_is_named(nodes: Nodes) -> None:
    """The log says nothing of the first nodes' addresses, and this node's file does not name it."""
    at = addresses("a")
    nodes.start("a", at["a"], {})

    nodes.transports["a"].follow(Membership((ClusterNode("a"), ClusterNode("b"))))

    assert nodes.until(lambda: bool(nodes.transports["a"].troubles()))
    assert "nobody has told where node 'b' is reached" in nodes.transports["a"].troubles()[0]
