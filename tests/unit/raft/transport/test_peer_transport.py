"""The peer transport on real sockets: identity, cluster, epochs (FAULT-29)."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace

import pytest

from harness.poll import until
from holdfast.raft.messages import VoteGranted
from holdfast.raft.transport.listening import TransportFailed
from holdfast.raft.transport.peer_transport import PeerTransport
from unit.raft.transport.other_node import place
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
    twin = PeerTransport("c", "a", at["a"], {"b": at["b"]}, None)

    with pytest.raises(TransportFailed, match=r"cannot listen for peers .* another peer_address"):
        twin.start(Recorder(), lambda: None)


class Relay:
    """Leads to an address; from `hold` on it keeps the last byte of each piece, until `release`."""

    def __init__(self, to: str) -> None:
        self._to, self._holds, self._kept = (
            to,
            threading.Event(),
            list[tuple[socket.socket, bytes]](),
        )
        self.held = threading.Event()

    @contextmanager
    def listening(self) -> Iterator[str]:
        with socket.create_server(("127.0.0.1", 0)) as server:
            threading.Thread(target=self._serve, args=(server,), daemon=True).start()
            yield f"127.0.0.1:{server.getsockname()[1]}"
            server.shutdown(socket.SHUT_RDWR)

    def _serve(self, server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                near, _ = server.accept()
                far = socket.create_connection(place(self._to))
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _carry(self, near: socket.socket, far: socket.socket) -> None:
        with near, suppress(OSError):
            while piece := near.recv(1 << 16):
                if self._holds.is_set():
                    self._kept.append((far, piece[-1:]))
                    piece = piece[:-1]
                far.sendall(piece)
                if self._kept:
                    self.held.set()
            far.shutdown(socket.SHUT_RDWR)

    def hold(self) -> None:
        self._holds.set()

    def release(self) -> None:
        self._holds.clear()
        for far, byte in self._kept:
            far.sendall(byte)


@pytest.mark.parametrize("secure", [True, False])
def test_half_a_record_blocks_no_tick(nodes: Nodes, *, secure: bool) -> None:
    """TLS gives out nothing of a record before it is whole, and the other peer has to be heard."""
    at, authority = addresses("a", "b", "d"), Authority()
    relay = Relay(at["b"])
    through = nodes.stack.enter_context(relay.listening())
    tls = {node: authority.node(node) if secure else None for node in at}
    nodes.start("b", at["b"], {"a": at["a"], "d": at["d"]}, tls=tls["b"])
    nodes.start("a", at["a"], {"b": through}, tls=tls["a"])
    nodes.start("d", at["d"], {"b": at["b"]}, tls=tls["d"])
    for node in "ad":
        seen = nodes.recorders[node].seen
        assert nodes.until(lambda seen=seen: ("b", "up") in seen)  # type: ignore[misc]  # bound now

    relay.hold()
    assert nodes.transports["a"].send("b", VoteGranted(1))
    assert relay.held.wait(20)
    assert nodes.transports["d"].send("b", VoteGranted(2))
    seen = nodes.recorders["b"].seen
    assert nodes.until(lambda: ("d", VoteGranted(2)) in seen)
    assert ("a", VoteGranted(1)) not in seen
    relay.release()
    assert nodes.until(lambda: ("a", VoteGranted(1)) in seen)


def test_a_peer_that_stands_still_is_found_out_and_found_again(nodes: Nodes) -> None:
    """As a process that is stopped: its connections stay open, and nothing answers."""
    at, authority = addresses("a", "b"), Authority()
    nodes.start("a", at["a"], {"b": at["b"]}, tls=authority.node("a"))
    nodes.start("b", at["b"], {"a": at["a"]}, tls=authority.node("b"))
    seen = nodes.recorders["a"].seen
    assert nodes.until(lambda: ("b", "up") in seen)

    frozen = nodes.transports.pop("b")
    assert nodes.until(lambda: ("b", "down") in seen)
    nodes.transports["b"] = frozen
    seen.clear()
    assert nodes.until(lambda: ("b", "up") in seen)
    assert nodes.transports["a"].send("b", VoteGranted(1))
    assert nodes.until(lambda: ("a", VoteGranted(1)) in nodes.recorders["b"].seen)


def test_a_host_that_is_none_is_told_and_tried_on(nodes: Nodes) -> None:
    """A name that no resolver takes raises something else than a network does."""
    at, host = addresses("a"), "x" * 70 + ".example"
    nodes.start("a", at["a"], {"b": f"{host}:7500"})

    until(nodes.transports["a"].troubles, "a sentence about b")
    (sentence,) = nodes.transports["a"].troubles()
    assert f"node 'b' cannot be dialled at {host}:7500" in sentence


def test_credentials_that_do_not_fit_are_one_clear_error() -> None:
    at, authority = addresses("a", "b"), Authority()
    odd = replace(authority.node("a"), key=authority.node("a").key)
    transport = PeerTransport("c", "a", at["a"], {"b": at["b"]}, odd)

    with pytest.raises(TransportFailed, match=r"MISMATCH.* correct the files in the section tls"):
        transport.start(Recorder(), lambda: None)


def test_connections_are_replaced_before_they_are_too_old_and_nobody_goes_down(
    nodes: Nodes,
) -> None:
    """New credentials hold for all within that time, and no follower stands for election."""
    authority, at = Authority(), addresses("a", "b")
    for name, other in (("a", "b"), ("b", "a")):
        nodes.start(name, at[name], {other: at[other]}, tls=authority.node(name), age_seconds=0.5)

    def ups(name: str) -> int:
        return sum(what == "up" for _, what in nodes.recorders[name].seen)

    assert nodes.until(lambda: ups("a") >= 4 and ups("b") >= 4)
    assert nodes.until(lambda: nodes.transports["a"].send("b", VoteGranted(1)))
    for recorder in nodes.recorders.values():
        assert "down" not in [what for _, what in recorder.seen]
