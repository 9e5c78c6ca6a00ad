"""A followed archive: each event once, in files that anybody may glob, and alerts beside them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from holdfast.coordinator.model.events import MemberExpired, SegmentSealed
from holdfast.coordinator.model.ids import Position
from holdfast.replay.findings import WrongUse
from holdfast.replay.stream.endings import TailStopped
from holdfast.replay.stream.followed import Segments
from holdfast.replay.stream.output import Output
from holdfast.replay.stream.sealed import ready, rows
from holdfast.replay.stream.tail import STARTS_MAX, run
from holdfast.replay.stream.watch import Alert, Watch
from holdfast.replay.stream.watch_state import plain, watch
from holdfast.storage.segments.segments import MANIFEST, segments_in
from spark.consumer_logs import eventful_consumer_log
from spark.cut_logs import write_cut_node
from spark.event_logs import (
    START_MS,
    EventLog,
    assigned,
    eventful_log,
    formed,
    generation,
    joined,
    rebalance_started,
    released,
    swapped,
    two_static_members,
    write_node,
)
from spark.followed_logs import LIMITS, alerts, followed, forget_commit
from spark.mixed_logs import mixed_log


def restless_log() -> EventLog:
    """Sealed in three pieces, each boundary told by the log; a's processes come and go."""
    log = formed()
    two_static_members(log)
    log.entry("", SegmentSealed(log.records[-1].position))
    for number in range(1, 4):
        log.entry("g", swapped("a", f"a{number}", f"a{number + 1}"))
    log.entry("", SegmentSealed(log.records[-1].position))
    log.entry("g", rebalance_started("b is lost"), MemberExpired("b1", "session"))
    log.entry("g", joined("c1"), after_ms=5_000)
    return log


LOG = restless_log()
SEALED = [n for n, each in enumerate(LOG.records) if isinstance(each.event, SegmentSealed)]


def events(out: Path) -> list[tuple[int, int, bytes]]:
    """All rows of all files, as a reader of Parquet that globs finds them."""
    tables = [pq.read_table(path) for path in sorted(out.glob("events/*/*.parquet"))]
    found = [row for table in tables for row in table.to_pylist()]
    return sorted((row["idx"], row["ordinal"], row["payload"]) for row in found)


def expected(log: EventLog) -> list[tuple[int, int]]:
    return [(r.position.index, r.position.ordinal) for r in log.records]


def test_each_event_once_over_batches_restarts_and_a_batch_that_is_done_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    """One segment is a batch. The last one is forgotten, as if killed before Spark's note."""
    folder, out = write_node(tmp_path / "n1", "n1", LOG.rows, tuple(SEALED)), tmp_path / "out"
    third = segments_in(folder / "segments")[2]
    (third / MANIFEST).rename(tmp_path / MANIFEST)  # it is being written

    first = followed(spark, Segments(folder), out, rows_max=1)
    (tmp_path / MANIFEST).rename(third / MANIFEST)
    second = followed(spark, Segments(folder), out, rows_max=1)
    before = alerts(out)
    forget_commit(out, 2)
    again = followed(spark, Segments(folder), out, rows_max=1)

    assert [each.number for each in (*first, *second, *again)] == [0, 1, 2, 2]
    assert [each[:2] for each in events(out)] == expected(LOG)
    assert [each[2] for each in events(out)] == [
        row["payload"]
        for path in segments_in(folder / "segments")
        for batch in rows(path, Position(0, 0))
        for row in batch.to_pylist()
    ]
    assert alerts(out) == before
    assert [(each["kind"], each["owner"]) for each in before] == [
        ("restless", "a"),
        ("ownerless", ""),
    ]


def test_a_damaged_segment_stops_the_stream_with_one_sentence(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder, out = write_node(tmp_path / "n1", "n1", LOG.rows, tuple(SEALED)), tmp_path / "out"
    path = next(segments_in(folder / "segments")[1].glob("*.parquet"))
    path.write_bytes(path.read_bytes()[:-9])

    with pytest.raises(ValueError, match=r"^the segment .* is damaged: [^\n]*from a peer$"):
        followed(spark, Segments(folder), out, rows_max=1)
    assert [each[:2] for each in events(out)] == expected(LOG)[: SEALED[0]]


def everything(log: EventLog, cuts: int) -> list[Alert]:
    """The alerts of a log in so many batches; what is known goes through JSON in between."""
    known, found, size = Watch(LIMITS), list[Alert](), -(-len(log.records) // cuts)
    for start in range(0, len(log.records), size):
        batch = log.records[start : start + size]
        found += [each for record in batch for each in known.take(record)]
        found += known.until(batch[-1].log_time_ms)
        stored = json.dumps(plain(known, batch[-1].log_time_ms))
        known = watch(json.loads(stored), LIMITS)
    return found


@pytest.mark.parametrize("made", [eventful_log, eventful_consumer_log, mixed_log, restless_log])
def test_alerts_do_not_depend_on_where_batches_end(made: Callable[[], EventLog]) -> None:
    """The whole log at once, and a batch for each record."""
    log = made()

    assert everything(log, len(log.records)) == everything(log, 1)


def test_an_instance_is_restless_at_its_third_turn_and_told_once() -> None:
    log = restless_log()
    log.entry("g", swapped("a", "a4", "a5"))

    found = [each for each in everything(log, 1) if each.kind == "restless"]

    assert [(each.owner, each.count, each.at_ms - START_MS) for each in found] == [("a", 3, 900)]


def test_partitions_are_ownerless_once_nobody_has_them_for_longer_than_the_limit() -> None:
    """B's two are free at 1100 ms. A planned restart that ends in time is none (S12)."""
    log = restless_log()
    stopped = log.entry("g", released("a", "a4"), after_ms=500)
    log.entry("g", swapped("a", "a4", "a5"), after_ms=900)

    found = [each for each in everything(log, 1) if each.kind == "ownerless"]

    assert stopped
    assert [(each.partitions, each.since_ms - START_MS) for each in found] == [
        (("t/2", "t/3"), 1_100)
    ]
    assert [each.at_ms - each.since_ms for each in found] == [1_000]


def test_a_storm_is_told_at_its_tenth_rebalance_within_ten_minutes() -> None:
    log = formed()
    two_static_members(log)
    for number in range(2, 14):
        log.entry("g", rebalance_started(f"again {number}"), after_ms=59_000)
        log.entry("g", generation(number, "a1", "b1"), assigned(number, a1=(0, 1), b1=(2, 3)))

    found = [each for each in everything(log, 1) if each.kind == "storm"]

    assert [(each.group, each.count) for each in found] == [("g", 10)]


def test_s24_records_that_retention_deleted_unread_are_told(tmp_path: Path) -> None:
    count = SEALED[0]
    folder, cut = write_cut_node(tmp_path, "n1", LOG, count), LOG.records[count - 1].position

    assert len(ready(folder, cut)) == 1
    with pytest.raises(TailStopped, match=f"up to {cut.index}.{cut.ordinal} were deleted by reten"):
        ready(folder, Position(3, 0))


def test_a_segment_that_is_missing_between_others_is_told(tmp_path: Path) -> None:
    """Its follower's own boundary says where it should end (S22)."""
    folder = write_node(tmp_path, "n1", LOG.rows, tuple(SEALED))
    shutil.rmtree(segments_in(folder / "segments")[1])

    (first,) = ready(folder, Position(0, -1))
    with pytest.raises(TailStopped, match=r"the records behind 5\.0 up to 9\.0 are missing"):
        ready(folder, first.ends.last)


def test_the_folder_of_a_tail_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/file").touch()
    with pytest.raises(WrongUse, match="holds something else"):
        Output(tmp_path / "mine")

    one = Output(tmp_path / "out")
    with one.held():
        one.claim("c")
        with pytest.raises(WrongUse, match="is of cluster c"):
            one.claim("d")
        with (
            pytest.raises(WrongUse, match="another process writes"),
            Output(tmp_path / "out").held(),
        ):
            pass


# --- a machine that has much to do --------------------------------------------------------------

LATE = PySparkException("o: java.net.SocketTimeoutException\nPython worker failed to connect back.")


@dataclass
class Query:
    """Ends at once, well or not, after some batches."""

    error: Exception | None
    batches: int = 0
    ended: bool = False
    stopped: bool = False

    def awaitTermination(self) -> None:  # noqa: N802 - Spark's name
        self.ended = True
        if self.error:
            raise self.error

    def stop(self) -> None:
        self.stopped = True


def ran(*ends: Exception | Query | None) -> list[Query]:
    """The queries that were started, of some that would end so, one after the other."""
    started = list[Query]()
    would = iter(each if isinstance(each, Query) else Query(each) for each in ends)

    def start() -> Any:  # noqa: ANN401 - Spark's query has much more
        started.append(next(would))
        return started[-1]

    def batches() -> int:
        return sum(each.batches for each in started if each.ended)

    with suppress(PySparkException):
        run(start, batches)
    return started


def test_a_stream_is_started_again_if_the_process_that_plans_it_came_late() -> None:
    """Spark waits ten seconds for it, whatever else the machine has to do."""
    assert [each.stopped for each in ran(LATE, LATE, None)] == [True] * 3
    assert len(ran(*[LATE] * 9)) == STARTS_MAX
    assert len(ran(PySparkException("Python worker exited unexpectedly"), None)) == 1


def test_starts_are_counted_anew_after_each_batch() -> None:
    """A stream of many days does not end of how often the process came late in all of them."""
    worked = Query(LATE, batches=1)

    assert ran(LATE, worked, *[LATE] * (STARTS_MAX - 2), None)[-1].error is None
    assert len(ran(LATE, Query(LATE, batches=1), *[LATE] * 9)) == 1 + STARTS_MAX


def test_a_start_that_fails_since_a_process_came_late_is_made_again() -> None:
    """With Spark Connect the process that does batches is started with the stream, and awaited."""
    tries = [LATE, LATE, None]

    def start() -> Any:  # noqa: ANN401 - in place of Spark's
        error = tries.pop(0)
        if error is not None:
            raise error
        return Query(None)

    run(start, lambda: 0)

    assert tries == []
