"""What the peer port says to a client that was given the wrong address.

Peers call the methods of `transport` and nothing else, so any other call comes from a client.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import grpc

OUTCOME: Final = (("holdfast-outcome", "not-applied"),)
"""Nothing was done (S5). It also shows that a node answered, not gRPC."""


class WrongPort(grpc.GenericRpcHandler):
    """Answers every method that comes to it with UNIMPLEMENTED and the address to use."""

    def __init__(self, node_id: str, clients_at: str) -> None:
        """`clients_at`: where this node serves clients, host:port; empty if it is not known."""
        where = clients_at or "its client_address"
        self._sentence = (
            f"this is the peer port of node {node_id!r}, where the nodes speak to each other; "
            f"clients connect to {where}"
        )
        handler: grpc.RpcMethodHandler[bytes, bytes]
        handler = grpc.stream_stream_rpc_method_handler(self._refuse)
        self._handler = handler

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[bytes, bytes]:
        """Answer any method as a stream, so that no thread waits for a first message."""
        del handler_call_details
        return self._handler

    def _refuse(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        del requests
        context.set_trailing_metadata(OUTCOME)
        context.abort(grpc.StatusCode.UNIMPLEMENTED, self._sentence)
        yield b""  # never reached: makes this an iterator, which the handler has to return
