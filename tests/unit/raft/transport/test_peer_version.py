"""Nodes of unlike versions refuse each other before the first frame, in both directions.

The other node is played by bare gRPC, as Holdfast 0.1.0 and versions to come look from outside.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from concurrent import futures
from contextlib import ExitStack, contextmanager

import grpc
import pytest

from harness.poll import until
from holdfast.raft.messages import VoteGranted
from holdfast.raft.transport.peer_version import OURS, PeerVersion, told, version_problem
from holdfast.raft.transport.streams import METHOD, SERVICE, GrpcTransport
from unit.raft.transport.transports import Nodes, addresses

Metadata = Sequence[tuple[str, str]]
IDS = (("holdfast-cluster", "c"), ("holdfast-node", "b"), ("holdfast-to", "a"))
UNLIKE: dict[str, Metadata] = {
    "0.1.0": (),
    "a later protocol": (("holdfast-peer-protocol", "4"), ("holdfast-entry-schema", OURS.entries)),
    "later entries": (
        ("holdfast-peer-protocol", OURS.protocol),
        ("holdfast-entry-schema", "2"),
    ),
}
TOLD = ["tells no version, as Holdfast 0.1.0 does", "peer protocol 4", "entries of schema 2"]
CASES = list(zip(UNLIKE.values(), TOLD, strict=True))
WHAT_TO_DO = "stop all nodes, install one version of Holdfast everywhere"


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    with ExitStack() as stack:
        yield Nodes(stack)


class OtherAcceptor:
    """A node b that accepts everybody and notes what it is sent."""

    def __init__(self, version: Metadata) -> None:
        self.version, self.streams, self.packets = version, 0, list[bytes]()
        self.refusal = ""

    def receive(self, packets: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        self.streams += 1
        if self.refusal:
            context.abort(grpc.StatusCode.PERMISSION_DENIED, self.refusal)
        context.send_initial_metadata(tuple(self.version))
        yield b""
        self.packets += packets

    def answer(self, request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        context.send_initial_metadata(tuple(self.version))
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


@pytest.mark.parametrize(("version", "said"), CASES, ids=UNLIKE)
def test_an_unlike_peer_is_sent_nothing(
    nodes: Nodes, caplog: pytest.LogCaptureFixture, version: Metadata, said: str
) -> None:
    at, other = addresses("a", "b"), OtherAcceptor(version)
    nodes.stack.enter_context(other.listening(at["b"]))
    nodes.start("a", at["a"], {"b": at["b"]})

    until(lambda: other.streams >= 3, "redials")

    assert not nodes.transports["a"].send("b", VoteGranted(1))
    assert other.packets == []
    (warning,) = warnings(caplog)
    assert said in warning
    assert f"node 'a' {OURS}" in warning
    assert WHAT_TO_DO in warning


@pytest.mark.parametrize(("version", "said"), CASES, ids=UNLIKE)
def test_an_unlike_peer_is_not_listened_to(
    nodes: Nodes, caplog: pytest.LogCaptureFixture, version: Metadata, said: str
) -> None:
    at = addresses("a", "b")
    nodes.start("a", at["a"], {"b": at["b"]})
    with grpc.insecure_channel(at["a"]) as channel:
        dial: grpc.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(METHOD)
        refused = []
        for _ in range(3):
            with pytest.raises(grpc.RpcError) as refusal:
                next(dial(iter([b""]), metadata=(*IDS, *version), wait_for_ready=True))
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
    at, other = addresses("a", "b"), OtherAcceptor(told())
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
            list(ask(b"x", metadata=IDS, wait_for_ready=True))


def test_like_versions_run_together_whatever_else_is_told() -> None:
    later = (("holdfast-of-the-future", "1"), *told())

    assert version_problem("a", "b", later) == ""
    assert str(PeerVersion("2", "1")) == "speaks peer protocol 2 with entries of schema 1"
