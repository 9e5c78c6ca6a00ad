"""Learn all nodes of the cluster from one that answers: one working endpoint is enough.

Each node that answers a call for the first time, and each new leader, is asked once, beside the
user's calls (as Kafka's clients learn all brokers from `bootstrap.servers`). Failures here are
harmless: the known endpoints stay. endpoints.py decides which node is called next.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

import grpc
import grpc.aio

from holdfast.client._rpc.endpoints import is_address
from holdfast.v1 import admin_pb2
from holdfast.v1.admin_pb2_grpc import AdminServiceStub

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.client._rpc.endpoints import Endpoints
    from holdfast.client._rpc.token_source import Shown

_LOGGER = logging.getLogger("holdfast.client")
_TIMEOUT_S: Final = 5.0
_PASSING: Final = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.CANCELLED,
    }
)
"""After these the node is asked again at its next answer; all others are refusals."""


class Discovery:
    """Asks nodes for the other nodes, and updates the walk (endpoints.py)."""

    def __init__(
        self,
        endpoints: Endpoints,
        channel: Callable[[str], grpc.aio.Channel],
        shown: Shown,
    ) -> None:
        self._endpoints = endpoints
        self._channel = channel
        self._shown = shown
        self._asked = ""
        self._asking: asyncio.Task[None] | None = None

    def answered(self, address: str) -> None:
        """Ask a node that has answered a call, unless it was the last one asked."""
        if address == self._asked or (self._asking is not None and not self._asking.done()):
            return
        self._asked = address
        self._asking = asyncio.create_task(self._ask(address))

    async def close(self, grace_ms: int) -> None:
        """Stop asking; an answer that is on its way may still come within this time."""
        if self._asking is not None:
            if grace_ms and not self._asking.done():
                await asyncio.wait([self._asking], timeout=grace_ms / 1000)
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    async def _ask(self, address: str) -> None:
        stub = AdminServiceStub(self._channel(address))
        try:
            answer = await stub.DescribeCluster(
                admin_pb2.DescribeClusterRequest(),
                timeout=_TIMEOUT_S,
                metadata=self._shown.metadata,
            )
        except grpc.aio.AioRpcError as error:
            if error.code() in _PASSING:
                self._asked = ""
            _LOGGER.info("%s does not tell the other nodes: %s", address, error.code().name)
            return
        told = (node.client_address for node in answer.nodes)
        self._endpoints.learned([each for each in told if is_address(each)])
