"""Tell the groups of a checkpoint as rows of a log, so that SQL can go on from them.

`sql.state` knows who wrote a key last, and what wrote it may be gone. These rows stand for it: they
lie where the log begins, or before, in the order in which such events come. They say nothing new:
the state of the checkpoint was made by `evolve`, so SQL is independent only of what is behind it.
Runs in Spark's workers, and imports no Spark.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import Any, Final

from holdfast.coordinator.classic.state import Member
from holdfast.coordinator.classic.transitions import COMPLETING, PREPARING
from holdfast.coordinator.consumer.state import CONSUMER
from holdfast.coordinator.model.ids import Position, TopicPartition
from holdfast.coordinator.model.state import EMPTY, Group, Offset
from holdfast.replay.checkpoint.touched import touched
from holdfast.replay.read.log_rows import Bucket
from holdfast.replay.verify.checkpoint.cluster_rows import cluster_rows
from holdfast.replay.verify.checkpoint.consumer_rows import FIRST, Told, consumer_rows
from holdfast.storage.segments.columns import SCHEMA
from holdfast.storage.segments.columns_of_state import said
from holdfast.storage.segments.segment_reader import CLUSTER_FILE

_PHASES: Final = {
    COMPLETING: "GenerationStarted",
    PREPARING: "RebalanceStarted",
    EMPTY: "GroupEmptied",
}
"""What a group is in the midst of, by the event that began it."""

_ASSIGNED, _UNGRANTED, _SWAPPED = -8, -7, -4
_ABANDONED: Final = ((-3, "GenerationStarted"), (-2, "RebalanceStarted"))
KEPT: Final = -1
"""The ordinals of these rows, before all records of an entry, in the order in which they count."""


def checkpoint_rows(bucket: Bucket, named: Collection[str] = ()) -> Iterator[tuple[object, ...]]:
    """Yield rows of `segments.columns.SCHEMA` for each group that was there when the log begins.

    As the fold does, it leaves out those without a record that are not `named`.
    """
    if not bucket.begins.cut:
        return
    taken, last = touched(bucket, named), bucket.begins.last
    state = bucket.checkpoint(taken.has).state
    if bucket.name == CLUSTER_FILE:
        for told in cluster_rows(state, last):
            yield _row("", state.cluster_seq, told)
    for group in state.groups.values():
        for told in _events(group, last):
            yield _row(group.group_id, group.seq, told)


def _row(group_id: str, seq: int, told: Told) -> tuple[object, ...]:
    """Make a row of it. `seq`: the number of the group's last record, with which it goes on."""
    (index, ordinal), columns = told
    row = {"idx": index, "ordinal": ordinal, "grp": group_id, "grp_seq": seq, **columns}
    return tuple(row.get(name) for name in SCHEMA.names)


def _events(group: Group[Any], last: Position) -> Iterator[Told]:
    yield (
        FIRST,
        {
            "type": "GroupCreated",
            "group_type": group.group_type,
            "log_time_ms": group.state_since_ms,
        },
    )
    if group.group_type == CONSUMER:
        yield from consumer_rows(group, last)
    else:
        yield from _classic_events(group, last)
    for committed_ms, offsets in _offsets(group):
        yield FIRST, {"type": "OffsetsCommitted", "log_time_ms": committed_ms, **offsets}
    for member in group.body.members.values():
        yield Position(last.index, KEPT), _kept(member)
    yield last, _head(group)


def _kept(member: Any) -> dict[str, Any]:  # noqa: ANN401 - of both types
    """Tell what no event tells again: what was there before a member, and how long that may act."""
    return {
        "type": "MemberKept",
        "member_id": member.member_id,
        "members": list(member.replaced_requests),
        "late": member.replaced_life,
        "number": getattr(member, "unhurried_until_ms", 0),
        "predecessor_ms": member.predecessor_ms,
        "log_time_ms": 0,
    }


def _head(group: Group[Any]) -> dict[str, Any]:
    """Tell what a group is as a whole."""
    body = group.body
    names = ("protocol_type", "protocol_name", "leader")
    return {
        "type": "HeadKept",
        "beat": group.version,
        "predecessor_ms": body.predecessors_until_ms,
        **{name: getattr(body, name, None) for name in names},
    }


def _classic_events(group: Group[Any], last: Position) -> Iterator[Told]:
    numbered = {"generation": group.generation}
    yield FIRST, {"type": "GenerationStarted", **numbered}
    members = list(group.body.members.values())
    yield from _grants(members, last)
    yield from _stopped(members, last)
    if any(member.abandoned for member in members):  # by a join phase before the assignment
        for ordinal, kind in _ABANDONED:
            yield Position(last.index, ordinal), {"type": kind, **numbered}
    if phase := _PHASES.get(group.state):
        yield last, {"type": phase, **numbered, **_phase(group)}


def _phase(group: Group[Any]) -> dict[str, Any]:
    body = group.body
    return {
        "log_time_ms": group.state_since_ms,
        "members": list(body.rejoined),
        "initial": body.initial,
        "timeout_ms": body.round_timeout_ms,
        "protocol_name": body.protocol_name,
        "leader": body.leader,
    }


def _grants(members: list[Member], last: Position) -> Iterator[Told]:
    """Tell who joined before the last assignment, what it gave, who was swapped or joined since.

    It lies before all records of its entry, so that what came later is behind it in any case.
    """
    granted = [member for member in members if member.granted_index]
    assigned = min((member.granted_index for member in granted), default=0)
    for member in members:
        at = FIRST if member.granted_index else Position(last.index, _UNGRANTED)
        yield at, _joined(member, swapped=member.granted_index > assigned)
    if not granted:
        return
    grants = [
        {"member_id": m.member_id, "assignment": m.assignment or m.abandoned} for m in granted
    ]
    yield Position(assigned, _ASSIGNED), {"type": "AssignmentStored", "grants": grants}
    for member in granted:
        if member.granted_index != assigned:
            yield Position(member.granted_index, _SWAPPED), _swapped(member)


def _stopped(members: list[Member], last: Position) -> Iterator[Told]:
    for member in members:
        if member.released:
            yield last, {"type": "InstanceReleased", "member_id": member.member_id}


def _joined(member: Member, *, swapped: bool = False) -> dict[str, Any]:
    """Tell of a member. `swapped`: a swap of it is told, too, and what its join asked for then."""
    names = {"member_id": member.member_id, "instance_id": member.instance_id}
    told = {
        "number": member.joined_seq,
        "log_time_ms": member.since_ms,
        "principal": member.principal,
        "join_id": "" if swapped else member.request_id,
        "profile": said(member.profile),
    }
    return {"type": "MemberJoined", **names, **told}


def _swapped(member: Member) -> dict[str, Any]:
    return {**_joined(member), "type": "StaticMemberReplaced"}


def _offsets(group: Group[Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the offsets that were committed at one time, of each time."""
    of_times: defaultdict[int, list[tuple[TopicPartition, Offset]]] = defaultdict(list)
    for place, offset in group.offsets.items():
        of_times[offset.committed_ms].append((place, offset))
    for committed_ms, several in of_times.items():
        offsets = [
            {"topic": place.topic, "partition": place.partition, "offset": offset.offset}
            for place, offset in several
        ]
        beside = [{"leader_epoch": it.leader_epoch, "metadata": it.metadata} for _, it in several]
        yield committed_ms, {"offsets": offsets, "beside": beside}
