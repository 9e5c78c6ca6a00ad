"""Logs whose first segments are of earlier versions: what these lack is read as null (S22)."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from holdfast.coordinator.model.consumer_events import MemberTarget, TargetStored
from holdfast.coordinator.model.events import LevelRaised
from holdfast.coordinator.model.levels import LEVEL_MAX
from holdfast.replay import app
from holdfast.replay.findings import Report
from holdfast.storage.segments.segment_writer import write_segment
from holdfast.storage.segments.segments import FIRST_FORMAT, FORMAT_VERSION, segments_in
from spark.consumer_logs import BORN, advanced, aimed, asked, raised, some, subscribed
from spark.earlier_segments import BUILD_BEFORE_0_2, RELEASE_0_1_0, seal_again
from spark.event_logs import EventLog, committed, formed, two_static_members
from spark.mixed_logs import up

SCHEMAS = (RELEASE_0_1_0, BUILD_BEFORE_0_2, None)
"""Of each segment; None: the present one."""


def _release_0_1_0(log: EventLog) -> None:
    for group in ("classic", "turns later", "turns early"):
        two_static_members(log, group)


def _build_before_0_2(log: EventLog) -> None:
    log.entry("", LevelRaised(LEVEL_MAX))
    log.entry("turns early", up(1, a1=(0, 1), b1=(2, 3)))
    log.entry("computes", BORN, subscribed("m"), raised(2), asked("m", 2))
    said = (MemberTarget("m", some((0,)), 1, b"said"),)
    log.entry("computes", TargetStored(2, "own", said, installed_by="m"))
    log.entry("computes", advanced("m", 2, granted=(0,)))


def _now(log: EventLog) -> None:
    log.entry("classic", committed(0, 1))
    log.entry("turns later", up(1, a1=(0, 1), b1=(2, 3)))
    log.entry("new", BORN, subscribed("m"), raised(2), aimed(2, m=(0,)))
    log.entry("new", advanced("m", 2, granted=(0,)))


@pytest.fixture(scope="module")
def report(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Of a log that a release, a build and this version have sealed, one segment each."""
    folder, log = tmp_path_factory.mktemp("n1"), formed()
    ends = []
    for part in (_release_0_1_0, _build_before_0_2, _now):
        part(log)
        ends.append(len(log.rows))
    for begin, end, schema in zip((0, *ends), ends, SCHEMAS, strict=False):
        number = FORMAT_VERSION if schema is None else FIRST_FORMAT
        write_segment(folder / "segments", log.rows[begin:end], "c", "n1", format_version=number)
    for segment, schema in zip(segments_in(folder / "segments"), SCHEMAS, strict=True):
        if schema is not None:
            seal_again(segment, schema)
    return app.verify([folder], spark=spark)


def test_s22_columns_that_a_segment_lacks_contradict_nothing(report: Report) -> None:
    assert report.findings == ()
    assert report.passed


def test_s22_groups_of_which_columns_tell_too_little_are_left_out_and_named(report: Report) -> None:
    """The others are compared: of release 0.1.0 everything is told, also of what turns later."""
    notes = [note for note in report.notes if "before 0.2" in note]

    assert len(notes) == 1
    assert notes[0].startswith("2 groups, as 'computes', have records in segments")


def test_s22_what_the_columns_of_older_segments_do_not_tell_is_left_out_and_counted(
    report: Report,
) -> None:
    """Of four groups members tell nothing of themselves; `new` is of this version alone."""
    notes = [note for note in report.notes if "older segments" in note]

    assert len(notes) == 2
    assert notes[0].startswith("4 groups have records in older segments")
    assert notes[1].startswith("settings, topics, access and requests are computed by evolve alone")
