"""What a client hears that was given the address of a peer port."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack

import grpc
import pytest

from holdfast.raft.transport.streams import GrpcTransport
from unit.raft.transport.transports import DEADLINE, Nodes, Recorder, addresses


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    with ExitStack() as stack:
        yield Nodes(stack)


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
