"""The peer transport on real sockets: identity, cluster, epochs (FAULT-29)."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import grpc
import pytest

from holdfast.raft.messages import BadMessage, Message, VoteGranted
from holdfast.raft.transport import frames
from holdfast.raft.transport.streams import GrpcTransport, PeerTls, TransportFailed
from unit.raft.peer_authority import Authority

DEADLINE = 20.0


class Recorder:
    """A handler that notes what it is told; `pump` polls as the tick thread would."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, object]] = []
        self.woken = threading.Event()

    def on_message(self, peer: str, message: Message) -> None:
        self.seen.append((peer, message))

    def on_connected(self, peer: str) -> None:
        self.seen.append((peer, "up"))

    def on_disconnected(self, peer: str) -> None:
        self.seen.append((peer, "down"))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Nodes:
    """Transports of a few nodes, polled together until something holds."""

    def __init__(self, stack: ExitStack) -> None:
        self.stack = stack
        self.transports: dict[str, GrpcTransport] = {}
        self.recorders: dict[str, Recorder] = {}

    def start(
        self,
        node: str,
        listen: str,
        peers: dict[str, str],
        cluster: str = "c",
        tls: PeerTls | None = None,
    ) -> None:
        transport = GrpcTransport(cluster, node, listen, peers, tls)
        recorder = self.recorders[node] = Recorder()
        self.stack.callback(transport.close)
        transport.start(recorder, recorder.woken.set)
        self.transports[node] = transport

    def until(self, condition: Callable[[], bool], within_s: float = DEADLINE) -> bool:
        end = time.monotonic() + within_s
        while not condition() and time.monotonic() < end:
            for node, transport in self.transports.items():
                self.recorders[node].woken.wait(0.02)
                transport.poll()
        return condition()


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    with ExitStack() as stack:
        yield Nodes(stack)


def addresses(*names: str) -> dict[str, str]:
    return {name: f"127.0.0.1:{free_port()}" for name in names}


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


@pytest.mark.parametrize("known", [True, False])
def test_a_client_at_the_peer_port_is_told_which_address_to_use(
    nodes: Nodes, *, known: bool
) -> None:
    """Calls that never say anything are answered like the others, so none keeps peers waiting."""
    at = addresses("a", "b")
    transport = GrpcTransport("c", "a", at["a"], {"b": at["b"]}, None)
    nodes.stack.callback(transport.close)
    if known:
        transport.send_clients_to("10.0.0.1:7400")
    transport.start(Recorder(), lambda: None)
    channel = nodes.stack.enter_context(grpc.insecure_channel(at["a"]))
    silent = threading.Event()
    nodes.stack.callback(silent.set)

    def nothing() -> Iterator[bytes]:
        silent.wait(DEADLINE)
        yield from ()

    stream: grpc.StreamStreamMultiCallable[bytes, bytes]
    stream = channel.stream_stream("/holdfast.v1.GroupService/HeartbeatStream")
    streams = [stream(nothing()) for _ in range(40)]
    unary: grpc.UnaryUnaryMultiCallable[bytes, bytes]
    unary = channel.unary_unary("/holdfast.v1.GroupService/Heartbeat")
    with pytest.raises(grpc.RpcError) as refused:
        unary(b"", timeout=DEADLINE)
    assert isinstance(refused.value, grpc.Call)
    told: list[grpc.Call] = [refused.value, *streams]
    assert {each.code() for each in told} == {grpc.StatusCode.UNIMPLEMENTED}
    (sentence,) = {each.details() for each in told}
    assert sentence is not None
    assert "peer port of node 'a'" in sentence
    assert ("10.0.0.1:7400" if known else "client_address") in sentence
    trailing = {str(key): str(value) for key, value in refused.value.trailing_metadata() or ()}
    assert trailing["holdfast-outcome"] == "not-applied"


def test_a_port_in_use_is_one_clear_error(nodes: Nodes) -> None:
    at = addresses("a", "b")
    nodes.start("a", at["a"], {"b": at["b"]})
    twin = GrpcTransport("c", "a", at["a"], {"b": at["b"]}, None)

    with pytest.raises(TransportFailed, match=r"cannot listen for peers .* another peer_address"):
        twin.start(Recorder(), lambda: None)


@pytest.mark.parametrize("cut", range(1, 12))
def test_half_a_packet_is_refused(cut: int) -> None:
    packet = frames.pack([b"1234", b"5678"])
    if cut == 8:  # exactly one whole frame: a shorter, valid packet
        assert list(frames.unpack(packet[:cut])) == [b"1234"]
        return
    with pytest.raises(BadMessage):
        list(frames.unpack(packet[:-cut] if cut < 8 else packet[:cut]))


def test_a_frame_that_claims_too_much_is_refused() -> None:
    with pytest.raises(BadMessage, match="claims"):
        list(frames.unpack(b"\xff\xff\xff\xff" + bytes(8)))
