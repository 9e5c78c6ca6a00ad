"""Who is a peer, and where: by the log, then the file, then what the node itself says (S25)."""

from __future__ import annotations

from holdfast.raft.membership import ClusterNode, Membership
from holdfast.raft.transport.identity import Peers


def test_until_the_log_says_anything_the_file_does() -> None:
    peers = Peers("a", {"c": "c-file:1", "b": "b-file:1"})

    assert peers.names == ("b", "c")
    assert peers.address("b") == "b-file:1"
    assert peers.address("d") == ""


def test_the_log_decides_who_is_a_peer() -> None:
    """Learners are dialled as voters are; a node is no peer of itself."""
    peers = Peers("a", {"b": "b-file:1", "c": "c-file:1"})

    peers.follow(Membership(_nodes("a", "b"), _nodes("d"), ("c",)))

    assert peers.names == ("b", "d")


def test_the_address_on_the_log_is_newer_than_the_files() -> None:
    """A name is given once, so its address on the log is the one that it was added with."""
    peers = Peers("a", {"b": "b-file:1", "d": "d-file:1"})
    peers.note_told("d", "d-told:1")

    peers.follow(Membership((ClusterNode("a"), ClusterNode("b")), _nodes("d")))

    assert peers.address("d") == "d-log:1"
    assert peers.address("b") == "b-file:1", "the log does not say it of the first nodes"


def test_where_nobody_else_says_it_a_nodes_own_word_counts() -> None:
    """A follower that does not know its leader yet has to answer it."""
    peers = Peers("a", {"b": "b-file:1"})
    peers.note_told("d", "d-told:1")
    peers.note_told("b", "b-told:1")

    assert peers.address("d") == "d-told:1"
    assert peers.address("b") == "b-file:1"
    peers.forget("d")
    assert peers.address("d") == ""


def _nodes(*names: str) -> tuple[ClusterNode, ...]:
    return tuple(ClusterNode(name, f"{name}-log:1", f"{name}-log:2") for name in names)
