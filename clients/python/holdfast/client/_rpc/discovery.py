"""Learn all nodes of the cluster from one that answers: one working endpoint is enough.

A node is asked beside the user's calls (as Kafka's clients learn all brokers from
`bootstrap.servers`): another one than before, one on a new connection, and the same one again now
and then, since nodes come and go. Failures here are harmless: the known endpoints stay. So they do
if a node tells older news than another did. endpoints.py decides which node is called next.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

import grpc
import grpc.aio

from holdfast.client._rpc.clock import boot_ms
from holdfast.client._rpc.endpoints import is_address
from holdfast.v1 import admin_pb2
from holdfast.v1.admin_pb2_grpc import AdminServiceStub

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.client._rpc.endpoints import Endpoints
    from holdfast.client._rpc.token_source import Shown

_LOGGER = logging.getLogger("holdfast.client")
_TIMEOUT_S: Final = 5.0
AGAIN_MS: Final = 30_000
"""After this time a node that answers calls is asked again."""
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
        now_ms: Callable[[], int] = boot_ms,
    ) -> None:
        self._endpoints = endpoints
        self._channel = channel
        self._shown = shown
        self._now_ms = now_ms
        self._asked = ""
        self._asked_at_ms = 0
        self._asking: asyncio.Task[None] | None = None
        self._newest = 0, 0
        """Of the newest answer: the recovery number, and the entry that says which nodes are."""

    def reconnecting(self, address: str) -> None:
        """Note that a new connection begins: the node is asked again when it answers a call."""
        if address == self._asked:
            self._asked = ""

    def answered(self, address: str) -> None:
        """Ask a node that has answered a call, unless it was the last one asked, and of late."""
        is_known = address == self._asked and self._now_ms() - self._asked_at_ms < AGAIN_MS
        if is_known or (self._asking is not None and not self._asking.done()):
            return
        self._asked, self._asked_at_ms = address, self._now_ms()
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
        self._learn(answer)

    def _learn(self, answer: admin_pb2.DescribeClusterResponse) -> None:
        """Take the nodes of an answer, unless a node that lags behind tells of earlier ones.

        A restore begins with the nodes of the files, and has a higher recovery number.
        """
        told = answer.recovery_number, answer.membership_index
        if told >= self._newest:
            self._newest = told
            addresses = (node.client_address for node in answer.nodes)
            self._endpoints.learned([each for each in addresses if is_address(each)])
