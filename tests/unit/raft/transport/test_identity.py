"""New credentials of a running node: new connections use them, and a bad one changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from holdfast.raft.messages import VoteGranted
from holdfast.raft.transport.tls import PeerTls, TlsUnusable
from unit.raft.transport.peer_authority import Authority
from unit.raft.transport.transports import Nodes, addresses


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    with ExitStack() as stack:
        yield Nodes(stack)


def trusting(both: tuple[Authority, Authority], tls: PeerTls) -> PeerTls:
    """The same pair, trusting two authorities."""
    return replace(tls, ca=both[0].node("x").ca + both[1].node("x").ca)


def test_a_node_of_the_next_authority_is_let_in_once_both_are_trusted(nodes: Nodes) -> None:
    """The files of a running node are replaced; it is not started again."""
    old, new = both = Authority("old"), Authority("new")
    at = addresses("a", "b")
    nodes.start("a", at["a"], {"b": at["b"]}, tls=old.node("a"))
    nodes.start("b", at["b"], {"a": at["a"]}, tls=trusting(both, new.node("b")))
    assert nodes.until(lambda: bool(nodes.transports["a"].troubles()))
    assert not nodes.transports["a"].send("b", VoteGranted(1))

    nodes.transports["a"].replace_tls(trusting(both, old.node("a")))

    assert nodes.until(lambda: nodes.transports["a"].send("b", VoteGranted(1)))
    assert nodes.until(lambda: nodes.transports["b"].send("a", VoteGranted(1)))


def test_credentials_that_make_no_tls_leave_those_in_force(nodes: Nodes) -> None:
    authority = Authority()
    at = addresses("a", "b")
    good = authority.node("a")
    nodes.start("a", at["a"], {"b": at["b"]}, tls=good)
    with pytest.raises(TlsUnusable):
        nodes.transports["a"].replace_tls(replace(good, key=authority.node("a").key))
    nodes.start("b", at["b"], {"a": at["a"]}, tls=authority.node("b"))

    assert nodes.until(lambda: nodes.transports["a"].send("b", VoteGranted(1)))
    assert nodes.until(lambda: nodes.transports["b"].send("a", VoteGranted(1)))
