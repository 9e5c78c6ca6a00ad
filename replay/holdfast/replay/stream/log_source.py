"""The log of a running cluster as a source for Spark's Structured Streaming.

An offset is a position up to which a node has told the log. What a node tells is committed, and is
the same on all of them, so a batch that is done again has the same records. `served` asks the
nodes; it is loaded where they are asked, since Spark also starts processes that only make a source
or plan with it. Knows nothing of what becomes of the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from holdfast.coordinator.model.ids import Position
from holdfast.replay.stream.offsets import LOG, NODES, ROWS_MAX, Offset, offset_of, position_of

if TYPE_CHECKING:
    import pyarrow as pa

    from holdfast.replay.stream.served import LogReader

_ALL: Final = (1 << 32) - 1
"""More records than a batch ever has, and as many as a request can ask for."""


class LogSource(DataSource):
    """The format, by its name."""

    @classmethod
    def name(cls) -> str:
        """Return what `format` is given."""
        return LOG

    def schema(self) -> str:
        """Return the columns of a segment: for a stream that does not tell them."""
        from holdfast.replay.spark.log_tables import SQL_SCHEMA  # noqa: PLC0415 - as said above

        return SQL_SCHEMA

    def streamReader(self, schema: object) -> LogStream:  # noqa: N802 - Spark's name
        """Return the reader; Spark runs it in a Python process of its own."""
        del schema
        return LogStream(self.options[NODES], int(self.options[ROWS_MAX]))


@dataclass
class LogPart(InputPartition):
    """What a task reads: the records behind a position, up to another one."""

    after: Position
    last: Position


class LogStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches, and reads each of them in one task; a node is asked for one page at a time."""

    def __init__(self, nodes: str, rows_max: int) -> None:
        """`nodes`: as `Nodes.option` tells them. `rows_max`: how many records a batch may have."""
        self._nodes, self._rows_max = nodes, rows_max
        self._target: Position | None = None
        self._reader: LogReader | None = None
        """Of the process that plans; it reaches no worker."""
        self._reaches = False
        """Whether the log is known to go as far as what was read of it before."""

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Return the beginning of every log; the first read tells if it is not held any more."""
        from holdfast.replay.read.log_rows import START  # noqa: PLC0415 - as said above

        return offset_of(START)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Bound the records of a batch."""
        return ReadMaxRows(self._rows_max)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Remember what is committed now: this run reads no further."""
        self._target = self._asked().newest()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's name
        """Return the end of the next batch; `start` if there is none."""
        place = position_of(start)
        if not self._reaches:
            self._asked().check_reaches(place, self._target)
            self._reaches = True
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else _ALL
        end = self._asked().reach(place, most, self._target)
        if end == place:  # our right may have gone, or a restore come, while nothing is told
            self._reaches = False
            self._asked().check_right()
        return offset_of(end)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Return the one task of a batch."""
        return [LogPart(position_of(start), position_of(end))] if start != end else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a batch, page by page; runs in a worker."""
        from holdfast.replay.stream.served import batch_of  # noqa: PLC0415 - as said above

        part = cast("LogPart", partition)
        with _reader(self._nodes) as reader:
            for records in reader.between(part.after, part.last):
                yield batch_of(records)
            reader.check_right()

    def commit(self, end: Offset) -> None:
        """Keep nothing: Spark's checkpoint has the offsets."""

    def stop(self) -> None:
        """Close the connections of the process that plans."""
        if self._reader is not None:
            self._reader.close()

    def _asked(self) -> LogReader:
        if self._reader is None:
            self._reader = _reader(self._nodes)
        return self._reader


def _reader(nodes: str) -> LogReader:
    from holdfast.replay.stream.served import LogReader, Nodes  # noqa: PLC0415 - as said above

    return LogReader(Nodes.read(nodes))
