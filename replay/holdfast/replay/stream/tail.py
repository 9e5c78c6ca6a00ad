"""Follow a log with Structured Streaming: each batch to files, with its alerts.

Spark's checkpoint says which batch is next and what it has; what is to be known of the batches
before lies beside it. A process that is killed at any point goes on with the batch that it was at.
The alerts of a batch are made here, in the driver, from the file that was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from holdfast.coordinator.model.events import (
    OffsetsCommitted,
    OffsetsDeleted,
    Record,
    RequestRecorded,
)
from holdfast.replay.spark.failures import came_late
from holdfast.replay.spark.log_tables import SQL_SCHEMA
from holdfast.replay.spark.meanwhile import meanwhile
from holdfast.replay.stream import links, watch_state
from holdfast.replay.stream.endings import TailStopped, said_in
from holdfast.replay.stream.followed import Followed
from holdfast.replay.stream.log_source import LogSource
from holdfast.replay.stream.offsets import ROWS_MAX
from holdfast.replay.stream.output import Output
from holdfast.replay.stream.source import SegmentSource
from holdfast.replay.stream.told_batches import Batch, nobody, tell_of_files
from holdfast.replay.stream.watch import Limits, Watch
from holdfast.storage.codec.event_codec import CodecError, decode_record

BATCH_ROWS_MAX: Final = 500_000
"""Records of a batch, unless it is one segment that has more."""
EVERY_S: Final = 10.0
"""Seconds between two looks for what is new."""
STARTS_MAX: Final = 5
"""How often a stream is started, from one batch to the next, while its planner comes late."""
_CHAIN: Final = "chain"
"""The head of the chain over all records, beside what alerts need to know."""
_SILENT: Final = pa.array(
    kind.__name__ for kind in (OffsetsCommitted, OffsetsDeleted, RequestRecorded)
)
_ORDER: Final = [("idx", "ascending"), ("ordinal", "ascending")]
_NO_SUCCESS: Final = ("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")


class Known(NamedTuple):
    """What is known before a batch."""

    watch: Watch
    chain: bytes | None
    """Head of the chain over all records; None: not known, an earlier version began the output."""


@dataclass(frozen=True, slots=True)
class Following:
    """What is followed, where to, and how."""

    followed: Followed
    output: Output
    limits: Limits
    told: Callable[[Batch], None]
    """Called after each batch."""

    def take(self, frame: DataFrame, number: int) -> None:
        """Do a batch: events, alerts, and what is known then. Doing it again changes nothing."""
        self.claim()
        watch, chain = self._known(number)

        def write(folder: str) -> None:
            frame.write.option(*_NO_SUCCESS).parquet(folder)
            links.head_after(chain, _read(folder))

        rows = _read(self.output.add_events(number, write))
        now_ms = pc.max(rows["log_time_ms"]).as_py() or 0
        found = [each for record in _records(rows) for each in watch.take(record)]
        found += watch.until(now_ms)
        self.output.add_alerts(number, [each.plain() for each in found])
        self._remember(number, watch_state.plain(watch, now_ms), links.head_after(chain, rows))
        places = rows.select(["idx", "ordinal"])[-1:].to_pylist() or [{"idx": 0, "ordinal": 0}]
        last = (places[0]["idx"], places[0]["ordinal"])
        self.told(Batch(number, rows.num_rows, len(found), last))

    def claim(self) -> None:
        """Note whose log this is, if that is known yet. Raises WrongUse if it is another one's."""
        if cluster_id := self.followed.cluster_id:
            self.output.claim(cluster_id)

    def _known(self, number: int) -> Known:
        state = self.output.state_before(number)
        if state is not None:
            chain = state.get(_CHAIN)
            return Known(watch_state.watch(state, self.limits), chain and bytes.fromhex(chain))
        made, begins = Watch(self.limits), self.followed.beginning()
        for group in begins.groups:
            made.begin(group)
        return Known(made, begins.chain)

    def _remember(self, number: int, state: dict[str, Any], chain: bytes | None) -> None:
        told = {} if chain is None else {_CHAIN: chain.hex()}
        self.output.add_state(number, {**state, **told})


def follow(
    spark: SparkSession,
    followed: Followed,
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
    `out` that holds something else, Unreached if no node serves the log.
    """
    output, done = Output(out), 0

    def hear(batch: Batch) -> None:
        nonlocal done
        done += 1
        told(batch)

    is_elsewhere = not isinstance(spark, SparkSession)  # a server of Spark Connect does batches
    with ExitStack() as held:
        held.enter_context(output.held())
        doing = Following(followed, output, limits, nobody if is_elsewhere else hear)
        doing.claim()  # before Spark notes how far the log of another cluster goes
        frame = _stream(spark, followed, rows_max)
        writer = frame.writeStream.foreachBatch(doing.take)
        trigger: dict[str, Any] = {"processingTime": f"{round(every_s * 1000)} milliseconds"}
        writer = writer.trigger(availableNow=True) if once else writer.trigger(**trigger)
        writer = writer.option("checkpointLocation", str(output.checkpoint.resolve()))
        if is_elsewhere:
            tells = partial(tell_of_files, output, output.last_done(), hear)
            held.enter_context(meanwhile("batches", tells))
        run(writer.start, lambda: done)


def run(start: Callable[[], StreamingQuery], batches: Callable[[], int]) -> None:
    """Run a stream to its end, and anew if the process that plans it came late.

    Spark waits ten seconds for that one alone; a machine that has much to do may need longer.
    `batches`: how many are done so far. After each, the starts are counted anew, so that a stream
    of many days does not end of what happened on its first one.
    """
    late = 0
    while True:
        before = batches()
        try:
            _run_once(start)
        except PySparkException as error:
            late = late + 1 if batches() == before else 1
            if late == STARTS_MAX or not came_late(error):
                raise said_in(str(error)) or error from error
        else:
            return


def _run_once(start: Callable[[], StreamingQuery]) -> None:
    query = start()
    try:
        query.awaitTermination()
    finally:
        query.stop()


def _stream(spark: SparkSession, followed: Followed, rows_max: int) -> DataFrame:
    for source in (SegmentSource, LogSource):
        spark.dataSource.register(source)
    reader = spark.readStream.format(followed.format).option(ROWS_MAX, str(rows_max))
    return reader.schema(SQL_SCHEMA).options(**followed.options).load()


def _read(events: Path | str) -> pa.Table:
    """Read what alerts and the chain need of a batch, in the order of the log."""
    rows = pq.read_table(events, columns=[*links.COLUMNS, "log_time_ms", "type"])
    return rows.sort_by(_ORDER)


def _records(rows: pa.Table) -> Iterator[Record]:
    """Yield the records that tell of groups."""
    loud = rows.filter(pc.invert(pc.is_in(rows["type"], value_set=_SILENT)))
    for batch in loud.to_batches(max_chunksize=10_000):
        for row in batch.select(["idx", "ordinal", "payload"]).to_pylist():
            try:
                yield decode_record(row["payload"])
            except CodecError as error:
                raise TailStopped(
                    f"the record at {row['idx']}.{row['ordinal']} cannot be read: {error.what}. "
                    "See what is wrong with `holdfast replay verify`"
                ) from error
