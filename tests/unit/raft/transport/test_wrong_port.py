"""What a client hears that was given the address of a peer port, and a node that of a clients'."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import grpc
import pytest
from cryptography import x509

from harness.hostile import ACK, CONTINUATION, END_HEADERS, HEADERS, PING, SETTINGS, frame
from harness.poll import until
from holdfast.raft.api import BadMessage
from holdfast.raft.transport.peer_transport import PeerTransport
from holdfast.raft.transport.tls import PeerTls
from holdfast.raft.transport.wrong_port import BYTES_MAX, CALLS_MAX, PREFACE, WrongPort
from unit.raft.transport.peer_authority import Authority
from unit.raft.transport.transports import DEADLINE, Nodes, addresses


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    with ExitStack() as stack:
        yield Nodes(stack)


def channel_to(address: str, shown: PeerTls | None) -> grpc.Channel:
    """A client's channel."""
    if shown is None:
        return grpc.insecure_channel(address)
    credentials = grpc.ssl_channel_credentials(shown.ca, shown.key, shown.certificate)
    return grpc.secure_channel(address, credentials)


@pytest.mark.parametrize("secure", [True, False])
@pytest.mark.parametrize("known", [True, False])
def test_a_client_at_the_peer_port_is_told_which_address_to_use(
    nodes: Nodes, *, known: bool, secure: bool
) -> None:
    """Calls that never say anything are answered like the others, so none keeps peers waiting."""
    at, authority = addresses("a", "b"), Authority()
    client = [x509.UniformResourceIdentifier("holdfast://client/x")]
    tls = (authority.node("a"), authority.client(client)) if secure else (None, None)
    transport = PeerTransport("c", "a", at["a"], {"b": at["b"]}, tls[0])
    nodes.stack.callback(transport.close)
    if known:
        transport.send_clients_to("10.0.0.1:7400")
    transport.start(nodes.recorder("a"), transport.unpark)
    channel = nodes.stack.enter_context(channel_to(at["a"], tls[1]))
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


def test_a_client_that_stays_is_told_at_each_call(nodes: Nodes) -> None:
    """The port ends the connection after a moment; calls that come later find a new one."""
    at, authority = addresses("a", "b"), Authority()
    nodes.start("a", at["a"], {"b": at["b"]}, tls=authority.node("a"))
    client = authority.client([x509.UniformResourceIdentifier("holdfast://client/x")])
    states, codes = list[grpc.ChannelConnectivity](), set[grpc.StatusCode]()
    with channel_to(at["a"], client) as channel:
        channel.subscribe(states.append)
        unary: grpc.UnaryUnaryMultiCallable[bytes, bytes]
        unary = channel.unary_unary("/holdfast.v1.GroupService/Heartbeat")
        for _ in range(2):
            states.clear()
            with pytest.raises(grpc.RpcError) as refused:
                unary(b"", timeout=DEADLINE)
            codes.add(refused.value.code())
            until(lambda: grpc.ChannelConnectivity.IDLE in states, "the end of the connection")
    assert codes == {grpc.StatusCode.UNIMPLEMENTED}


@pytest.mark.parametrize("secure", [True, False])
def test_a_node_that_dials_a_clients_port_says_so(nodes: Nodes, *, secure: bool) -> None:
    """`peer_address` and `client_address` are easily confused."""
    at, authority = addresses("a", "b"), Authority()
    server = grpc.server(ThreadPoolExecutor(1))
    nodes.stack.callback(server.stop, 0)
    if secure:
        tls = authority.node("b")
        pair = [(tls.key, tls.certificate)]
        credentials = grpc.ssl_server_credentials(pair, tls.ca, require_client_auth=True)
        server.add_secure_port(at["b"], credentials)
    else:
        server.add_insecure_port(at["b"])
    server.start()
    nodes.start("a", at["a"], {"b": at["b"]}, tls=authority.node("a") if secure else None)
    transport = nodes.transports["a"]

    until(transport.troubles, "a sentence about b")
    (sentence,) = transport.troubles()
    assert f"who answers at {at['b']} for node 'b' speaks gRPC" in sentence
    assert "Correct the peer address" in sentence


# --- HTTP/2, byte by byte ---


def port() -> WrongPort:
    return WrongPort("a", "10.0.0.1:7400", "of an older version")


def kinds(answer: bytes) -> list[tuple[int, int, int]]:
    """Kind, flags and stream of each frame."""
    found = []
    while answer:
        size = int.from_bytes(answer[:3], "big")
        found.append((answer[3], answer[4], int.from_bytes(answer[5:9], "big")))
        answer = answer[9 + size :]
    return found


def test_pieces_of_any_size_get_the_same_answer() -> None:
    said = PREFACE + frame(SETTINGS) + frame(PING, body=b"12345678")
    said += frame(HEADERS, END_HEADERS, 1, b"x") + frame(HEADERS, END_HEADERS, 3, b"y")
    one, other = port(), port()

    whole = one.feed(said)
    assert b"".join(other.feed(bytes((byte,))) for byte in said) == whole
    assert kinds(whole) == [
        (SETTINGS, 0, 0),
        (SETTINGS, ACK, 0),
        (PING, ACK, 0),
        (HEADERS, 5, 1),
        (HEADERS, 5, 3),
    ]
    assert b"12345678" in whole
    assert one.goodbye() == frame(7, body=(3).to_bytes(4, "big") + bytes(4))


def test_header_fields_in_several_frames_are_one_call() -> None:
    """The path may stand in any of them."""
    caller = port()
    caller.feed(PREFACE)
    assert caller.feed(frame(HEADERS, 0, 1, b"/holdfast.raft.Peer/Messages")) == b""
    assert b"of an older version" in caller.feed(frame(CONTINUATION, END_HEADERS, 1, b"rest"))
    assert caller.met_peer
    assert b"clients connect to" in caller.feed(frame(HEADERS, END_HEADERS, 3, b"/other"))


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1",
        PREFACE[:-1] + b"x",
        PREFACE + b"\xff\xff\xff" + bytes(6),
        PREFACE + frame(HEADERS, END_HEADERS, 1) * (CALLS_MAX + 1),
        PREFACE + frame(PING, body=bytes(8)) * (BYTES_MAX // 17),
    ],
)
def test_what_is_no_http2_or_too_much_of_it_is_refused(said: bytes) -> None:
    with pytest.raises(BadMessage):
        port().feed(said)
