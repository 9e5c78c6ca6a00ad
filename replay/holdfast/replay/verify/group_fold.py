"""A worker's part of the fold: fold a bucket with the coordinator's `evolve`, check each record.

A bucket holds some groups, each over its whole life, so nothing is shuffled and one state is in
memory. The result is the state records that the digest is taken over (`codec.state_image`), and the
same groups as keys and values, for comparison with `sql.state`. Runs in Spark's workers, and
imports no Spark.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.coordinator.consumer.state import CONSUMER
from holdfast.coordinator.kernel.apply import replay
from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.events import LevelRaised, Record, RequestRecorded
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.state import Group, State
from holdfast.coordinator.structures.pmap import PMap
from holdfast.replay.read.log_rows import (
    COUNT,
    ENTRY,
    RECORD,
    Bucket,
    Cut,
    FindingRows,
    LogRow,
    ResultRow,
    Source,
    contradictions,
    read_rows,
)
from holdfast.replay.verify import consumer_entries
from holdfast.replay.verify.anchor_marks import GroupMarks, Mark
from holdfast.storage.codec.event_codec import CHAIN_START, CodecError, chain_hash, decode_record
from holdfast.storage.codec.state_image import GROUPS, changes, weight


def fold_bucket(
    bucket: Bucket, cluster: Sequence[Source], cut: Cut, marks: Sequence[Mark] = ()
) -> Iterator[ResultRow]:
    """Fold the groups of a bucket, from where the log begins.

    `cluster`: the files with the cluster's own records, which say from where a level is in force.
    `marks`: where the digest is wanted as well, in order.
    """
    begins = bucket.checkpoint()
    fold = _BucketFold(
        Levels(_raised(cluster, cut), begins.state.raised_to),
        bucket.begins.last,
        State(groups=begins.state.groups),
        dict(begins.heads),
    )
    at_marks = GroupMarks(marks, lambda group_id: _weight_of(fold.state, group_id))
    for source in bucket.sources:
        fold.findings.file = source.path
        for row in read_rows(source, cut):
            if row["grp"]:
                at_marks.before(row["grp"], row["idx"])
                fold.step(row)
    yield from fold.findings.rows
    yield ResultRow(COUNT, idx=fold.count)
    yield from at_marks.end(sorted(fold.state.groups))
    for group in fold.state.groups.values():
        yield from _records_of(group)
        if group.group_id not in fold.broken:
            yield from entries_of(group)


class Levels:
    """Which level was in force where; what a member keeps depends on it."""

    def __init__(self, raised: Iterable[tuple[Position, int]], first: int = 0) -> None:
        """Order them. `raised`: from where on which one is in force. `first`: before them all."""
        known = sorted(raised)
        self._places = [place for place, _ in known]
        self._levels = [first, *(level for _, level in known)]

    def at(self, place: Position) -> int:
        """Return the level that was raised last before a record; 0: none."""
        return self._levels[bisect_right(self._places, place)]


def _raised(sources: Iterable[Source], cut: Cut) -> Iterator[tuple[Position, int]]:
    """Find the records that raise the level; `cluster_fold` tells of those that are damaged."""
    for source in sources:
        for row in read_rows(source, cut):
            if row["grp"] or row["type"] != LevelRaised.__name__:
                continue
            try:
                record = decode_record(row["payload"])
            except CodecError:
                continue
            if isinstance(record.event, LevelRaised):
                yield record.position, record.event.level


def _records_of(group: Group[Any]) -> Iterator[ResultRow]:
    """Yield the state records of a group: the digest of a state is the sum over them."""
    alone = State(groups=PMap([(group.group_id, group)]))
    for change in changes(State(), alone):
        if change.database == GROUPS and change.content is not None:
            yield ResultRow(RECORD, group.group_id, key=change.database, content=change.content)


def _weight_of(state: State, group_id: str) -> int:
    """Return what a group adds to the digest of a state; 0 if it is not there."""
    group = state.groups.get(group_id)
    return sum(weight(row.content) for row in _records_of(group)) if group else 0


def entries_of(group: Group[Any]) -> Iterator[ResultRow]:
    """Yield a group as keys and values as text, as `sql.state` computes them independently."""
    name = group.group_id
    own = consumer_entries.entries_of if group.group_type == CONSUMER else _classic_entries
    for entry in own(group):
        yield ResultRow(ENTRY, name, *entry)
    for place, offset in group.offsets.items():
        yield ResultRow(
            ENTRY, name, "offset", f"{place.topic}/{place.partition}", str(offset.offset)
        )


def _classic_entries(group: Group[Any]) -> Iterator[tuple[str, str, str]]:
    yield "generation", "", str(group.generation)
    for member in group.body.members.values():
        yield "member", member.member_id, member.instance_id or ""
        yield "grant", member.member_id, f"{member.granted_index}:{member.assignment.hex()}"
    for instance_id, member_id in group.body.instances.items():
        yield "instance", instance_id, member_id


@dataclass(slots=True)
class _BucketFold:
    """The groups of a bucket during the fold. `broken`: those whose fold had to stop."""

    levels: Levels
    begins: Position
    state: State
    heads: dict[str, bytes]
    last: dict[str, Position] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    findings: FindingRows = field(default_factory=FindingRows)
    count: int = 0

    def step(self, row: LogRow) -> None:
        """Take in one record: check its position, chain and bytes, then fold it."""
        group_id, place = row["grp"], Position(row["idx"], row["ordinal"])
        if place <= self.last.get(group_id, self.begins):
            self.findings.add("duplicated", row, "the record is there more than once")
            return
        self.count += 1
        self.last[group_id] = place
        head = self.heads.get(group_id, CHAIN_START)
        if chain_hash(head, row["payload"]) != row["chain"]:
            self.findings.add(
                "chain", row, "the hash chain of the group breaks between here and before"
            )
        self.heads[group_id] = row["chain"]
        record = self._decode(row)
        if record is not None and group_id not in self.broken:
            self._evolve(row, record)

    def _decode(self, row: LogRow) -> Record | None:
        try:
            record = decode_record(row["payload"])
        except CodecError as error:
            self.findings.add("payload", row, f"the payload cannot be read: {error.what}")
            self.broken.add(row["grp"])
            return None
        wrong = contradictions(row, record)
        if wrong:
            self.findings.add("payload", row, f"{', '.join(wrong)} contradict the payload")
        return record

    def _evolve(self, row: LogRow, record: Record) -> None:
        """Fold a record; a group that breaks a rule stays as it is, as on every node (S6)."""
        level, state = self.levels.at(record.position), self.state
        if level != state.raised_to:
            state = state._replace(raised_to=level)
        try:
            state = replay(state, (record,))
        except InvariantBroken as error:
            self.findings.add("rules", row, f"evolve refuses the {row['type']}: {error}")
            self.broken.add(row["grp"])
            return
        except Exception as error:  # noqa: BLE001 - whatever a forged record leads to (S6)
            self.findings.add("rules", row, f"evolve fails at the {row['type']}: {error!r}")
            self.broken.add(row["grp"])
            return
        if isinstance(record.event, RequestRecorded):  # `cluster_fold` keeps them: it sees all
            state = _without_requests(state)
        self.state = state


def _without_requests(state: State) -> State:
    empty = State()
    return state._replace(
        requests=empty.requests,
        requests_by_number=empty.requests_by_number,
        requests_next=empty.requests_next,
        requests_floor_ms=empty.requests_floor_ms,
    )
