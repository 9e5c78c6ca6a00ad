"""Looks at a running local cluster for which nodes it has, and notes it for its next start.

Nodes come and go by the log while the cluster serves. Those that were removed leave cluster.json;
one that is new enters itself when it serves. Any node may be asked, also one that another command
has started. Asks, and writes the two files; decides nothing.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

import grpc

from holdfast.cli.local_cluster import standing
from holdfast.server.config import cluster_file
from holdfast.v1 import admin_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from holdfast.v1.admin_pb2_grpc import AdminServiceStub

ANSWER_SECONDS: Final = 1.0


class NodesWatch:
    """What one running cluster is known to consist of."""

    def __init__(self, directory: Path, stub_at: Callable[[str], AdminServiceStub]) -> None:
        """`stub_at`: gives what asks a node at an address, the same each time."""
        self._directory, self._stub_at = directory, stub_at
        self._known = standing.read(directory)

    def look(self) -> None:
        """Ask until a node tells which nodes there are; note it if it is news."""
        news = standing.newest(self._answers(), self._known)
        if news is None or news == self._known:
            return
        self._known = news
        standing.write(self._directory, news)
        cluster_file.leave_out(self._directory / cluster_file.NAME, news.removed)

    def is_removed(self, name: str) -> bool:
        """Return whether the node is known to have been removed."""
        return self._known is not None and name in self._known.removed

    def _answers(self) -> Iterator[admin_pb2.DescribeClusterResponse]:
        """Yield what nodes tell that answer: their leader's word is the newest, if one leads."""
        with contextlib.suppress(OSError, ValueError):  # the file of a cluster that ends just now
            for node in cluster_file.read(self._directory / cluster_file.NAME).nodes:
                with contextlib.suppress(grpc.RpcError):
                    asked = admin_pb2.DescribeClusterRequest()
                    told = self._stub_at(node.client_address).DescribeCluster(
                        asked, timeout=ANSWER_SECONDS
                    )
                    yield told
                    if told.leader == told.node:
                        return
