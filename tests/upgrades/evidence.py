"""What a cluster tells of a round: the commits on its log, and the partitions that changed hands.

Asked over the contract, which every version speaks; a record of an event that only the next version
knows is passed over. Judges nothing.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from cluster.processes import poll
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import extras_pb2 as x
from holdfast.v1.admin_pb2_grpc import AdminServiceStub
from holdfast.v1.errors_pb2 import ERROR_CODE_NONE
from holdfast.v1.log_pb2 import ReadEventsRequest
from holdfast.v1.log_pb2_grpc import LogServiceStub
from upgrades.crews import GROUPS
from upgrades.judge import Logged

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cluster.load import Acked
    from cluster.processes import RunningCluster
    from holdfast.v1.events_pb2 import EventRecord

CALL_S = 10.0
REMEMBERED = 10
"""So many rebalances of a group the cluster remembers."""


class CommitLog:
    """The commits of a cluster's event log, read on from where the last look ended."""

    def __init__(self, cluster: RunningCluster) -> None:
        self._cluster = cluster
        self._next: x.Position | None = None
        self.commits: dict[str, list[Logged]] = defaultdict(list)
        """By request id; of a correct cluster one each."""

    def read_past(self, acked: Iterable[Acked]) -> None:
        """Read until the log covers these commits, as it does on the node that leads."""
        last = max((each.position for each in acked), default=(0, 0))
        poll(lambda: self._read() > last, "the log covers what was acknowledged")

    def _read(self) -> tuple[int, int]:
        """Read to the present end; return the position after it."""
        stub = LogServiceStub(self._cluster.channel(self._cluster.leader()))
        while True:
            page = stub.ReadEvents(ReadEventsRequest(start=self._next), timeout=CALL_S)
            for record in page.records:
                self._take(record)
            self._next = page.next
            if page.end:
                return page.next.index, page.next.ordinal

    def _take(self, record: EventRecord) -> None:
        if record.event.WhichOneof("body") != "offsets_committed":
            return
        for each in record.event.offsets_committed.offsets:
            logged = Logged(record.group_id, each.partition, each.offset, record.position.index)
            self.commits[record.event.request_id].append(logged)


def generations(cluster: RunningCluster) -> dict[str, int]:
    """Return the generation of each group of members."""
    return {group.group_id: group.holdfast.generation_id for group in _described(cluster)}


def moved_since(cluster: RunningCluster, before: dict[str, int]) -> int:
    """Return how many partitions changed hands in rebalances after these generations.

    A rebalance counts as one at least: here none has a reason. Those are not counted that are older
    than what the cluster remembers, of which then ten are found.
    """
    counted = 0
    for group in _described(cluster):
        since = before[group.group_id]
        for each in group.holdfast.rebalances:
            if not each.generation_id or each.generation_id > since:
                counted += max(1, each.moved + each.given + each.dropped)
    return counted


def _described(cluster: RunningCluster) -> list[a.DescribedGroup]:
    extras = x.RequestExtras(rebalances_max=REMEMBERED)
    request = a.DescribeGroupsRequest(groups=GROUPS, holdfast=extras)
    stub = AdminServiceStub(cluster.channel(cluster.leader()))
    groups = list(stub.DescribeGroups(request, timeout=CALL_S).groups)
    assert [group.error_code for group in groups] == [ERROR_CODE_NONE] * len(GROUPS)
    return groups
