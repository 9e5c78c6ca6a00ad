"""What strangers can take of a node at its peer port: few connections, for a short time (FAULT-29).

Raw connections with any certificate of the authority, or none, beside peers that work. The port's
bounds are made small here, so that they are reached.
"""

from __future__ import annotations

import contextlib
import os
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
from holdfast.raft.transport.peer_transport import PeerTransport
from holdfast.raft.transport.tls import PeerTls
from holdfast.raft.wire.greeting import BYTES_MAX, Greeting, encode_greeting
from unit.raft.transport.other_node import answer_to, dialled, ends, place, read
from unit.raft.transport.peer_authority import Authority
from unit.raft.transport.transports import Nodes, addresses

FEW = 6
MANY = 32
LONG_S = 60.0
"""For a bound that is not the one under test."""


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    with ExitStack() as stack:
        yield Nodes(stack)


@pytest.fixture
def bounds(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, float], None]:
    """Set one of the port's bounds, in seconds."""

    def bound(name: str, seconds: float) -> None:
        monkeypatch.setattr(peer_options, name, seconds)

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
        made = self._context.wrap_socket(socket.create_connection(place(address), LONG_S))
        made.sendall(PREFACE + frame(SETTINGS))
        return made


def start(
    nodes: Nodes, node: str, at: dict[str, str], tls: PeerTls | None, most: int = FEW
) -> None:
    """One transport whose port takes so many connections before they have greeted."""
    peers = {peer: address for peer, address in at.items() if peer != node}
    transport = PeerTransport("c", node, at[node], peers, tls, most)
    nodes.recorders.pop(node, None)
    nodes.stack.callback(transport.close)
    transport.offer("Things", lambda request: iter([request]))
    transport.start(nodes.recorder(node), transport.unpark)
    nodes.transports[node] = transport


def enter(stack: ExitStack, address: str) -> socket.socket:
    """A connection that says nothing."""
    return stack.enter_context(socket.create_connection(place(address), LONG_S))


def is_turned_away(address: str) -> bool:
    """Whether one more connection is closed at once, and not after any of the port's times."""
    with socket.create_connection(place(address), 0.2) as made:
        try:
            return made.recv(1) == b""
        except TimeoutError:
            return False
        except ConnectionError:
            return True


def test_a_client_of_grpc_is_put_out_after_a_moment(nodes: Nodes, tmp_path: Path) -> None:
    """It is told what it is to know; then its place is another's."""
    at, authority = addresses("a", "b"), Authority()
    start(nodes, "b", at, authority.node("b"))

    with Stranger(authority, tmp_path).connect(at["b"]) as idle:
        assert ends(idle)


@pytest.mark.parametrize("said", [b"", b"\x16", b"\0", b"\0\0\0\x20half of a greeting"])
@pytest.mark.parametrize("secure", [True, False])
def test_who_never_finishes_a_greeting_is_put_out(
    nodes: Nodes, bounds: Callable[[str, float], None], said: bytes, *, secure: bool
) -> None:
    """It needs no certificate for that."""
    bounds("HANDSHAKE_SECONDS", 0.3)
    at, authority = addresses("a", "b"), Authority()
    start(nodes, "b", at, authority.node("b") if secure else None)

    with socket.create_connection(place(at["b"]), LONG_S) as slow:
        slow.sendall(said)
        assert ends(slow)


def test_a_byte_now_and_then_buys_no_time(
    nodes: Nodes, bounds: Callable[[str, float], None]
) -> None:
    """The time is that of the whole greeting."""
    bounds("HANDSHAKE_SECONDS", 0.3)
    at = addresses("a", "b")
    start(nodes, "b", at, None)
    hello = encode_greeting(Greeting("c", "a", "b"))

    with socket.create_connection(place(at["b"]), 0.05) as slow, contextlib.suppress(OSError):
        for byte in b"\0\0\0" + bytes((len(hello),)) + hello:
            slow.sendall(bytes((byte,)))
            with contextlib.suppress(TimeoutError):
                assert slow.recv(1) == b""
                break
        else:
            pytest.fail("the node waited for all of it")


@pytest.mark.parametrize("said", [b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64, os.urandom(4096)])
@pytest.mark.parametrize("secure", [True, False])
def test_garbage_is_put_out_and_a_peer_is_let_in(
    nodes: Nodes, said: bytes, *, secure: bool
) -> None:
    at, authority = addresses("a", "b"), Authority()
    start(nodes, "b", at, authority.node("b") if secure else None)
    with socket.create_connection(place(at["b"]), LONG_S) as stranger:
        stranger.sendall(said)
        assert ends(stranger)

    start(nodes, "a", at, authority.node("a") if secure else None)
    assert nodes.until(lambda: ("b", "up") in nodes.recorders["a"].seen)


@pytest.mark.parametrize("secure", [True, False])
def test_the_log_says_where_a_refused_connection_came_from(
    nodes: Nodes, caplog: pytest.LogCaptureFixture, *, secure: bool
) -> None:
    """Else nobody finds the machine whose certificate has expired, or who tries the port."""
    at, authority = addresses("a", "b"), Authority()
    start(nodes, "b", at, authority.node("b") if secure else None)
    for _ in range(2):
        with socket.create_connection(place(at["b"]), LONG_S) as stranger:
            stranger.sendall(b"\xff" * 64)
            assert ends(stranger)

    warned = [each for each in caplog.messages if each.startswith("refused a connection")]
    assert len(warned) == 1, "once for a host, whatever its port is"
    assert " from 127.0.0.1 " in warned[0]


def test_a_connection_above_the_bound_is_turned_away_until_one_had_its_time(
    nodes: Nodes, bounds: Callable[[str, float], None]
) -> None:
    bounds("GRACE_SECONDS", LONG_S)
    bounds("HANDSHAKE_SECONDS", LONG_S)
    at = addresses("a", "b")
    start(nodes, "b", at, None)
    with ExitStack() as stack:
        kept = [enter(stack, at["b"]) for _ in range(FEW)]
        until(lambda: is_turned_away(at["b"]), "a port that is full")
        kept.pop().close()
        until(lambda: not is_turned_away(at["b"]), "a place that got free")
        kept.append(enter(stack, at["b"]))
        until(lambda: is_turned_away(at["b"]), "a port that is full again")

        bounds("GRACE_SECONDS", 0.0)
        assert not is_turned_away(at["b"])
        assert ends(kept[0]), "the oldest one has to go"


def test_a_call_for_which_nobody_is_there_is_refused_before_its_request(nodes: Nodes) -> None:
    """Else a call that never sends any keeps its connection, and a thread, for ever."""
    at = addresses("a", "b")
    start(nodes, "b", at, None)

    told = answer_to(at["b"], encode_greeting(Greeting("c", "a", "b", method="Nothing")))
    assert told == "this node answers no calls of 'Nothing'"
    told = answer_to(at["b"], encode_greeting(Greeting("c", "mallory", "b", method="Things")))
    assert told == "node 'mallory' is none of the cluster's nodes, as far as 'b' knows"


def test_an_old_node_is_told_that_versions_are_unlike(nodes: Nodes) -> None:
    """Up to peer protocol 3 nodes called each other by gRPC, and look at these two codes."""
    at, authority = addresses("a", "b"), Authority()
    start(nodes, "b", at, authority.node("b"))
    shown = authority.node("a")
    credentials = grpc.ssl_channel_credentials(shown.ca, shown.key, shown.certificate)
    name = (("grpc.ssl_target_name_override", "127.0.0.1"),)
    with grpc.secure_channel(at["b"], credentials, name) as channel:
        call: grpc.StreamStreamMultiCallable[bytes, bytes]
        call = channel.stream_stream("/holdfast.raft.Peer/Messages")
        with pytest.raises(grpc.RpcError) as refused:
            next(call(iter([b""]), timeout=LONG_S, wait_for_ready=True))

    assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    said = "node 'a' speaks peer protocols 1 to 3; node 'b' speaks peer protocol 4"
    assert said in (refused.value.details() or "")
    (trouble,) = nodes.transports["b"].troubles()
    assert said in trouble


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
    attack = strangers(at["b"], 3 * MANY, *files)
    once_more = nodes.meanwhile(lambda: nodes.stack.enter_context(attack))
    for term in range(3):
        nodes.meanwhile(once_more)
        start(nodes, "a", at, authority.node("a"), MANY)
        assert nodes.until(lambda: ("b", "up") in nodes.recorders["a"].seen, LONG_S)
        nodes.transports.pop("a").close()
        assert nodes.transports["d"].send("b", VoteGranted(term))
    assert nodes.until(lambda: ("d", VoteGranted(2)) in nodes.recorders["b"].seen)

    assert ("d", "down") not in nodes.recorders["b"].seen
    assert ("b", "down") not in nodes.recorders["d"].seen


def test_a_huge_greeting_is_not_even_kept(nodes: Nodes) -> None:
    """Who it is that sends megabytes is not known yet."""
    at = addresses("a", "b")
    start(nodes, "b", at, None)
    with dialled(at["b"], bytes(BYTES_MAX + 1)) as connection:
        assert b"claims 4097 bytes, and may have 4096" in read(connection)
        with contextlib.suppress(ConnectionError):
            for _ in range(64):
                connection.sendall(bytes(1 << 20))
        assert ends(connection)


def descriptors() -> int:
    """How many this process has open."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_the_end_closes_every_thread_and_descriptor(nodes: Nodes) -> None:
    """Guests, streams and calls at every stage."""
    at, authority = addresses("a", "b"), Authority()
    threads, files = threading.active_count(), descriptors()
    for node in at:
        start(nodes, node, at, authority.node(node))
    assert nodes.until(
        lambda: all(("up" in dict(r.seen).values()) for r in nodes.recorders.values())
    )
    with socket.create_connection(place(at["b"]), LONG_S) as guest:
        chunks = nodes.transports["a"].call("b", "Things", b"x")
        assert next(chunks) == b"x"
        for transport in nodes.transports.values():
            transport.close()
        assert ends(guest)
    with contextlib.suppress(OSError):
        list(chunks)

    until(lambda: threading.active_count() <= threads, "the end of all threads")
    until(lambda: descriptors() <= files, "the end of all descriptors")
