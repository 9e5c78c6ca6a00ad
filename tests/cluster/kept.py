"""Whether a cluster kept what it had acknowledged: asked for, and read from the nodes' disks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cluster.load import Place
from holdfast.coordinator.model.events import OffsetsCommitted
from holdfast.v1 import offset_pb2 as o
from holdfast.v1.offset_pb2_grpc import OffsetServiceStub

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cluster.left import Left
    from cluster.load import Acked
    from cluster.processes import RunningCluster
    from holdfast.coordinator.model.events import Record


def fetched(cluster: RunningCluster) -> dict[Place, int]:
    """Every committed offset of the workload, as the leader answers."""
    groups = [o.OffsetFetchRequestGroup(group_id=f"g{n}") for n in range(5)]
    stub = OffsetServiceStub(cluster.channel(cluster.leader()))
    answer = stub.OffsetFetch(o.OffsetFetchRequest(groups=groups), timeout=10.0)
    return {
        Place(group.group_id, partition.partition_index): partition.committed_offset
        for group in answer.groups
        for topic in group.topics
        for partition in topic.partitions
    }


def behind(offsets: Mapping[Place, int], witness: Iterable[Acked]) -> set[Place]:
    """The places where less is committed than was acknowledged last."""
    last = {acked.place: acked.offset for acked in witness}
    return {place for place, offset in last.items() if offsets.get(place, -1) < offset}


def missing(left: Left, witness: Iterable[Acked]) -> list[Acked]:
    """The acknowledged commits that a node's log does not hold as they were told."""
    found = {r.request_id: r for r in left.records if isinstance(r.event, OffsetsCommitted)}
    return [acked for acked in witness if not _holds(found.get(acked.request_id), acked)]


def contents(record: Record) -> list[tuple[str, int, int]]:
    """What a record of commits holds."""
    assert isinstance(record.event, OffsetsCommitted)
    return [(p.topic, p.partition, p.offset) for p in record.event.offsets]


def _holds(record: Record | None, acked: Acked) -> bool:
    if record is None or record.group_id != acked.place.group:
        return False
    ours = (acked.place.partition, acked.offset)
    same_entry = record.position.index == acked.position[0]
    return same_entry and [(p, offset) for _, p, offset in contents(record)] == [ours]
