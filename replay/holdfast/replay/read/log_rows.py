"""Rows as the workers read them from files, and as they give their results back. Imports no Spark.

Rows are plain dicts by column; what a row says beside its payload is compared with the payload.
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
"""As an ordinal: after every record of its entry."""

RECORD: Final = "record"
ENTRY: Final = "entry"
HEAD: Final = "head"
FINDING: Final = "finding"
COUNT: Final = "count"

LogRow: TypeAlias = dict[str, Any]
"""One row of a file, by column."""


class Source(NamedTuple):
    """A file for a worker to read: its address, and up to where its rows stand elsewhere too."""

    path: str
    after: Position


class Cut(NamedTuple):
    """Up to where to fold: by position and by log time. `meta_ms`: log time of the state itself."""

    last: Position | None = None
    log_time_ms: int | None = None
    meta_ms: int | None = None

    def keeps(self, row: LogRow) -> bool:
        """Whether a row is folded."""
        if self.last is not None and (row["idx"], row["ordinal"]) > self.last:
            return False
        return self.log_time_ms is None or row["log_time_ms"] <= self.log_time_ms


class ResultRow(NamedTuple):
    """One row of a task's result; which fields mean something depends on `tag`.

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
    """What a task found wrong, as rows of its result; the first FINDINGS_MAX of it."""

    rows: list[ResultRow] = field(default_factory=list)

    def add(self, kind: str, row: LogRow, text: str) -> None:
        """Something is wrong with a row."""
        if len(self.rows) < FINDINGS_MAX:
            place = (row["idx"], row["ordinal"])
            self.rows.append(ResultRow(FINDING, row["grp"], kind, "", text, b"", *place))


def read_rows(source: Source, cut: Cut) -> Iterator[LogRow]:
    """The rows of a file, as they stand there: by group, and in each group in order."""
    with pq.ParquetFile(source.path) as file:
        for batch in file.iter_batches():
            yield from _kept(batch.to_pylist(), source.after, cut)


def read_rows_in_order(sources: Sequence[Source], cut: Cut) -> Iterator[LogRow]:
    """All rows of a segment in the order of the log; one segment fits into memory."""
    tables = [pq.read_table(source.path) for source in sources]
    whole = pa.concat_tables(tables).sort_by([("idx", "ascending"), ("ordinal", "ascending")])
    for batch in whole.to_batches(max_chunksize=10_000):
        yield from _kept(batch.to_pylist(), sources[0].after, cut)


def _kept(rows: Iterable[LogRow], after: Position, cut: Cut) -> Iterator[LogRow]:
    return (row for row in rows if (row["idx"], row["ordinal"]) > after and cut.keeps(row))


def contradictions(row: LogRow, record: Record) -> list[str]:
    """The columns beside a payload that say something else than the payload does."""
    said = {"idx": record.position.index, "ordinal": record.position.ordinal}
    said |= typed_columns(record)
    return [name for name, value in said.items() if row[name] != value]
