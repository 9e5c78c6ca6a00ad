"""New credentials of a running node: new connections use them, and a bad one changes nothing."""

from __future__ import annotations

import hashlib
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from harness.twins import twin_of
from holdfast.raft.messages import VoteGranted
from holdfast.raft.transport.tls import PeerTls, TlsUnusable
from unit.raft.transport.peer_authority import Authority
from unit.raft.transport.transports import DEADLINE, Nodes, addresses


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


def sends(nodes: Nodes, one: str, other: str) -> bool:
    """Whether one node's messages reach the other, as far as the first can tell."""
    return nodes.transports[one].send(other, VoteGranted(1))


@pytest.mark.parametrize("form", ["as issued", "its twin"])
def test_a_revoked_peer_is_cut_off_at_once_and_let_in_again_when_that_is_lifted(
    nodes: Nodes, form: str
) -> None:
    """In both directions, by the node that knows; what is open ends, and nothing new begins.

    By each form of the certificate's signature (ADR 46).
    """
    authority = Authority()
    at, b = addresses("a", "b"), authority.node("b")
    of_b = hashlib.sha256(ssl.PEM_cert_to_DER_cert(b.certificate.decode())).hexdigest()
    if form == "its twin":
        b = replace(b, certificate=twin_of(b.certificate))
    nodes.start("a", at["a"], {"b": at["b"]}, tls=authority.node("a"))
    nodes.start("b", at["b"], {"a": at["a"]}, tls=b)
    assert nodes.until(lambda: sends(nodes, "a", "b") and sends(nodes, "b", "a"))

    nodes.transports["a"].refuse_certificates(frozenset({of_b}))

    assert nodes.until(lambda: ("b", "down") in nodes.recorders["a"].seen)
    assert nodes.until(lambda: ("a", "down") in nodes.recorders["b"].seen)
    assert nodes.until(lambda: bool(nodes.transports["b"].troubles()))
    told = " ".join(nodes.transports["b"].troubles())
    assert f"fingerprint {of_b}) is revoked" in told
    assert not sends(nodes, "a", "b")
    assert not sends(nodes, "b", "a")

    nodes.transports["a"].refuse_certificates(frozenset())

    assert nodes.until(lambda: sends(nodes, "a", "b") and sends(nodes, "b", "a"))


@pytest.mark.parametrize("form", ["as issued", "its twin"])
def test_a_call_beside_the_log_ends_when_its_certificate_is_revoked(
    nodes: Nodes, form: str
) -> None:
    """It may take minutes: a snapshot, a segment."""
    authority, answered = Authority(), threading.Event()
    at, b = addresses("a", "b"), authority.node("b")
    of_b = hashlib.sha256(ssl.PEM_cert_to_DER_cert(b.certificate.decode())).hexdigest()
    if form == "its twin":
        b = replace(b, certificate=twin_of(b.certificate))

    def answer(_request: bytes) -> Iterator[bytes]:
        yield b"first"
        answered.wait(DEADLINE)
        yield b"second"

    nodes.start("a", at["a"], {"b": at["b"]}, tls=authority.node("a"))
    nodes.start("b", at["b"], {"a": at["a"]}, tls=b, offers={"m": answer})
    assert nodes.until(lambda: sends(nodes, "a", "b") and sends(nodes, "b", "a"))
    chunks = nodes.transports["a"].call("b", "m", b"")
    assert nodes.meanwhile(lambda: next(chunks)) == b"first"

    nodes.transports["a"].refuse_certificates(frozenset({of_b}))

    with pytest.raises(OSError, match="b does not answer m"):
        nodes.meanwhile(lambda: next(chunks))
    answered.set()
