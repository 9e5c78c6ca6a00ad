"""The rows that workers read from files, and the rows of their results. Imports no Spark.

Rows are dicts by column; the columns beside a payload are compared with the payload.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from holdfast.coordinator.model.events import Record
from holdfast.coordinator.model.ids import Position
from holdfast.replay.findings import IN_FULL
from holdfast.replay.read.url_path import archive_path
from holdfast.replay.read.urls import local_file
from holdfast.storage.codec.state_image import group_of
from holdfast.storage.segments.archive_path import ArchivePath
from holdfast.storage.segments.checkpoint import (
    FETCHED_AGAIN,
    NOTHING,
    SUFFIX,
    Checkpoint,
    CheckpointFlawed,
    read_checkpoint,
    stored_groups,
)
from holdfast.storage.segments.columns import LATER, LATER_OF_TARGETS, WHOLE
from holdfast.storage.segments.segment_reader import CLUSTER_FILE
from holdfast.storage.segments.segments import bucket_file, bucket_of, typed_columns
from holdfast.storage.state.state_stream import StreamedRecord

FINDINGS_MAX: Final = 100
START: Final = Position(0, -1)
"""Before every record."""

ENTRY_LAST: Final = (1 << 31) - 1
"""An ordinal after every record of its entry."""

RECORD: Final = "record"
GROUP: Final = "group"
HEAD: Final = "head"
FINDING: Final = "finding"
COUNT: Final = "count"
REST: Final = "rest"
BEGAN: Final = "began"

LogRow: TypeAlias = dict[str, Any]
"""One row of a file, by column."""


class Beginning(NamedTuple):
    """Where a log begins: with its first record, or behind those that a checkpoint stands for."""

    last: Position = START
    """The last record that is not in the log any more."""
    path: str = ""
    """The file of the checkpoint; "": the log begins with its first record."""
    digest: bytes = b""
    log_time_ms: int = 0
    """Of the last record that is gone."""
    verified_ms: int = 0
    """When a verification left the checkpoint, in wall time; 0: retention did. If it is set, `path`
    is a folder with a file for each bucket of groups, and one for what belongs to no group."""
    touched_only: bool = False
    """Whether what has no record behind it need not be taken up again (docs/adr/0067, 0068)."""

    @property
    def cut(self) -> bool:
        """Whether the first records were cut off (S24)."""
        return bool(self.path)

    def read(
        self,
        wanted: Callable[[bytes], bool],
        bucket: str = "",
        other: Callable[[bytes], None] = lambda _: None,
    ) -> Checkpoint:
        """Read what the records before led to, with what is wanted of groups.

        `wanted`: tells of each record of groups, by its key. `bucket`: the name of the bucket that
        they are in; "": none is wanted. `other` is given the encoded records that are not wanted.
        Raises CheckpointFlawed, OSError.
        """
        if not self.cut:
            return NOTHING
        with self._advising():
            return read_checkpoint(self._part(bucket), wanted, other)

    def stored(self, wanted: Callable[[bytes], bool], bucket: str) -> Iterator[StreamedRecord]:
        """Read some records of a bucket's groups as they are stored. Raises as `read` does."""
        with self._advising():
            yield from stored_groups(self._part(bucket), wanted)

    @contextmanager
    def _advising(self) -> Iterator[None]:
        """Say what helps where the checkpoint of a run is damaged: no node has it."""
        try:
            yield
        except CheckpointFlawed as error:
            if not self.verified_ms:
                raise
            raise CheckpointFlawed(str(error).replace(FETCHED_AGAIN, IN_FULL)) from error

    def _part(self, bucket: str) -> ArchivePath:
        path = archive_path(self.path)
        return path / part_name(bucket) if self.verified_ms else path

    def __str__(self) -> str:
        """Format it for people."""
        if not self.cut:
            return "its first record"
        if self.verified_ms:
            place = f"{self.last.index}.{self.last.ordinal}"
            return f"the checkpoint of an earlier run at {place} (--full looks before it)"
        return f"the checkpoint at {self.last.index}.{self.last.ordinal}"


def part_name(bucket: str) -> str:
    """Return the file's name of a part of a run's checkpoint. `bucket`: "" is that of no group."""
    return f"{bucket.partition('.')[0] or 'cluster'}{SUFFIX}"


class Source(NamedTuple):
    """A file for a worker to read; rows up to `after` are in an earlier file as well."""

    path: str
    after: Position


class Bucket(NamedTuple):
    """The groups that share a file in each segment, over their whole life in the log."""

    name: str
    """Of the file."""
    sources: tuple[Source, ...]
    """Those files that are there, in the order of the log."""
    begins: Beginning = Beginning()

    def checkpoint(
        self,
        wanted: Callable[[bytes], bool] = lambda _: True,
        other: Callable[[bytes], None] = lambda _: None,
    ) -> Checkpoint:
        """Read what the log begins with, with the groups of this bucket alone, as far as wanted.

        `wanted`: tells of each record of these groups, by its key. `other` is given those that are
        left out, where those of this bucket lie by themselves. Of what belongs to no group only
        the bucket of the cluster's own records is sure to have more than the level. Raises
        CheckpointFlawed, OSError.
        """
        made = self.begins.read(
            lambda key: wanted(key) and bucket_file(bucket_of(group_of(key))) == self.name,
            self.name,
            other,
        )
        if not (self.begins.verified_ms and self.name == CLUSTER_FILE):
            return made
        rest = self.begins.read(lambda _: False)
        state = rest.state._replace(groups=made.state.groups)
        return made._replace(state=state, heads={**made.heads, **rest.heads})


class Cut(NamedTuple):
    """Where a fold ends: by position, by log time. `meta_ms`: log time to give to the state."""

    last: Position | None = None
    log_time_ms: int | None = None
    meta_ms: int | None = None

    def reaches(self, begins: Beginning) -> bool:
        """Return whether it lies in a log that begins there."""
        if self.last is not None and self.last < begins.last:
            return False
        return self.log_time_ms is None or self.log_time_ms >= begins.log_time_ms

    def keeps(self, row: LogRow) -> bool:
        """Return whether a row is folded."""
        if self.last is not None and (row["idx"], row["ordinal"]) > self.last:
            return False
        return self.log_time_ms is None or row["log_time_ms"] <= self.log_time_ms


class Entry(NamedTuple):
    """A key of the state and its value, of a kind, as `sql.state` computes them, too."""

    kind: str
    key: str
    value: str


class ResultRow(NamedTuple):
    """One row of a task's result; `tag` tells which fields it uses.

    `group`: a group, or "" for what belongs to none: idx = what it adds to the digest of the state,
    as 64 bits with a sign; entries = all of it, or a part, in `group_rows`. `record`: key =
    database, content = a state record of group `grp` ("": of no group). `head`: content = head of
    the chain. `finding`: kind, text, place, key = the file. `count`: idx = records seen. `rest`:
    idx = what a fold has not taken up of groups adds to the digest. `began`: idx = what a task's
    part of the state added to it where the log begins.
    """

    tag: str
    grp: str = ""
    kind: str = ""
    key: str = ""
    text: str = ""
    content: bytes = b""
    idx: int = 0
    ordinal: int = 0
    entries: Sequence[Entry] = ()


RESULT_SCHEMA: Final = (
    "tag string, grp string, kind string, key string, text string, content binary, "
    "idx bigint, ordinal bigint, entries array<struct<kind: string, key: string, value: string>>"
)
"""The columns of `ResultRow`, as Spark's SQL."""
RESULT_ARROW: Final = pa.schema(
    [
        *[(name, pa.string()) for name in ("tag", "grp", "kind", "key", "text")],
        ("content", pa.binary()),
        ("idx", pa.int64()),
        ("ordinal", pa.int64()),
        ("entries", pa.list_(pa.struct([(name, pa.string()) for name in Entry._fields]))),
    ]
)


@dataclass(slots=True)
class FindingRows:
    """A task's findings, as rows of its result; the first FINDINGS_MAX of them."""

    rows: list[ResultRow] = field(default_factory=list)
    file: str = ""
    """The file, or the folder of files, that is being read."""

    def add(self, kind: str, row: LogRow, text: str) -> None:
        """Add a finding about a row."""
        if len(self.rows) < FINDINGS_MAX:
            place = (row["idx"], row["ordinal"])
            self.rows.append(ResultRow(FINDING, row["grp"], kind, self.file, text, b"", *place))


def read_rows(source: Source, cut: Cut) -> Iterator[LogRow]:
    """Yield the rows of a file as they are stored: by group, and in order within each group."""
    with local_file(source.path) as path, pq.ParquetFile(path) as file:
        for batch in file.iter_batches():
            yield from _kept(batch.to_pylist(), source.after, cut)


def read_rows_in_order(sources: Sequence[Source], cut: Cut) -> Iterator[LogRow]:
    """Yield all rows of a segment in the order of the log; one segment fits into memory."""
    tables = [_whole(source.path) for source in sources]
    whole = pa.concat_tables(tables).sort_by([("idx", "ascending"), ("ordinal", "ascending")])
    for batch in whole.to_batches(max_chunksize=10_000):
        yield from _kept(batch.to_pylist(), sources[0].after, cut)


def _whole(address: str) -> pa.Table:
    with local_file(address) as path:
        return pq.read_table(path)


def _kept(rows: Iterable[LogRow], after: Position, cut: Cut) -> Iterator[LogRow]:
    return (row for row in rows if (row["idx"], row["ordinal"]) > after and cut.keeps(row))


def contradictions(row: LogRow, record: Record) -> list[str]:
    """Return the columns beside a payload that differ from what the payload says.

    A segment may be from a version that had fewer columns: what it lacks contradicts nothing.
    """
    said = {"idx": record.position.index, "ordinal": record.position.ordinal}
    said |= typed_columns(record)
    if WHOLE.isdisjoint(row):
        said = {name: value for name, value in said.items() if name not in WHOLE}
    if LATER.isdisjoint(row):
        said = _said_earlier(said)
    return [name for name, value in said.items() if row.get(name) != value]


def _said_earlier(said: LogRow) -> LogRow:
    """Return what a build before 0.2 wrote into the columns that it had (`columns.LATER`)."""
    earlier = {name: value for name, value in said.items() if name not in LATER}
    if said["targets"]:
        earlier["targets"] = [
            {name: value for name, value in each.items() if name not in LATER_OF_TARGETS}
            for each in said["targets"]
        ]
    return earlier
