"""Analyse a log with Spark: rebalances, owners over time, gaps, moves, restless instances.

The workers read the log once and sum it up by buckets (`bucket_tasks`); what they told is put
together here, so that only rows for people reach the driver. How finely groups are drawn depends on
all buckets, so intervals wait in Spark until that is known. Times are log time in ms (S8).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from holdfast.replay.analyse import bucket_tasks
from holdfast.replay.analyse.analysis import (
    Analysis,
    Bar,
    Commits,
    Frozen,
    GroupSummary,
    Listed,
    Mark,
    Restless,
    Step,
)
from holdfast.replay.analyse.intervals import Interval
from holdfast.replay.analyse.one_pass.bucket_tally import place_of_summary
from holdfast.replay.analyse.one_pass.clock import Tick, clock_offsets
from holdfast.replay.analyse.one_pass.commits import place_of_commits
from holdfast.replay.analyse.one_pass.drawing import Plan
from holdfast.replay.analyse.one_pass.instances import place_of_restless
from holdfast.replay.analyse.one_pass.listed import LISTED_MAX
from holdfast.replay.analyse.one_pass.merging import (
    Told,
    added,
    bars,
    causes,
    plan_of,
    timelines,
)
from holdfast.replay.analyse.one_pass.ownership_sums import place_of_step
from holdfast.replay.analyse.one_pass.rebalance_tally import (
    BARS_MAX,
    Taken,
    bar_ms,
    place_of_rebalance,
)
from holdfast.replay.analyse.rebalances import Rebalance
from holdfast.replay.analyse.timeline import Size, Totals
from holdfast.replay.read.node_logs import NodeLog, buckets_of, sources_by_segment
from holdfast.replay.spark.tasks import run_tasks

DRAWN_MAX: Final = 20_000
PICTURED_MAX: Final = 64
"""Partitions of a group of which a picture can show each interval."""
_NAME: Final = "name"
_ROWS: Final = f"{_NAME} string, content binary"
_ARROW: Final = pa.schema([(_NAME, pa.string()), ("content", pa.binary())])


def analyse(
    spark: SparkSession, log: NodeLog, marks: Sequence[Mark] = (), frozen: Sequence[Frozen] = ()
) -> Analysis:
    """Analyse a node's log. Raises ValueError for a log without records."""
    begun_ms, last_ms = _span(log)
    tasks = [
        partial(bucket_tasks.tell, each, begun_ms, last_ms) for each in buckets_of(log).values()
    ]
    frame = run_tasks(spark, tasks, _ROWS, _ARROW).persist()
    try:
        told = _collected(frame.where(f"{_NAME} <> '{bucket_tasks.LINKED}'"))
        limits = (PICTURED_MAX, DRAWN_MAX)
        plan = plan_of(told.of(Size), begun_ms, last_ms, limits)
        drawn = _drawn(frame, plan)
    finally:
        frame.unpersist()
    return _analysis(log, plan, told, drawn, last_ms, (tuple(sorted(marks)), tuple(frozen)))


def _analysis(
    log: NodeLog,
    plan: Plan,
    told: Told,
    drawn: Told,
    last_ms: int,
    given: tuple[tuple[Mark, ...], tuple[Frozen, ...]],
) -> Analysis:
    ticks = list(told.of(Tick))
    whole = added(told.of(Totals))
    slowest = told.first(Rebalance, place_of_rebalance)
    begins = log.begins
    marks, frozen = given
    return Analysis(
        node=log.node,
        records=sum(tick.records for tick in ticks),
        first_ms=plan.begun_ms,
        last_ms=last_ms,
        clock_offsets=clock_offsets(ticks),
        groups=told.first(GroupSummary, place_of_summary),
        rebalances=tuple(sorted(slowest, key=lambda each: (each.entry, each.ordinal))),
        steps=told.first(Step, place_of_step),
        restless=told.first(Restless, place_of_restless),
        intervals=tuple(sorted(drawn.of(Interval), key=_place_of_interval)),
        marks=marks,
        frozen=frozen,
        cut=begins.last if begins.cut else None,
        timelines=tuple(timelines(plan, drawn, whole)),
        whole=whole,
        listed=Listed(*map(sum, zip(*told.of(Listed), strict=True))),
        causes=tuple(causes(told.of(Taken))[:LISTED_MAX]),
        bars=tuple(bars(told.of(Bar))[: BARS_MAX * LISTED_MAX]),
        bar_ms=bar_ms(last_ms - plan.begun_ms),
        commits=told.first(Commits, place_of_commits),
    )


def _place_of_interval(each: Interval) -> tuple[int, int, str, str, int]:
    return each.start_ms, each.token, each.group, each.topic, each.partition


def _span(log: NodeLog) -> tuple[int, int]:
    """Find when the log begins and ends. A log without its first records begins at its checkpoint.

    Its first and its last segment tell, for time never goes back from record to record (S8).
    """
    if not log.segments:
        raise ValueError(f"node {log.node} has no segment")
    first = next(_ranges(log, newest_first=False), None)
    last = next(_ranges(log, newest_first=True), None)
    if first is None or last is None:
        raise ValueError("the log has no records")
    return (log.begins.log_time_ms if log.begins.cut else first[0]), last[1]


def _ranges(log: NodeLog, *, newest_first: bool) -> Iterator[tuple[int, int]]:
    """Yield the first and the last log time of each segment that has records."""
    several = sources_by_segment(log)
    for sources in reversed(several) if newest_first else several:
        found = [each for source in sources for each in bucket_tasks.times(source)]
        if found:
            yield min(found)[0], max(last for _, last in found)


def _drawn(frame: DataFrame, plan: Plan) -> Told:
    """Draw the intervals that the workers have told of."""
    linked = frame.where(f"{_NAME} = '{bucket_tasks.LINKED}'").select("content")
    return _collected(linked.mapInArrow(partial(_draw, plan), _ROWS))


def _draw(plan: Plan, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Draw what is in one of Spark's partitions; runs in a worker."""
    contents = (each.as_py() for batch in batches for each in batch.column(0))
    columns = zip(*bucket_tasks.draw(plan, contents), strict=True)
    yield pa.RecordBatch.from_arrays(
        [pa.array(c, t) for c, t in zip(columns, _ARROW.types, strict=True)], schema=_ARROW
    )


def _collected(frame: DataFrame) -> Told:
    return Told((row[0], bytes(row[1])) for row in frame.collect())
