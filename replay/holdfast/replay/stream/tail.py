"""Follow a node's archive with Structured Streaming: each batch to files, with its alerts.

Spark's checkpoint says which batch is next and which segments it has; what alerts need to know of
the batches before lies beside it. A process that is killed at any point goes on with the batch that
it was at. The alerts of a batch are made here, in the driver, from the file that was written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from holdfast.coordinator.model.events import (
    OffsetsCommitted,
    OffsetsDeleted,
    Record,
    RequestRecorded,
)
from holdfast.replay.analyse.beginnings import owned_by
from holdfast.replay.findings import WrongUse
from holdfast.replay.read.node_logs import node_log
from holdfast.replay.stream import watch_state
from holdfast.replay.stream.output import Output
from holdfast.replay.stream.sealed import TailStopped
from holdfast.replay.stream.source import FOLDER, FORMAT, ROWS_MAX, SegmentSource
from holdfast.replay.stream.watch import GroupWatch, Limits, Watch
from holdfast.storage.codec.event_codec import CodecError, decode_record
from holdfast.storage.segments.checkpoint import CheckpointFlawed

BATCH_ROWS_MAX: Final = 500_000
"""Records of a batch, unless its first segment alone has more."""
EVERY_S: Final = 10
"""Seconds between two looks for new segments."""
_STOPPED: Final = re.compile(rf"(?:{TailStopped.__name__}|{WrongUse.__name__}): ([^\n]+)")
_SILENT: Final = pa.array(
    kind.__name__ for kind in (OffsetsCommitted, OffsetsDeleted, RequestRecorded)
)
_NO_SUCCESS: Final = ("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch that is done, for people."""

    number: int
    events: int
    alerts: int
    last: tuple[int, int]
    """The position of its last record."""


@dataclass(frozen=True, slots=True)
class Following:
    """What is followed, where to, and how."""

    folder: Path
    output: Output
    limits: Limits
    told: Callable[[Batch], None]
    """Called after each batch."""

    def take(self, frame: DataFrame, number: int) -> None:
        """Do a batch: events, alerts, and what is known then. Doing it again changes nothing."""
        log = node_log(self.folder)
        if log.segments:
            self.output.claim(log.segments[-1].manifest.cluster_id)
        writer = frame.write.option(*_NO_SUCCESS)
        events = self.output.add_events(number, writer.parquet)
        known = self._known(number)
        table = pq.read_table(events, columns=["idx", "ordinal", "log_time_ms", "type", "payload"])
        now_ms = pc.max(table["log_time_ms"]).as_py() or 0
        found = [each for record in _records(table) for each in known.take(record)]
        found += known.until(now_ms)
        self.output.add_alerts(number, [each.plain() for each in found])
        self.output.add_state(number, watch_state.plain(known, now_ms))
        order = [("idx", "ascending"), ("ordinal", "ascending")]
        (last,) = table.select(["idx", "ordinal"]).sort_by(order)[-1:].to_pylist() or [
            {"idx": 0, "ordinal": 0}
        ]
        self.told(Batch(number, table.num_rows, len(found), (last["idx"], last["ordinal"])))

    def _known(self, number: int) -> Watch:
        """Return what is known before a batch."""
        state = self.output.state_before(number)
        if state is not None:
            return watch_state.watch(state, self.limits)
        made = Watch(self.limits)
        begins = node_log(self.folder).begins
        try:
            groups = begins.read(lambda _: True).state.groups
        except CheckpointFlawed as error:
            raise TailStopped(str(error)) from error
        for group in groups.values():
            made.begin(GroupWatch(owned_by(group, begins.log_time_ms)))
        return made


def follow(
    spark: SparkSession,
    folder: Path,
    out: Path,
    *,
    limits: Limits,
    once: bool,
    every_s: float,
    rows_max: int,
    told: Callable[[Batch], None],
) -> None:
    """Follow until interrupted; `once`: until all that is there now is done.

    Raises ValueError with a sentence if the log cannot be followed any further, WrongUse for an
    `out` that holds something else.
    """
    output = Output(out)
    with output.held():
        spark.dataSource.register(SegmentSource)
        reader = spark.readStream.format(FORMAT).option(FOLDER, str(folder.resolve()))
        frame = reader.option(ROWS_MAX, str(rows_max)).load()
        doing = Following(folder, output, limits, told)
        writer = frame.writeStream.foreachBatch(doing.take)
        trigger: dict[str, Any] = {"processingTime": f"{every_s} seconds"}
        writer = writer.trigger(availableNow=True) if once else writer.trigger(**trigger)
        query = writer.option("checkpointLocation", str(output.checkpoint.resolve())).start()
        try:
            query.awaitTermination()
        except PySparkException as error:
            raise _sentence(error) from error
        finally:
            query.stop()


def _sentence(error: PySparkException) -> Exception:
    """Return what stopped the stream, if it was we who said so."""
    found = _STOPPED.search(str(error))
    return ValueError(found[1].strip()) if found else error


def _records(table: pa.Table) -> Iterator[Record]:
    """Yield the records that tell of groups, in the order of the log."""
    loud = table.filter(pc.invert(pc.is_in(table["type"], value_set=_SILENT)))
    order = [("idx", "ascending"), ("ordinal", "ascending")]
    for batch in loud.sort_by(order).to_batches(max_chunksize=10_000):
        for row in batch.select(["idx", "ordinal", "payload"]).to_pylist():
            try:
                yield decode_record(row["payload"])
            except CodecError as error:
                raise TailStopped(
                    f"the record at {row['idx']}.{row['ordinal']} cannot be read: {error.what}. "
                    "See what is wrong with `holdfast replay verify`"
                ) from error
