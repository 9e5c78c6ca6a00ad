"""The state by `evolve` at several places of a log: by a plain loop, and as a verification folds.

Each is one pass. The loop has the whole state in one value, in the order of the log, as a node has.
A verification folds each bucket of groups by itself, and what belongs to no group apart, as
Spark's workers do: it tells chain and digest at each place. Neither knows the other's result.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from holdfast.coordinator.kernel.apply import replay
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.state import State
from holdfast.replay.read.log_batches import Ordered, read_in_order
from holdfast.replay.read.log_rows import FINDING, START, Cut, Entry, ResultRow
from holdfast.replay.read.node_logs import NodeLog, buckets_of, sources_by_segment
from holdfast.replay.verify import cluster_entries
from holdfast.replay.verify.anchor_marks import MARK, Mark, Reached, summed
from holdfast.replay.verify.cluster_fold import fold_cluster
from holdfast.replay.verify.group_fold import entries_of, fold_bucket
from holdfast.storage.codec.event_codec import CHAIN_START, chain_hash, decode_record
from holdfast.storage.segments.segment_reader import CLUSTER_FILE


class Folded(NamedTuple):
    """What all records up to a place lead to."""

    state: State
    chain: bytes
    """The head of the chain over all records (S3)."""
    last: Position
    records: int

    def taken_in(self, rows: Ordered, first: int, end: int) -> Folded:
        """Return what the next rows, from `first` on, lead to."""
        if first == end:
            return self
        payloads, chain = rows.payloads[first:end], self.chain
        for payload in payloads:
            chain = chain_hash(chain, payload)
        state = replay(self.state, map(decode_record, payloads))
        last = Position(int(rows.indexes[end - 1]), int(rows.ordinals[end - 1]))
        return Folded(state, chain, last, self.records + len(payloads))


def folded_at(log: NodeLog, indexes: Sequence[int]) -> Iterator[Folded]:
    """Yield what the log leads to behind each of these entries, which are in order."""
    fold, left = Folded(State(), CHAIN_START, START, 0), list(indexes)
    for sources in sources_by_segment(log):
        for rows in read_in_order(sources, Cut()):
            done = 0
            while left and left[0] < rows.indexes[-1]:
                end = bisect_right(rows.indexes, left.pop(0))
                fold, done = fold.taken_in(rows, done, end), end
                yield fold
            fold = fold.taken_in(rows, done, len(rows.payloads))
    yield from (fold for _ in left)


def entries(state: State) -> pa.Table:
    """Return a state as keys and values, in the form that the rules in SQL compute."""
    columns: tuple[list[str], ...] = ([], [], [], [])
    for group_id, entry in _all_entries(state):
        for column, value in zip(columns, (group_id, *entry), strict=True):
            column.append(value)
    names = ("grp", *Entry._fields)
    return pa.table({n: pa.array(c, pa.string()) for n, c in zip(names, columns, strict=True)})


def _all_entries(state: State) -> Iterator[tuple[str, Entry]]:
    for entry in cluster_entries.entries_of(state):
        yield "", entry
    for group in state.groups.values():
        for entry in entries_of(group):
            yield group.group_id, entry


class Verified(NamedTuple):
    """What a verification comes to."""

    reached: dict[Mark, Reached]
    findings: list[str]


def verified_at(log: NodeLog, marks: Sequence[Mark]) -> Verified:
    """Fold as a verification does, without Spark. `marks`: in order."""
    rows = list[ResultRow]()
    for row in _rows_of(log, marks):
        if row.tag in {MARK, FINDING}:
            rows.append(row)
    findings = [f"{r.kind} {r.grp!r} {r.idx}.{r.ordinal}: {r.text}" for r in rows if r.tag != MARK]
    return Verified(summed([row for row in rows if row.tag == MARK], marks), findings)


def _rows_of(log: NodeLog, marks: Sequence[Mark]) -> Iterator[ResultRow]:
    buckets = buckets_of(log)
    cluster = buckets[CLUSTER_FILE].sources if CLUSTER_FILE in buckets else ()
    for bucket in buckets.values():
        yield from fold_bucket(bucket, cluster, Cut(), marks)
    yield from fold_cluster(sources_by_segment(log), Cut(), log.begins, marks)
