"""What strangers can take of a node at its peer port: few connections, for a short time (FAULT-29).

Raw connections with any certificate of the authority, or none, beside peers that work. gRPC's
bounds are made small here, so that they are reached.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import grpc
import pytest
from cryptography import x509

from harness.hostile import PREFACE, SETTINGS, frame
from harness.poll import until
from harness.strangers import context, strangers
from holdfast.raft.messages import VoteGranted
from holdfast.raft.transport import peer_options
from holdfast.raft.transport.streams import METHOD, SERVICE, GrpcTransport, PeerTls
from unit.raft.transport.peer_authority import Authority
from unit.raft.transport.transports import Nodes, Recorder, addresses

FEW = 6
MANY = 32
LONG_S = 60.0
"""For a bound that is not the one under test."""


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    with ExitStack() as stack:
        yield Nodes(stack)


@pytest.fixture
def bounds(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], None]:
    """Set one of the port's bounds, in ms."""

    def bound(name: str, milliseconds: int) -> None:
        monkeypatch.setattr(peer_options, name, milliseconds)

    return bound


class Stranger:
    """Somebody with a client's certificate, who speaks TLS and HTTP/2 by hand."""

    def __init__(self, authority: Authority, folder: Path) -> None:
        shown = authority.client([x509.UniformResourceIdentifier("holdfast://client/x")])
        ca, pair = folder / "ca.pem", folder / "x.pem"
        ca.write_bytes(shown.ca)
        pair.write_bytes(shown.certificate + shown.key)
        self.tls, self.files = shown, (str(ca), str(pair))
        self._context = context(*self.files)

    def connect(self, address: str) -> ssl.SSLSocket:
        """A connection that stays open, with its first settings sent."""
        host, _, port = address.rpartition(":")
        made = self._context.wrap_socket(socket.create_connection((host, int(port)), LONG_S))
        made.sendall(PREFACE + frame(SETTINGS))
        return made


def ends(connection: socket.socket) -> bool:
    """Wait until the other side closes. Raises TimeoutError."""
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while connection.recv(1 << 16):
            pass
    return True


def heard(stranger: Stranger, address: str) -> bool:
    """Whether the other side says anything on one more connection, and does not just close it."""
    with contextlib.suppress(ConnectionError, ssl.SSLError), stranger.connect(address) as made:
        return bool(made.recv(1))
    return False


def start(nodes: Nodes, node: str, at: dict[str, str], tls: PeerTls, most: int = FEW) -> None:
    """One transport whose port takes so many connections."""
    peers = {peer: address for peer, address in at.items() if peer != node}
    transport = GrpcTransport("c", node, at[node], peers, tls, most)
    nodes.recorders[node] = Recorder()
    nodes.stack.callback(transport.close)
    transport.offer("Things", lambda request: iter([request]))
    transport.start(nodes.recorders[node], nodes.recorders[node].woken.set)
    nodes.transports[node] = transport


def test_a_connection_without_a_call_is_ended(nodes: Nodes, tmp_path: Path) -> None:
    """The library would keep it for ever."""
    at, authority = addresses("a", "b"), Authority()
    start(nodes, "b", at, authority.node("b"))

    with Stranger(authority, tmp_path).connect(at["b"]) as idle:
        assert ends(idle)


def test_a_connection_that_says_nothing_is_ended(nodes: Nodes) -> None:
    """It needs no certificate; by itself the library keeps it for two minutes."""
    at, authority = addresses("a", "b"), Authority()
    start(nodes, "b", at, authority.node("b"))
    host, _, port = at["b"].rpartition(":")

    with socket.create_connection((host, int(port)), LONG_S) as silent:
        assert ends(silent)


def test_one_connection_over_the_bound_is_closed(
    nodes: Nodes, bounds: Callable[[str, int], None], tmp_path: Path
) -> None:
    bounds("IDLE_MS", 1_000_000)
    at, authority = addresses("a", "b"), Authority()
    start(nodes, "b", at, authority.node("b"))
    stranger = Stranger(authority, tmp_path)
    with ExitStack() as stack:
        kept = [stack.enter_context(stranger.connect(at["b"])) for _ in range(FEW)]
        assert not heard(stranger, at["b"])
        kept.pop().close()
        until(lambda: heard(stranger, at["b"]), "a place that got free")
        assert all(connection.recv(1) for connection in kept)


def test_a_strangers_call_ends_before_its_request_is_awaited(nodes: Nodes, tmp_path: Path) -> None:
    """Else a call that never sends any keeps its connection, and a thread, for ever."""
    at, authority = addresses("a", "b"), Authority()
    start(nodes, "b", at, authority.node("b"))
    shown, ended = Stranger(authority, tmp_path).tls, threading.Event()
    credentials = grpc.ssl_channel_credentials(shown.ca, shown.key, shown.certificate)
    nodes.stack.callback(ended.set)

    def silence() -> Iterator[bytes]:
        ended.wait(LONG_S)
        yield from ()

    with grpc.secure_channel(at["b"], credentials) as channel:
        for method in (METHOD, f"{SERVICE}/Things", "/no.such/Method"):
            call: grpc.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(method)
            with pytest.raises(grpc.RpcError) as refused:
                next(call(silence(), timeout=LONG_S, wait_for_ready=True))
            assert refused.value.code() in {
                grpc.StatusCode.PERMISSION_DENIED,
                grpc.StatusCode.UNIMPLEMENTED,
            }


@pytest.mark.parametrize("certified", [True, False])
def test_strangers_neither_disturb_peers_nor_keep_them_out(
    nodes: Nodes, tmp_path: Path, *, certified: bool
) -> None:
    """There are three times as many as the port takes, and they take each place that gets free."""
    at, authority = addresses("a", "b", "d"), Authority()
    for node in ("b", "d"):
        start(nodes, node, at, authority.node(node), MANY)
    assert nodes.until(lambda: ("d", "up") in nodes.recorders["b"].seen)
    assert nodes.until(lambda: ("b", "up") in nodes.recorders["d"].seen)
    files = Stranger(authority, tmp_path).files if certified else ()
    with strangers(at["b"], 3 * MANY, *files) as once_more:
        for term in range(3):
            once_more()
            start(nodes, "a", at, authority.node("a"), MANY)
            assert nodes.until(lambda: ("b", "up") in nodes.recorders["a"].seen, LONG_S)
            nodes.transports.pop("a").close()
            assert nodes.transports["d"].send("b", VoteGranted(term))
        assert nodes.until(lambda: ("d", VoteGranted(2)) in nodes.recorders["b"].seen)

    assert ("d", "down") not in nodes.recorders["b"].seen
    assert ("b", "down") not in nodes.recorders["d"].seen
