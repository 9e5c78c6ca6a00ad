"""Fold the state that belongs to no group, from all records in order. Imports no Spark.

It is the chain over all records (S3), topics, settings, the dedupe table (S15) and counters. The
fold is serial; it decodes only the records that it needs, and looks at the others by columns.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from holdfast.coordinator.kernel.apply import replay
from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.events import (
    HistoryCut,
    Record,
    RecoveryNumberRaised,
    RequestRecorded,
)
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.state import State
from holdfast.coordinator.structures.pmap import PMap
from holdfast.replay.checkpoint.parts import Stop, part_rows
from holdfast.replay.read.log_batches import Ordered, read_in_order
from holdfast.replay.read.log_rows import (
    COUNT,
    HEAD,
    RECORD,
    Beginning,
    Cut,
    FindingRows,
    LogRow,
    ResultRow,
    Source,
    contradictions,
)
from holdfast.replay.read.urls import folder_of
from holdfast.replay.verify import cluster_entries
from holdfast.replay.verify.anchor_marks import Mark, Restore, mark_row, restore_row
from holdfast.replay.verify.group_rows import began_row, group_rows
from holdfast.storage.codec.event_codec import CHAIN_START, CodecError, chain_hash, decode_record
from holdfast.storage.codec.state_image import changes, weight
from holdfast.storage.segments.checkpoint import Checkpoint

_OF_GROUPS: Final = (RequestRecorded.__name__,)
"""The types of records of groups that change what belongs to no group."""


def fold_cluster(
    segments: Sequence[Sequence[Source]],
    cut: Cut,
    begins: Beginning,
    marks: Sequence[Mark] = (),
    stops: Sequence[Stop] = (),
    *,
    records: bool = False,
) -> Iterator[ResultRow]:
    """Fold all records in order; each inner sequence holds the files of one segment.

    `marks`: where chain and digest are wanted as well, in order. `stops`: behind which segments a
    checkpoint is. `records`: whether the records of the state are wanted.
    """
    fold = _begun(begins, marks)
    if begins.touched_only:
        yield began_row(fold.added(fold.state.applied_index, fold.log_time_ms))
    for count, sources in enumerate(segments):
        yield from fold.parts(stops, count)
        fold.findings.file = folder_of(sources[0].path)
        for rows in read_in_order(sources, cut, _OF_GROUPS):
            fold.take(rows)
    yield from fold.parts(stops, len(segments))
    fold.pass_marks(None)
    yield from fold.reached
    yield from fold.findings.rows
    yield from map(restore_row, fold.restores)
    (last, ordinal) = fold.last
    yield ResultRow(HEAD, content=fold.head, idx=last, ordinal=ordinal)
    yield ResultRow(COUNT, idx=fold.count)
    index = last if cut.last is None else cut.last.index
    log_time_ms = fold.log_time_ms if cut.meta_ms is None else cut.meta_ms
    stored = list(_records_of(fold.state, index, log_time_ms))
    now = fold.state._replace(log_time_ms=fold.log_time_ms)
    yield from group_rows("", (row.content for row in stored), cluster_entries.entries_of(now))
    if records:
        yield from stored


def _records_of(state: State, index: int, log_time_ms: int) -> Iterator[ResultRow]:
    """Yield the state records that belong to no group, as of an index and a log time."""
    alone = state._replace(applied_index=index, log_time_ms=log_time_ms, groups=PMap())
    for change in changes(State(), alone):
        if change.content is not None:
            yield ResultRow(RECORD, key=change.database, content=change.content)


def _begun(begins: Beginning, marks: Sequence[Mark]) -> _ClusterFold:
    """Return a fold that stands where the log begins."""
    checkpoint = begins.read(lambda _: False)
    state = checkpoint.state
    head = checkpoint.heads.get("", CHAIN_START)
    fold = _ClusterFold(begins, marks, state, head, begins.last, state.log_time_ms)
    if state.recovery_number:  # it kept at most what was before its own entry
        fold.restores.append(Restore(state.recovery_number, state.recovered_at - 1))
    return fold


@dataclass(slots=True)
class _ClusterFold:
    """The fold so far: the chain and the part of the state that belongs to no group."""

    begins: Beginning
    marks: Sequence[Mark]
    state: State
    head: bytes
    last: tuple[int, int]
    log_time_ms: int
    count: int = 0
    findings: FindingRows = field(default_factory=FindingRows)
    restores: list[Restore] = field(default_factory=list)
    reached: list[ResultRow] = field(default_factory=list)
    """A row for each mark that was passed."""

    def pass_marks(self, index: int | None) -> None:
        """Tell chain and digest at the marks before an index; None: at all that are left."""
        marks = self.marks
        while len(self.reached) < len(marks):
            mark = marks[len(self.reached)]
            if index is not None and mark.index >= index:
                return
            self.reached.append(self.at(len(self.reached), mark))

    def parts(self, stops: Sequence[Stop], read: int) -> Iterator[ResultRow]:
        """Yield this task's part of the checkpoints that are wanted behind so many segments.

        They end with the last record that was read, wherever they were expected.
        """
        for stop in (each for each in stops if each.files == read):
            place, log_time_ms = stop.last.index, self.log_time_ms
            alone = self.state._replace(applied_index=place, log_time_ms=log_time_ms, groups=PMap())
            made = Checkpoint(Position(*self.last), alone, {"": self.head})
            yield from part_rows(stop, "", made, self.added(place, log_time_ms))

    def at(self, number: int, mark: Mark) -> ResultRow:
        """Tell chain and digest as they are now, at a mark."""
        total = self.added(mark.index, mark.log_time_ms)
        return mark_row(number, total, self.head, self.last)

    def added(self, index: int, log_time_ms: int) -> int:
        """Return what this part of the state adds to a digest, as of an index and a log time."""
        records = _records_of(self.state, index, log_time_ms)
        return sum(weight(record.content) for record in records)

    def take(self, rows: Ordered) -> None:
        """Take in the next records: link all of them, and fold those that are wanted."""
        rows = self._once(rows)
        done = 0
        for number in sorted({*rows.rows, *self._marked(rows)}):
            self._link(rows, done, number)
            self.pass_marks(int(rows.indexes[number]))
            self._link(rows, number, number + 1)
            done = number + 1
            if number in rows.rows:
                self._fold(rows.rows[number])
        self._link(rows, done, len(rows.payloads))

    def _once(self, rows: Ordered) -> Ordered:
        """Leave out records that were there before; tell of those that belong to no group."""
        fresh = rows.fresh(self.last)
        if fresh.all():
            return rows
        for number, row in sorted(rows.rows.items()):
            if not (fresh[number] or row["grp"]):
                self.findings.add("duplicated", row, "the record is there more than once")
        return rows.only(fresh)

    def _marked(self, rows: Ordered) -> Iterator[int]:
        """Yield the numbers of the rows before which marks are passed."""
        for mark in self.marks[len(self.reached) :]:
            number = bisect_right(rows.indexes, mark.index)
            if number == len(rows.indexes):
                return
            yield number

    def _link(self, rows: Ordered, first: int, end: int) -> None:
        """Link rows with these numbers to the chain over all records."""
        if first == end:
            return
        head = self.head
        for payload in rows.payloads[first:end]:
            head = chain_hash(head, payload)
        self.head = head
        self.last = (int(rows.indexes[end - 1]), int(rows.ordinals[end - 1]))
        self.log_time_ms = max(self.log_time_ms, int(rows.log_times_ms[first:end].max()))

    def _fold(self, row: LogRow) -> None:
        """Fold a record; compare the chain with what one of the cluster's own says of it."""
        if not row["grp"]:
            self.count += 1
            if self.head != row["chain"]:
                text = "the hash chain over all records breaks before here"
                self.findings.add("chain", row, text)
                self.head = row["chain"]
        self._evolve(row)

    def _evolve(self, row: LogRow) -> None:
        try:
            record = decode_record(row["payload"])
            wrong = [] if row["grp"] else contradictions(row, record)
            self.state = replay(self.state, (record,))
        except CodecError as error:
            self.findings.add("payload", row, f"the payload cannot be read: {error.what}")
        except InvariantBroken as error:
            self.findings.add("rules", row, f"evolve refuses the {row['type']}: {error}")
        except Exception as error:  # noqa: BLE001 - whatever a forged record leads to (S6)
            self.findings.add("rules", row, f"evolve fails at the {row['type']}: {error!r}")
        else:
            if wrong:
                self.findings.add("payload", row, f"{', '.join(wrong)} contradict the payload")
            self._compare(row, record)
            if isinstance(record.event, RecoveryNumberRaised):
                self.restores.append(Restore(record.event.number, record.event.kept))

    def _compare(self, row: LogRow, record: Record) -> None:
        """Compare the checkpoint that the log begins with and the cut that asked for it (S24)."""
        event, begins = record.event, self.begins
        if not isinstance(event, HistoryCut) or event.last != begins.last:
            return
        if event.digest != begins.digest:
            text = f"the cut on the log tells the digest {event.digest.hex()[:16]} for {begins}"
            self.findings.add("checkpoint", row, f"{text}, which has {begins.digest.hex()[:16]}")
