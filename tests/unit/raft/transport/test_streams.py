"""The peer transport on real sockets: identity, cluster, epochs (FAULT-29)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from holdfast.raft.messages import VoteGranted
from holdfast.raft.transport.streams import GrpcTransport, TransportFailed
from unit.raft.transport.peer_authority import Authority
from unit.raft.transport.transports import Nodes, Recorder, addresses


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    with ExitStack() as stack:
        yield Nodes(stack)


def test_messages_pass_in_order_between_nodes_that_know_each_other(nodes: Nodes) -> None:
    at, authority = addresses("a", "b"), Authority()
    nodes.start("a", at["a"], {"b": at["b"]}, tls=authority.node("a"))
    nodes.start("b", at["b"], {"a": at["a"]}, tls=authority.node("b"))
    assert nodes.until(lambda: ("b", "up") in nodes.recorders["a"].seen)
    for term in range(300):
        assert nodes.transports["a"].send("b", VoteGranted(term))

    expected = [("a", VoteGranted(term)) for term in range(300)]

    def received() -> list[tuple[str, object]]:
        return [s for s in nodes.recorders["b"].seen if isinstance(s[1], VoteGranted)]

    assert nodes.until(lambda: len(received()) == 300)
    assert received() == expected


@pytest.mark.parametrize(
    ("cluster", "claims", "signed_for"),
    [("other", "a", "a"), ("c", "a", "b"), ("c", "a", "mallory")],
    ids=["wrong cluster", "certificate of another node", "certificate of no node"],
)
def test_nobody_but_the_peer_itself_gets_a_stream(
    nodes: Nodes, cluster: str, claims: str, signed_for: str
) -> None:
    """FAULT-29: identity is the certificate's, and the cluster's id is compared."""
    at, authority = addresses("a", "b", "honest"), Authority()
    nodes.start("b", at["b"], {"a": at["a"], "honest": at["honest"]}, tls=authority.node("b"))
    nodes.start(claims, at["a"], {"b": at["b"]}, cluster, authority.node(signed_for))
    nodes.start("honest", at["honest"], {"b": at["b"]}, tls=authority.node("honest"))
    # By the time the honest node got through, the other had as much time to.
    assert nodes.until(lambda: ("b", "up") in nodes.recorders["honest"].seen)

    assert not nodes.transports[claims].send("b", VoteGranted(1))


def test_another_authority_is_refused(nodes: Nodes) -> None:
    at = addresses("a", "b", "honest")
    ours, theirs = Authority(), Authority()
    nodes.start("b", at["b"], {"a": at["a"], "honest": at["honest"]}, tls=ours.node("b"))
    nodes.start("a", at["a"], {"b": at["b"]}, tls=theirs.node("a"))
    nodes.start("honest", at["honest"], {"b": at["b"]}, tls=ours.node("honest"))
    assert nodes.until(lambda: ("b", "up") in nodes.recorders["honest"].seen)

    assert not nodes.transports["a"].send("b", VoteGranted(1))


def test_a_wrong_address_brings_nobody_what_belongs_to_another(nodes: Nodes) -> None:
    """A dials c's port for b: c must not take b's messages."""
    at = addresses("a", "b", "c")
    nodes.start("c", at["c"], {"a": at["a"], "b": at["b"]})
    nodes.start("a", at["a"], {"b": at["c"], "c": at["c"]})
    assert nodes.until(lambda: ("c", "up") in nodes.recorders["a"].seen)

    assert not nodes.transports["a"].send("b", VoteGranted(1))
    assert nodes.transports["a"].send("c", VoteGranted(2))


def test_a_port_in_use_is_one_clear_error(nodes: Nodes) -> None:
    at = addresses("a", "b")
    nodes.start("a", at["a"], {"b": at["b"]})
    twin = GrpcTransport("c", "a", at["a"], {"b": at["b"]}, None)

    with pytest.raises(TransportFailed, match=r"cannot listen for peers .* another peer_address"):
        twin.start(Recorder(), lambda: None)
