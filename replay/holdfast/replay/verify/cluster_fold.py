"""Fold the state that belongs to no group, from all records in order. Imports no Spark.

It is the chain over all records (S3), topics, settings, the dedupe table (S15) and counters. The
fold is serial; it decodes only the records that it needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from holdfast.coordinator.kernel.apply import replay
from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.events import RequestRecorded
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.state import State
from holdfast.coordinator.structures.pmap import PMap
from holdfast.replay.read.log_rows import (
    COUNT,
    HEAD,
    RECORD,
    START,
    Cut,
    FindingRows,
    LogRow,
    ResultRow,
    Source,
    contradictions,
    read_rows_in_order,
)
from holdfast.storage.codec.event_codec import CHAIN_START, CodecError, chain_hash, decode_record
from holdfast.storage.codec.state_image import changes


def fold_cluster(segments: Sequence[Sequence[Source]], cut: Cut) -> Iterator[ResultRow]:
    """Fold all records in order; each inner sequence holds the files of one segment."""
    fold = _ClusterFold()
    for sources in segments:
        for row in read_rows_in_order(sources, cut):
            fold.step(row)
    yield from fold.findings.rows
    yield ResultRow(HEAD, content=fold.head, idx=fold.last.index, ordinal=fold.last.ordinal)
    yield ResultRow(COUNT, idx=fold.count)
    index = fold.last.index if cut.last is None else cut.last.index
    log_time_ms = fold.log_time_ms if cut.meta_ms is None else cut.meta_ms
    state = fold.state._replace(applied_index=index, log_time_ms=log_time_ms, groups=PMap())
    for change in changes(State(), state):
        if change.content is not None:
            yield ResultRow(RECORD, key=change.database, content=change.content)


@dataclass(slots=True)
class _ClusterFold:
    """The fold so far: the chain and the part of the state that belongs to no group."""

    state: State = field(default_factory=State)
    head: bytes = CHAIN_START
    last: Position = START
    log_time_ms: int = 0
    count: int = 0
    findings: FindingRows = field(default_factory=FindingRows)

    def step(self, row: LogRow) -> None:
        """Take in the next record."""
        place = Position(row["idx"], row["ordinal"])
        if place <= self.last:
            if not row["grp"]:
                self.findings.add("duplicated", row, "the record is there more than once")
            return
        self.head = chain_hash(self.head, row["payload"])
        if not row["grp"]:
            self.count += 1
            if self.head != row["chain"]:
                self.findings.add(
                    "chain", row, "the hash chain over all records breaks before here"
                )
                self.head = row["chain"]
        self.last = place
        self.log_time_ms = max(self.log_time_ms, row["log_time_ms"])
        if not row["grp"] or row["type"] == RequestRecorded.__name__:
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
        else:
            if wrong:
                self.findings.add("payload", row, f"{', '.join(wrong)} contradict the payload")
