"""A worker's part of the fold: fold a bucket with the coordinator's `evolve`, check each record.

A bucket holds some groups, each over its whole life, so nothing is shuffled and one state is in
memory. The result is the state records that the digest is taken over (`codec.state_image`), and the
same groups as keys and values, for comparison with `sql.state`. Runs in Spark's workers, and
imports no Spark.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import pyarrow as pa

from holdfast.coordinator.consumer.state import CONSUMER
from holdfast.coordinator.kernel.evolve import evolve_apart
from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.events import LevelRaised, Record
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.state import Group, State
from holdfast.coordinator.structures.pmap import PMap
from holdfast.replay.checkpoint.parts import Stop, part_rows
from holdfast.replay.checkpoint.touched import Touched, touched
from holdfast.replay.read.column_check import contradicting
from holdfast.replay.read.group_runs import Chains, runs_of
from holdfast.replay.read.log_batches import (
    Decoded,
    cluster_payloads,
    decoded,
    read_batches,
    row_of,
)
from holdfast.replay.read.log_rows import (
    COUNT,
    RECORD,
    Bucket,
    Cut,
    Entry,
    FindingRows,
    ResultRow,
    Source,
)
from holdfast.replay.verify import consumer_entries, member_entries
from holdfast.replay.verify.anchor_marks import GroupMarks, Mark
from holdfast.replay.verify.group_rows import began_row, group_rows, rest_row
from holdfast.storage.codec.event_codec import CodecError, decode_record
from holdfast.storage.codec.state_image import GROUPS, group_contents, weight
from holdfast.storage.segments.checkpoint import Checkpoint


def fold_bucket(
    bucket: Bucket,
    cluster: Sequence[Source],
    cut: Cut,
    marks: Sequence[Mark] = (),
    stops: Sequence[Stop] = (),
    *,
    named: Collection[str] = (),
    records: bool = False,
) -> Iterator[ResultRow]:
    """Fold the groups of a bucket, from where the log begins.

    `cluster`: the files with the cluster's own records, which say from where a level is in force.
    `marks`: where the digest is wanted as well, in order. `stops`: behind which files a checkpoint
    is. `named`: groups that are taken up though they may have no record. `records`: whether the
    records of the state are wanted.
    """
    taken = touched(bucket, named)
    begins, rest = taken.read()
    levels = Levels(_raised(cluster, cut), begins.state.raised_to)
    groups = {group.group_id: group for group in begins.state.groups.values()}
    fold = _BucketFold(levels, Chains(bucket.begins.last, dict(begins.heads)), groups, taken, rest)
    if bucket.begins.touched_only:
        yield began_row(fold.added())
    at_marks = GroupMarks(marks, lambda group_id: _weight_of(groups.get(group_id)), rest)
    for number, source in enumerate(bucket.sources):
        yield from fold.parts(bucket.name, stops, number)
        fold.findings.file = source.path
        for batch in read_batches(source, cut):
            fold.take(batch, at_marks)
    yield from fold.parts(bucket.name, stops, len(bucket.sources))
    yield from fold.findings.rows
    yield ResultRow(COUNT, idx=fold.count)
    yield rest_row(rest)
    yield from at_marks.end(sorted(groups))
    for group in groups.values():
        stored = list(group_contents(group))
        entries = () if group.group_id in fold.broken else entries_of(group)
        yield from group_rows(group.group_id, stored, entries)
        for content in stored if records else ():
            yield ResultRow(RECORD, group.group_id, key=GROUPS, content=content)


class Levels:
    """Which level was in force where; what a member keeps depends on it."""

    def __init__(self, raised: Iterable[tuple[Position, int]], first: int = 0) -> None:
        """Order them. `raised`: from where on which one is in force. `first`: before them all."""
        known = sorted(raised)
        self._places = [place for place, _ in known]
        self._levels = [first, *(level for _, level in known)]

    def at(self, place: Position) -> int:
        """Return the level that was raised last before a record; 0: none."""
        if not self._places or place >= self._places[-1]:
            return self._levels[-1]
        return self._levels[bisect_right(self._places, place)]


def _raised(sources: Iterable[Source], cut: Cut) -> Iterator[tuple[Position, int]]:
    """Find the records that raise the level; `cluster_fold` tells of those that are damaged."""
    for source in sources:
        for payload in cluster_payloads(source, cut, LevelRaised.__name__):
            try:
                record = decode_record(payload)
            except CodecError:
                continue
            if isinstance(record.event, LevelRaised):
                yield record.position, record.event.level


def _weight_of(group: Group[Any] | None) -> int:
    """Return what a group adds to the digest of a state; 0 if it is not there."""
    return sum(map(weight, group_contents(group))) if group else 0


def entries_of(group: Group[Any]) -> Iterator[Entry]:
    """Yield a group as keys and values as text, as `sql.state` computes them independently."""
    beats = group.group_type == CONSUMER
    yield from consumer_entries.entries_of(group) if beats else _classic_entries(group)
    yield from member_entries.entries_of(group)
    for (topic, partition), (offset, epoch, text, committed_ms) in group.offsets.items():
        key = f"{topic}/{partition}"
        yield Entry("offset", key, str(offset))
        yield Entry("commit", key, f"{epoch}:{committed_ms}:{crc32(text.encode())}")


def _classic_entries(group: Group[Any]) -> Iterator[Entry]:
    yield Entry("generation", "", str(group.generation))
    for member in group.body.members.values():
        yield Entry("member", member.member_id, member.instance_id or "")
        granted = f"{member.granted_index}:{member.assignment.hex()}"
        yield Entry("grant", member.member_id, granted)
    for instance_id, member_id in group.body.instances.items():
        yield Entry("instance", instance_id, member_id)


@dataclass(slots=True)
class _BucketFold:
    """The groups of a bucket during the fold. `broken`: those whose fold had to stop.

    `taken`: what it takes up. `rest`: what all else of the bucket adds to a digest.
    """

    levels: Levels
    chains: Chains
    groups: dict[str, Group[Any]]
    taken: Touched
    rest: int
    broken: set[str] = field(default_factory=set)
    findings: FindingRows = field(default_factory=FindingRows)
    count: int = 0

    def parts(self, name: str, stops: Sequence[Stop], read: int) -> Iterator[ResultRow]:
        """Yield this bucket's part of the checkpoints that are wanted when so many files are read.

        Of the state that belongs to no group it has the level: what a member keeps depends on it.
        The chain over all records is in the part of that.
        """
        for stop in (each for each in stops if each.files == read):
            level = self.levels.at(stop.last)
            alone = State(groups=PMap(self.groups), raised_to=level)
            heads = {group_id: head for group_id, head in self.chains.heads.items() if group_id}
            made = Checkpoint(stop.last, alone, heads)
            yield from part_rows(stop, name, made, self.added(), self.taken.others)

    def added(self) -> int:
        """Return what all groups of the bucket add to a digest now."""
        return self.rest + sum(map(_weight_of, self.groups.values()))

    def take(self, batch: pa.RecordBatch, at_marks: GroupMarks) -> None:
        """Take in records: check position, chain and bytes of each, then fold it."""
        told = decoded(batch)
        wrong = contradicting(batch, told.records)
        runs = None if told.unreadable or wrong else runs_of(batch)
        if runs is None or not all(map(self.chains.follows, runs)):
            self._take_singly(batch, told, wrong, at_marks)
            return
        for run in runs:
            self.chains.pass_run(run)
            self.count += run.end - run.first
            records, number = list(filter(None, told.records[run.first : run.end])), run.first
            for some in at_marks.between(run.group_id, records):
                self._evolve(batch, number, some)
                number += len(some)

    def _take_singly(
        self,
        batch: pa.RecordBatch,
        told: Decoded,
        wrong: Mapping[int, list[str]],
        at_marks: GroupMarks,
    ) -> None:
        """Take in records of which some are not as they should be: each by itself."""
        columns = ("grp", "idx", "ordinal", "payload", "chain")
        rows = zip(*(batch.column(name).to_pylist() for name in columns), strict=True)
        for number, (group_id, index, ordinal, payload, chain) in enumerate(rows):
            if not group_id:
                continue
            place, record = (index, ordinal), told.records[number]
            at_marks.before(group_id, index)
            if self.chains.has(group_id, place):
                self._say(batch, number, "duplicated", "the record is there more than once")
                continue
            self.count += 1
            if not self.chains.step(group_id, place, payload, chain):
                text = "the hash chain of the group breaks between here and before"
                self._say(batch, number, "chain", text)
            self._doubt(batch, number, told.unreadable.get(number), wrong.get(number))
            if record is not None:
                self._evolve(batch, number, [record])

    def _say(self, batch: pa.RecordBatch, number: int, kind: str, text: str) -> None:
        self.findings.add(kind, row_of(batch, number), text)

    def _doubt(
        self, batch: pa.RecordBatch, number: int, unreadable: str | None, wrong: list[str] | None
    ) -> None:
        """Say what is wrong with a payload, or with the columns beside it, if anything is."""
        if unreadable is not None:
            self._say(batch, number, "payload", f"the payload cannot be read: {unreadable}")
            self.broken.add(row_of(batch, number)["grp"])
        elif wrong:
            self._say(batch, number, "payload", f"{', '.join(wrong)} contradict the payload")

    def _evolve(self, batch: pa.RecordBatch, number: int, records: Sequence[Record]) -> None:
        """Fold records of a group, of which the first is row `number`.

        A group that breaks a rule stays as it is, as on every node (S6).
        """
        group_id, level_at = records[0].group_id, self.levels.at
        if group_id in self.broken:
            return
        group = self.groups.get(group_id)
        try:
            for record in records:
                group = evolve_apart(group, record, level_at(record.position))
                number += 1
        except InvariantBroken as error:
            self._refused(batch, number, "refuses", str(error))
        except Exception as error:  # noqa: BLE001 - whatever a forged record leads to (S6)
            self._refused(batch, number, "fails at", repr(error))
        if group is None:
            self.groups.pop(group_id, None)
        else:
            self.groups[group_id] = group

    def _refused(self, batch: pa.RecordBatch, number: int, how: str, error: str) -> None:
        row = row_of(batch, number)
        self.findings.add("rules", row, f"evolve {how} the {row['type']}: {error}")
        self.broken.add(row["grp"])
