"""The sealed segments of a node as a source for Spark's Structured Streaming.

An offset is the position of the last record of a segment. Spark writes the offsets of a batch down
before it reads, so that a batch which is done again has the same records. `sealed` tells which
segments there are. Knows nothing of what becomes of the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from holdfast.coordinator.model.ids import Position
from holdfast.replay.spark.log_tables import SQL_SCHEMA
from holdfast.replay.stream import sealed
from holdfast.replay.stream.offsets import (
    FOLDER,
    ROWS_MAX,
    SEGMENTS,
    Offset,
    offset_of,
    position_of,
)


class SegmentSource(DataSource):
    """The format, by its name."""

    @classmethod
    def name(cls) -> str:
        """Return what `format` is given."""
        return SEGMENTS

    def schema(self) -> str:
        """Return the columns of a segment."""
        return SQL_SCHEMA

    def streamReader(self, schema: object) -> SegmentReader:  # noqa: N802 - Spark's name
        """Return the reader; Spark runs it in a Python process of its own."""
        del schema
        return SegmentReader(Path(self.options[FOLDER]), int(self.options[ROWS_MAX]))


@dataclass
class SegmentPart(InputPartition):
    """What one task reads: one segment, as far as it is not in an earlier one."""

    folder: str
    after: Position


class SegmentReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches of whole segments.

    Without `SupportsTriggerAvailableNow` a reader that bounds its batches would silently stop after
    the first one when it is to read all that is there.
    """

    def __init__(self, folder: Path, rows_max: int) -> None:
        """`rows_max`: a batch has no further segment once it has so many records."""
        self._folder, self._rows_max = folder, rows_max
        self._target: Position | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Return where the log begins."""
        return offset_of(sealed.beginning(self._folder))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Bound the records of a batch."""
        return ReadMaxRows(self._rows_max)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Remember what is there now: this run reads no further."""
        self._target = sealed.newest(self._folder)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's name
        """Return the end of the next batch; `start` if there is none."""
        place, count = position_of(start), 0
        rows_max = limit.max_rows if isinstance(limit, ReadMaxRows) else self._rows_max
        for segment in sealed.ready(self._folder, place):
            count += segment.manifest.count
            over = count > rows_max and place != position_of(start)
            if not isinstance(limit, ReadAllAvailable) and over:
                break
            if self._target is not None and segment.ends.last > self._target:
                break
            place = segment.ends.last
        return offset_of(place)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Return a task for each segment of a batch."""
        place = position_of(start)
        found = sealed.upto(self._folder, place, position_of(end)) if start != end else []
        return [SegmentPart(str(each.folder), max(each.after, place)) for each in found]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a segment; runs in a worker."""
        part = cast("SegmentPart", partition)
        return sealed.rows(Path(part.folder), part.after)

    def commit(self, end: Offset) -> None:
        """Keep nothing: Spark's checkpoint has the offsets."""

    def stop(self) -> None:
        """Hold nothing that would have to be closed."""
