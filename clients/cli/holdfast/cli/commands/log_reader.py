"""Reads the event log of a running cluster from whichever node answers, without gap or duplicate.

A node that ends a watch or does not answer is left for the next one, from `next` on: positions are
the same on every node. A node that does not hold what is asked for may have a peer that does.
"""

from __future__ import annotations

import time
from itertools import cycle
from typing import TYPE_CHECKING

import grpc

from holdfast.cli.connect import CALL_SECONDS, PAUSE_SECONDS, Cluster
from holdfast.cli.ending import fail
from holdfast.cli.patience import Patience
from holdfast.v1 import log_pb2 as lg

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.v1.events_pb2 import EventRecord
    from holdfast.v1.extras_pb2 import Position


class _Walk:
    """Which node to ask, and when to give up: after a while without any progress."""

    def __init__(self, cluster: Cluster) -> None:
        self._ring, self._said = cycle(cluster.addresses), cluster.said
        self.address = next(self._ring)
        self._refused: set[str] = set()
        self._all = set(cluster.addresses)
        self._patience = Patience(cluster.addresses)

    def progressed(self) -> None:
        """A node answered."""
        self._patience.begin()
        self._refused.clear()

    def go_on(self, error: grpc.RpcError) -> None:
        """Turn to the next node, or end the command."""
        assert isinstance(error, grpc.Call)  # noqa: S101 - what a stub raises is both
        code, said = error.code(), error.details() or error.code().name
        if code is grpc.StatusCode.OUT_OF_RANGE:
            self._refused.add(self.address)
        elif code is not grpc.StatusCode.UNAVAILABLE:
            fail(f"{self.address}: {said}")
        if self._refused == self._all:
            fail(said)
        self._patience.failed(self.address, error)
        self._patience.end_if_over("the log", self._said(self.address, error))
        self.address = next(self._ring)
        time.sleep(PAUSE_SECONDS)


def read(
    cluster: Cluster, start: Position | None, group: str | None
) -> Iterator[tuple[Sequence[EventRecord], int]]:
    """Pages from a position (None: the first held) to the end as it is then, and its index."""
    walk, end = _Walk(cluster), False
    while not end:
        request = lg.ReadEventsRequest(start=start, group_id=group)
        try:
            page = cluster.log(walk.address).ReadEvents(request, timeout=CALL_SECONDS)
        except grpc.RpcError as error:
            walk.go_on(error)
            continue
        walk.progressed()
        yield page.records, page.holdfast.applied_index
        start, end = page.next, page.end


def watch(
    cluster: Cluster, start: Position | None, group: str | None
) -> Iterator[Sequence[EventRecord]]:
    """Events from a position (None: from now) on, as they are applied, without end."""
    walk = _Walk(cluster)
    while True:
        request = lg.WatchRequest(start=start, group_id=group)
        try:
            for message in cluster.log(walk.address).Watch(request):
                walk.progressed()
                yield message.records
                start = message.next
        except grpc.RpcError as error:
            walk.go_on(error)
