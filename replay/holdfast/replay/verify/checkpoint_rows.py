"""Tell the groups of a checkpoint as rows of a log, so that SQL can go on from them.

`sql.state` knows who wrote a key last, and what wrote it may be gone. These rows stand for it: they
lie where the log begins, or before, in the order in which such events come. They say nothing new:
the state of the checkpoint was made by `evolve`, so SQL is independent only of what is behind it.
Runs in Spark's workers, and imports no Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from holdfast.coordinator.classic.state import Member
from holdfast.coordinator.classic.transitions import COMPLETING, PREPARING
from holdfast.coordinator.consumer.state import CONSUMER
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.state import Group
from holdfast.replay.read.log_rows import Bucket
from holdfast.replay.verify.checkpoint_consumer_rows import FIRST, Told, consumer_rows
from holdfast.storage.segments.columns import SCHEMA
from holdfast.storage.segments.segment_reader import CLUSTER_FILE

_PHASES: Final = {COMPLETING: "GenerationStarted", PREPARING: "RebalanceStarted"}
"""What a group is in the midst of, by the event that began it."""


def checkpoint_rows(bucket: Bucket) -> Iterator[tuple[object, ...]]:
    """Yield rows of `segments.columns.SCHEMA` for each group that was there when the log begins."""
    if not bucket.begins.cut:
        return
    state, last = bucket.checkpoint().state, bucket.begins.last
    if bucket.name == CLUSTER_FILE:
        yield _row("", state.cluster_seq, (last, {"type": "ClusterFormed"}))
    for group in state.groups.values():
        for told in _events(group, last):
            yield _row(group.group_id, group.seq, told)


def _row(group_id: str, seq: int, told: Told) -> tuple[object, ...]:
    """Make a row of it. `seq`: the number of the group's last record, with which it goes on."""
    (index, ordinal), columns = told
    row = {"idx": index, "ordinal": ordinal, "grp": group_id, "grp_seq": seq, **columns}
    return tuple(row.get(name) for name in SCHEMA.names)


def _events(group: Group[Any], last: Position) -> Iterator[Told]:
    if group.group_type == CONSUMER:
        yield from consumer_rows(group, last)
    else:
        yield from _classic_events(group, last)
    yield FIRST, {"type": "OffsetsCommitted", "offsets": _offsets(group)}


def _classic_events(group: Group[Any], last: Position) -> Iterator[Told]:
    yield FIRST, {"type": "GroupCreated"}
    yield FIRST, {"type": "GenerationStarted", "generation": group.generation}
    members = list(group.body.members.values())
    yield from _grants(members, last)
    yield from _stopped(members, last)
    if phase := _PHASES.get(group.state):
        yield last, {"type": phase, "generation": group.generation}


def _grants(members: list[Member], last: Position) -> Iterator[Told]:
    """Tell who joined before the last assignment, what it gave, who was swapped or joined since.

    It lies before all records of its entry, so that what came later is behind it in any case.
    """
    granted = [member for member in members if member.granted_index]
    for member in members:
        yield FIRST if member.granted_index else last, _joined(member)
    if not granted:
        return
    assigned = min(member.granted_index for member in granted)
    grants = [{"member_id": m.member_id, "assignment": m.assignment} for m in granted]
    yield Position(assigned, -1), {"type": "AssignmentStored", "grants": grants}
    for member in granted:
        if member.granted_index != assigned:
            yield Position(member.granted_index, 0), _swapped(member)


def _stopped(members: list[Member], last: Position) -> Iterator[Told]:
    for member in members:
        if member.released:
            yield last, {"type": "InstanceReleased", "member_id": member.member_id}


def _joined(member: Member) -> dict[str, Any]:
    names = {"member_id": member.member_id, "instance_id": member.instance_id}
    return {"type": "MemberJoined", **names}


def _swapped(member: Member) -> dict[str, Any]:
    return {**_joined(member), "type": "StaticMemberReplaced"}


def _offsets(group: Group[Any]) -> list[dict[str, Any]]:
    return [
        {"topic": place.topic, "partition": place.partition, "offset": offset.offset}
        for place, offset in group.offsets.items()
    ]
