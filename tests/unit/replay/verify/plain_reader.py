"""Reads the files of nodes without Spark: a second implementation, to compare with Spark's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import NamedTuple

import pyarrow.parquet as pq

from holdfast.coordinator.model.ids import Position
from holdfast.replay.read.log_rows import RESULT_ARROW, ResultRow
from holdfast.replay.read.node_logs import NodeLog
from holdfast.replay.read.urls import local_file
from holdfast.replay.spark.tasks import Task, in_batches
from holdfast.replay.verify.hashes import FINDINGS_MAX, NOTHING, Comparable, Place, Sum
from holdfast.storage.segments.fast_hash import fast_hash
from holdfast.storage.segments.segments import BLOCK_INDEXES


class Stored(NamedTuple):
    """A record as often as it is stored."""

    node: str
    segment: str
    position: Position
    group: str
    hash: str
    common: bool  # whether it can be compared between nodes
    fast: int  # what manifests have since format 2

    @property
    def halves(self) -> tuple[int, int, int]:
        """One record, and the lower and upper 32 bits of the head of its hash."""
        return 1, int(self.hash[8:16], 16), int(self.hash[:8], 16)

    @property
    def fast_halves(self) -> tuple[int, int, int]:
        """The same, of its fast hash."""
        return 1, self.fast & 0xFFFFFFFF, self.fast >> 32


class PlainReader:
    """A `node_comparison.Reader` that does everything here, one after the other."""

    def run(self, tasks: Sequence[Task]) -> list[ResultRow]:
        """Rows become what a worker hands to Spark, so what Spark would refuse is refused here."""
        return [
            ResultRow(*row.values())
            for task in tasks
            for batch in in_batches(task(), RESULT_ARROW)
            for row in batch.to_pylist()
        ]

    def block_sums(self, logs: Sequence[NodeLog], common: Comparable) -> list[Sum]:
        sums: dict[tuple[str, str, int], list[list[int]]] = defaultdict(
            lambda: [[0, 0, 0], [0, 0, 0], [0, 0, 0]]
        )
        for record in stored(logs, common):
            block = record.position.index // BLOCK_INDEXES
            own, shared, fast = sums[record.node, record.segment, block]
            for total in [own, shared] if record.common else [own]:
                total[:] = map(sum, zip(total, record.halves, strict=True))
            fast[:] = map(sum, zip(fast, record.fast_halves, strict=True))
        return [Sum(*key, *map(tuple, totals)) for key, totals in sums.items()]  # type: ignore[arg-type]  # three each

    def fast_sums(self, log: NodeLog) -> list[Sum]:
        whole = self.block_sums([log], Comparable(log.last, ()))
        return [each._replace(stored=NOTHING, common=NOTHING) for each in whole]

    def differing_places(
        self, logs: Sequence[NodeLog], common: Comparable, blocks: Sequence[int]
    ) -> list[Place]:
        held: dict[Position, list[Stored]] = defaultdict(list)
        for record in stored(logs, common):
            if record.common and record.position.index // BLOCK_INDEXES in blocks:
                held[record.position].append(record)
        places = [
            Place(
                position, min(r.group for r in records), sorted((r.node, r.hash) for r in records)
            )
            for position, records in sorted(held.items())
            if not alike(records, len(logs))
        ]
        return places[:FINDINGS_MAX]


def alike(records: Sequence[Stored], nodes: int) -> bool:
    copies = [(record.node, record.hash) for record in records]
    return len(copies) == len(set(copies)) == nodes and len({each for _, each in copies}) == 1


def stored(logs: Sequence[NodeLog], common: Comparable) -> Iterator[Stored]:
    for log in logs:
        for segment in log.segments:
            for path in segment.files:
                columns = ["idx", "ordinal", "grp", "payload"]
                with local_file(path) as here:
                    table = pq.ParquetFile(here).read(columns)
                for row in table.to_pylist():
                    place = Position(row["idx"], row["ordinal"])
                    head = place.index.to_bytes(8, "big") + place.ordinal.to_bytes(4, "big")
                    digest = sha256(head + row["payload"]).hexdigest()
                    shared = max(segment.after, common.after) < place <= common.last and not any(
                        r.first <= place <= r.last for r in common.lacking
                    )
                    fast = fast_hash(place, row["payload"])
                    yield Stored(log.node, segment.key, place, row["grp"], digest, shared, fast)
