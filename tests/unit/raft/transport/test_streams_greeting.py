"""Nodes greet each other before the first frame; unlike versions refuse each other, both ways.

The other node is played by bare gRPC, as Holdfast 0.1.0 and versions to come look from outside.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent import futures
from contextlib import ExitStack, contextmanager

import grpc
import pytest

from harness.poll import until
from holdfast.raft.messages import VoteGranted
from holdfast.raft.transport import frames
from holdfast.raft.transport.greetings import (
    GREETING_KEY,
    answer_metadata,
    dialler_metadata,
)
from holdfast.raft.transport.streams import METHOD, SERVICE, GrpcTransport
from holdfast.raft.wire.codec import encode
from holdfast.raft.wire.greeting import OURS, Greeting, Versions
from unit.raft.transport.transports import Nodes, addresses

Metadata = tuple[tuple[str, str | bytes], ...]
B_TO_A = Greeting("c", "b", "a")
OLD_IDS: Metadata = (("holdfast-cluster", "c"), ("holdfast-node", "b"), ("holdfast-to", "a"))
"""As nodes up to peer protocol 2 told who they are."""
PROTOCOL_2: Metadata = (("holdfast-peer-protocol", "2"), ("holdfast-entry-schema", "1"))
LATER = OURS.newest + 1
UNLIKE: dict[str, tuple[Metadata, str]] = {
    "0.1.0": (OLD_IDS, "tells no version, as Holdfast 0.1.0 does"),
    "the old form": ((*OLD_IDS, *PROTOCOL_2), "speaks peer protocol 2;"),
    "later protocols": (
        answer_metadata(B_TO_A._replace(versions=Versions(LATER, LATER + 1, OURS.entries))),
        f"speaks peer protocols {LATER} to {LATER + 1} with entries of schema {OURS.entries}",
    ),
    "later entries": (
        answer_metadata(B_TO_A._replace(versions=OURS._replace(entries=OURS.entries + 1))),
        f"entries of schema {OURS.entries + 1}",
    ),
}
WHAT_TO_DO = "stop all nodes, install one version of Holdfast everywhere"
NO_GREETINGS: dict[str, Metadata] = {
    "no protobuf": ((GREETING_KEY, b"\xff"),),
    "nothing in it": ((GREETING_KEY, b""),),
    "no sender": answer_metadata(B_TO_A._replace(sender="")),
    "a range the wrong way round": answer_metadata(B_TO_A._replace(versions=Versions(3, 2, 1))),
    "far too long": answer_metadata(B_TO_A._replace(cluster_id="c" * 5_000)),
}


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    with ExitStack() as stack:
        yield Nodes(stack)


class OtherAcceptor:
    """A node b that accepts everybody and notes what it is sent."""

    def __init__(self, greeting: Metadata) -> None:
        self.greeting, self.streams, self.packets = greeting, 0, list[bytes]()
        self.refusal = ""

    def receive(self, packets: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        self.streams += 1
        if self.refusal:
            context.abort(grpc.StatusCode.PERMISSION_DENIED, self.refusal)
        context.send_initial_metadata(self.greeting)
        yield b""
        self.packets += packets

    def answer(self, request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        context.send_initial_metadata(self.greeting)
        yield request

    @contextmanager
    def listening(self, address: str) -> Iterator[None]:
        server = grpc.server(futures.ThreadPoolExecutor(4))
        handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            METHOD.rpartition("/")[2]: grpc.stream_stream_rpc_method_handler(self.receive),
            "Things": grpc.unary_stream_rpc_method_handler(self.answer),
        }
        generic = grpc.method_handlers_generic_handler(SERVICE[1:], handlers)
        server.add_generic_rpc_handlers((generic,))
        server.add_insecure_port(address)
        server.start()
        try:
            yield
        finally:
            server.stop(0)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the logger `holdfast.raft` was told, from warnings on."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.name.startswith("holdfast.raft") and record.levelno >= logging.WARNING
    ]


@pytest.mark.parametrize("unlike", UNLIKE)
def test_an_unlike_peer_is_sent_nothing(
    nodes: Nodes, caplog: pytest.LogCaptureFixture, unlike: str
) -> None:
    greeting, said = UNLIKE[unlike]
    at, other = addresses("a", "b"), OtherAcceptor(greeting)
    nodes.stack.enter_context(other.listening(at["b"]))
    nodes.start("a", at["a"], {"b": at["b"]})

    until(lambda: other.streams >= 3, "redials")

    assert not nodes.transports["a"].send("b", VoteGranted(1))
    assert other.packets == []
    (warning,) = warnings(caplog)
    assert said in warning
    assert f"node 'a' {OURS}" in warning
    assert WHAT_TO_DO in warning


@pytest.mark.parametrize("unlike", UNLIKE)
def test_an_unlike_peer_is_not_listened_to(
    nodes: Nodes, caplog: pytest.LogCaptureFixture, unlike: str
) -> None:
    at, (greeting, said) = addresses("a", "b"), UNLIKE[unlike]
    nodes.start("a", at["a"], {"b": at["b"]})
    with grpc.insecure_channel(at["a"]) as channel:
        dial: grpc.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(METHOD)
        refused = []
        for _ in range(3):
            with pytest.raises(grpc.RpcError) as refusal:
                next(dial(iter([b""]), metadata=greeting, wait_for_ready=True))
            refused.append(refusal.value)

    assert {error.code() for error in refused} == {grpc.StatusCode.FAILED_PRECONDITION}
    assert all(said in (error.details() or "") for error in refused)
    (warning,) = warnings(caplog)
    assert said in warning
    assert WHAT_TO_DO in warning


def test_why_a_peer_refuses_is_one_line_of_bounded_length(
    nodes: Nodes, caplog: pytest.LogCaptureFixture
) -> None:
    """It is text from another machine."""
    at, other = addresses("a", "b"), OtherAcceptor(answer_metadata(B_TO_A))
    other.refusal = "no\nlevel=critical\x1b[2J" + "!" * 3_000
    nodes.stack.enter_context(other.listening(at["b"]))
    nodes.start("a", at["a"], {"b": at["b"]})

    until(lambda: other.streams >= 3, "redials")

    (warning,) = warnings(caplog)
    assert warning.startswith("node 'b' refuses this node: 'no\\nlevel=critical\\x1b[2J!!!")
    assert warning.isprintable()
    assert len(warning) < 1_200


def test_an_answer_of_an_unlike_peer_is_not_taken(nodes: Nodes) -> None:
    """Segments that another version wrote come only when all nodes are of one."""
    at, other = addresses("a", "b"), OtherAcceptor(())
    nodes.stack.enter_context(other.listening(at["b"]))
    asking = GrpcTransport("c", "a", at["a"], {"b": at["b"]}, None)

    with pytest.raises(OSError, match="tells no version"):
        list(asking.call("b", "Things", b"x"))


def test_a_call_of_an_unlike_peer_is_not_answered(nodes: Nodes) -> None:
    at = addresses("a", "b")
    transport = GrpcTransport("c", "a", at["a"], {"b": at["b"]}, None)
    nodes.stack.callback(transport.close)
    transport.offer("Things", lambda request: iter([request]))
    transport._serve()
    with grpc.insecure_channel(at["a"]) as channel:
        ask: grpc.UnaryStreamMultiCallable[bytes, bytes]
        ask = channel.unary_stream(f"{SERVICE}/Things")
        with pytest.raises(grpc.RpcError, match=WHAT_TO_DO):
            list(ask(b"x", metadata=OLD_IDS, wait_for_ready=True))


@pytest.mark.parametrize("wrong", NO_GREETINGS)
def test_who_greets_wrongly_is_nobody(nodes: Nodes, wrong: str) -> None:
    """FAULT-29: a greeting is complete and within its bounds, or its sender gets no stream."""
    at = addresses("a", "b")
    nodes.start("a", at["a"], {"b": at["b"]})
    with grpc.insecure_channel(at["a"]) as channel:
        dial: grpc.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(METHOD)
        with pytest.raises(grpc.RpcError) as refusal:
            next(dial(iter([b""]), metadata=NO_GREETINGS[wrong], wait_for_ready=True))

    assert refusal.value.code() is grpc.StatusCode.PERMISSION_DENIED
    assert "no node sends this" in (refusal.value.details() or "")


@pytest.mark.parametrize("wrong", NO_GREETINGS)
def test_who_answers_wrongly_is_sent_nothing(
    nodes: Nodes, caplog: pytest.LogCaptureFixture, wrong: str
) -> None:
    at, other = addresses("a", "b"), OtherAcceptor(NO_GREETINGS[wrong])
    nodes.stack.enter_context(other.listening(at["b"]))
    nodes.start("a", at["a"], {"b": at["b"]})

    until(lambda: other.streams >= 2, "redials")

    assert not nodes.transports["a"].send("b", VoteGranted(1))
    assert other.packets == []
    (warning,) = warnings(caplog)
    assert "who answers for node 'b' greets wrongly: no node sends this" in warning


@pytest.mark.parametrize(
    "told",
    [B_TO_A._replace(sender="x"), B_TO_A._replace(cluster_id="x"), B_TO_A._replace(addressee="x")],
)
def test_who_answers_as_another_is_sent_nothing(
    nodes: Nodes, caplog: pytest.LogCaptureFixture, told: Greeting
) -> None:
    """A peer address is wrong, and without TLS no certificate says so."""
    at, other = addresses("a", "b"), OtherAcceptor(answer_metadata(told))
    nodes.stack.enter_context(other.listening(at["b"]))
    nodes.start("a", at["a"], {"b": at["b"]})

    until(lambda: other.streams >= 2, "redials")

    assert not nodes.transports["a"].send("b", VoteGranted(1))
    assert other.packets == []
    (warning,) = warnings(caplog)
    assert "a peer address is wrong" in warning


def test_nodes_whose_ranges_meet_run_together(nodes: Nodes) -> None:
    """Both ways, whatever else a later version tells."""
    reaching_back = B_TO_A._replace(versions=Versions(OURS.newest, LATER, OURS.entries))
    at, other = addresses("a", "b"), OtherAcceptor(answer_metadata(reaching_back))
    nodes.stack.enter_context(other.listening(at["b"]))
    nodes.start("a", at["a"], {"b": at["b"]})
    assert nodes.until(lambda: ("b", "up") in nodes.recorders["a"].seen)

    with grpc.insecure_channel(at["a"]) as channel:
        dial: grpc.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(METHOD)
        later = (*dialler_metadata(reaching_back), ("holdfast-of-the-future", "1"))
        call = dial(iter([]), metadata=later, wait_for_ready=True)
        assert next(call) == b""


def test_a_frame_that_no_node_sends_ends_the_stream_and_names_the_peer(
    nodes: Nodes, caplog: pytest.LogCaptureFixture
) -> None:
    """FAULT-29: what came before it was delivered, and nothing after it is."""
    at, sent = addresses("a", "b"), [encode(VoteGranted(1)), b"\0\0\0\0", encode(VoteGranted(2))]
    nodes.start("a", at["a"], {"b": at["b"]})
    with grpc.insecure_channel(at["a"]) as channel:
        dial: grpc.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(METHOD)
        packets = iter([frames.pack(sent)])
        call = dial(packets, metadata=dialler_metadata(B_TO_A), wait_for_ready=True)
        with pytest.raises(grpc.RpcError) as refusal:
            list(call)

    assert refusal.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert refusal.value.details() == "no node sends this: its head holds no message"
    (warning,) = warnings(caplog)
    assert warning == "b sent what no node sends; its stream is ended"


def test_a_node_of_protocol_2_can_say_why_it_refuses() -> None:
    """It reads the texts alone: without them it would take this node for nobody."""
    told = dict(dialler_metadata(Greeting("größer", "b", "a")))

    assert told["holdfast-cluster"] == "gr%C3%B6%C3%9Fer"
    assert (told["holdfast-node"], told["holdfast-to"]) == ("b", "a")
    assert told["holdfast-peer-protocol"] == str(OURS.newest)
    assert told["holdfast-entry-schema"] == str(OURS.entries)
