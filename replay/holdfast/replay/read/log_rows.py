"""The rows that workers read from files, and the rows of their results. Imports no Spark.

Rows are dicts by column; the columns beside a payload are compared with the payload.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from holdfast.coordinator.model.events import Record
from holdfast.coordinator.model.ids import Position
from holdfast.storage.segments.segments import typed_columns

FINDINGS_MAX: Final = 100
START: Final = Position(0, -1)
"""Before every record."""

ENTRY_LAST: Final = (1 << 31) - 1
"""An ordinal after every record of its entry."""

RECORD: Final = "record"
ENTRY: Final = "entry"
HEAD: Final = "head"
FINDING: Final = "finding"
COUNT: Final = "count"

LogRow: TypeAlias = dict[str, Any]
"""One row of a file, by column."""


class Source(NamedTuple):
    """A file for a worker to read; rows up to `after` are in an earlier file as well."""

    path: str
    after: Position


class Cut(NamedTuple):
    """Where a fold ends: by position, by log time. `meta_ms`: log time to give to the state."""

    last: Position | None = None
    log_time_ms: int | None = None
    meta_ms: int | None = None

    def keeps(self, row: LogRow) -> bool:
        """Return whether a row is folded."""
        if self.last is not None and (row["idx"], row["ordinal"]) > self.last:
            return False
        return self.log_time_ms is None or row["log_time_ms"] <= self.log_time_ms


class ResultRow(NamedTuple):
    """One row of a task's result; `tag` tells which fields it uses.

    `record`: key = database, content = a state record of group `grp` ("": of no group). `entry`:
    kind, key, text, for comparison with `sql_state`. `head`: content = head of the chain.
    `finding`: kind, text, place. `count`: idx = records seen.
    """

    tag: str
    grp: str = ""
    kind: str = ""
    key: str = ""
    text: str = ""
    content: bytes = b""
    idx: int = 0
    ordinal: int = 0


@dataclass(slots=True)
class FindingRows:
    """A task's findings, as rows of its result; the first FINDINGS_MAX of them."""

    rows: list[ResultRow] = field(default_factory=list)

    def add(self, kind: str, row: LogRow, text: str) -> None:
        """Add a finding about a row."""
        if len(self.rows) < FINDINGS_MAX:
            place = (row["idx"], row["ordinal"])
            self.rows.append(ResultRow(FINDING, row["grp"], kind, "", text, b"", *place))


def read_rows(source: Source, cut: Cut) -> Iterator[LogRow]:
    """Yield the rows of a file as they are stored: by group, and in order within each group."""
    with pq.ParquetFile(source.path) as file:
        for batch in file.iter_batches():
            yield from _kept(batch.to_pylist(), source.after, cut)


def read_rows_in_order(sources: Sequence[Source], cut: Cut) -> Iterator[LogRow]:
    """Yield all rows of a segment in the order of the log; one segment fits into memory."""
    tables = [pq.read_table(source.path) for source in sources]
    whole = pa.concat_tables(tables).sort_by([("idx", "ascending"), ("ordinal", "ascending")])
    for batch in whole.to_batches(max_chunksize=10_000):
        yield from _kept(batch.to_pylist(), sources[0].after, cut)


def _kept(rows: Iterable[LogRow], after: Position, cut: Cut) -> Iterator[LogRow]:
    return (row for row in rows if (row["idx"], row["ordinal"]) > after and cut.keeps(row))


def contradictions(row: LogRow, record: Record) -> list[str]:
    """Return the columns beside a payload that differ from what the payload says."""
    said = {"idx": record.position.index, "ordinal": record.position.ordinal}
    said |= typed_columns(record)
    return [name for name, value in said.items() if row[name] != value]
