"""Nodes that serve an event log as log.proto says, each as far as a test lets it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event

import grpc

from holdfast.coordinator.model.ids import Position
from holdfast.replay.stream.served import Nodes
from holdfast.v1 import admin_pb2, admin_pb2_grpc, extras_pb2, log_pb2, log_pb2_grpc
from holdfast.v1.errors_pb2 import ERROR_CODE_CLUSTER_AUTHORIZATION_FAILED
from holdfast.v1.events_pb2 import EventRecord
from spark.event_logs import EventLog

PAGE = 7
"""Records that a node sends at once."""
NEEDS = "DescribeRevocations needs the role admin on the cluster"


@dataclass
class ServingNode(log_pb2_grpc.LogServiceServicer, admin_pb2_grpc.AdminServiceServicer):
    """One node."""

    log: EventLog
    applied: int | None = None
    """Up to which entry it tells of the log; None: all of it."""
    first: int = 0
    """Where its history begins."""
    refuses: bool = False
    """Whether the caller may not read everything."""
    thaws: Event | None = None
    """If set: it answers nothing before that, and keeps its connections, as a frozen one does."""
    asked: list[Position] = field(default_factory=list)
    """Where the pages that it was asked for begin."""

    @property
    def index(self) -> int:
        """The last entry that it has applied."""
        return self.log.index if self.applied is None else self.applied

    def ReadEvents(  # noqa: N802 - the contract's name
        self, request: log_pb2.ReadEventsRequest, context: grpc.ServicerContext
    ) -> log_pb2.ReadEventsResponse:
        """Answer with a page."""
        start = Position(request.start.index, request.start.ordinal)
        self.asked.append(start)
        if self.thaws is not None:
            self.thaws.wait()
        if request.HasField("start") and start < self._least:
            context.set_trailing_metadata((("holdfast-outcome", "not-applied"),))
            context.abort(grpc.StatusCode.OUT_OF_RANGE, "this node does not hold it")
        held = [row for row in self.log.rows if self.first <= row.position.index <= self.index]
        most = min(request.events_max or PAGE, PAGE)
        found = [row for row in held if row.position >= start]
        following = Position(self.index + 1, 0)
        if end := len(found) < most:
            following = max(start, following)
        elif found:
            last = found[most - 1].position
            following = Position(last.index, last.ordinal + 1)
        return log_pb2.ReadEventsResponse(
            records=[EventRecord.FromString(row.content) for row in found[:most]],
            next=_message(following),
            end=end,
            first=_message(held[0].position) if held else None,
            holdfast=self._extras(),
        )

    def DescribeCluster(  # noqa: N802 - the contract's name
        self, request: admin_pb2.DescribeClusterRequest, context: grpc.ServicerContext
    ) -> admin_pb2.DescribeClusterResponse:
        """Answer with the cluster's id; the nodes are those that the caller knows."""
        del request, context
        return admin_pb2.DescribeClusterResponse(
            cluster_id=self.log.state.cluster_id, holdfast=self._extras()
        )

    def DescribeRevocations(  # noqa: N802 - the contract's name
        self, request: admin_pb2.DescribeRevocationsRequest, context: grpc.ServicerContext
    ) -> admin_pb2.DescribeRevocationsResponse:
        """Answer who may read everything, and nobody else."""
        del request, context
        told = admin_pb2.DescribeRevocationsResponse(holdfast=self._extras())
        if self.refuses:
            told.error_code = ERROR_CODE_CLUSTER_AUTHORIZATION_FAILED
            told.holdfast.message = NEEDS
        return told

    @property
    def _least(self) -> Position:
        """Where a page may begin: right behind the last record that it holds no more."""
        gone = [row.position for row in self.log.rows if row.position.index < self.first]
        return Position(gone[-1].index, gone[-1].ordinal + 1) if gone else Position(0, 0)

    def _extras(self) -> extras_pb2.ResponseExtras:
        return extras_pb2.ResponseExtras(applied_index=self.index, log_time_ms=self.log.now_ms)


def serves(
    log: EventLog,
    *,
    applied: int | None = None,
    first: int = 0,
    refuses: bool = False,
    thaws: Event | None = None,
) -> ServingNode:
    """A node that answers what a tail asks, and no other call."""
    return ServingNode(log, applied, first, refuses, thaws)  # type: ignore[abstract]  # serves only what a tail asks


@contextmanager
def serving(*nodes: ServingNode) -> Iterator[Nodes]:
    """Have nodes serve on 127.0.0.1 for as long as the block runs."""
    with ThreadPoolExecutor(4) as threads:
        servers = [grpc.server(threads) for _ in nodes]
        addresses = []
        for server, node in zip(servers, nodes, strict=True):
            log_pb2_grpc.add_LogServiceServicer_to_server(node, server)
            admin_pb2_grpc.add_AdminServiceServicer_to_server(node, server)
            addresses.append(f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}")
            server.start()
        try:
            yield Nodes(tuple(addresses))
        finally:
            for server in servers:
                server.stop(None).wait()


def _message(place: Position) -> extras_pb2.Position:
    return extras_pb2.Position(index=place.index, ordinal=place.ordinal)
