"""The report: numbers that the log's own times give, a picture, a page that needs no network."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from holdfast.coordinator.model.text import OBEYED
from holdfast.replay.analyse.analysis import Analysis, GroupSummary, Mark, Restless, Step
from holdfast.replay.analyse.intervals import Interval
from holdfast.replay.analyse.queries import analyse
from holdfast.replay.analyse.rebalances import Rebalance
from holdfast.replay.app import report
from holdfast.replay.findings import Check, Finding, Report
from holdfast.replay.read.node_logs import node_log
from holdfast.replay.report.picture import busiest_group, draw
from holdfast.replay.report.writer import page, text
from spark.event_logs import (
    START_MS,
    EventLog,
    assigned,
    committed,
    formed,
    generation,
    joined,
    rebalance_started,
    released,
    swapped,
    two_static_members,
    write_node,
)


def told_log() -> EventLog:
    """Stable at 500 ms; a restarts from 1500 to 1800; at 2000 to 2700 c joins and gets b's 3."""
    log = formed()
    two_static_members(log)
    log.entry("g", released("a", "a1"), after_ms=1000)
    log.entry("g", swapped("a", "a1", "a2"), after_ms=300)
    log.entry("g", rebalance_started("new <member>", "c1"), joined("c1", "c"), after_ms=200)
    log.entry("g", generation(2, "a2", "b1", "c1"), after_ms=650)
    log.entry("g", assigned(2, a2=(0, 1), b1=(2,), c1=(3,)), after_ms=50)
    for nth in range(2, 5):
        log.entry("g", swapped("b", f"b{nth - 1}", f"b{nth}", 10), after_ms=100)
    log.entry("g", committed(0, 1), after_ms=1000)
    return log


LOG = told_log()


@pytest.fixture(scope="module")
def analysis(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    log = node_log(write_node(tmp_path_factory.mktemp("node"), "n1", LOG.rows, cut_at=(7,)))
    return analyse(spark, log, [Mark(START_MS + 1500, "bounce")])


def test_a_group_in_numbers(analysis: Analysis) -> None:
    """0/1: 300 ms each for the restart. All four: 50 ms between generation and assignment."""
    (group,) = analysis.groups

    assert (group.rebalances, group.moves, group.overlaps) == (2, 1, 0)
    assert group.kept == 2 + 3
    assert (group.ownerless_ms, group.ownerless_max_ms) == (2 * 300 + 4 * 50, 300)
    assert group.stable_max_ms == 700


def test_rebalances_are_listed_with_cause(analysis: Analysis) -> None:
    assert [(r.reason, r.who, r.stable_ms) for r in analysis.rebalances] == [
        ("first join", "", 300),
        ("new <member>", "c1", 700),
    ]


def test_a_move_is_listed_and_a_stay_is_not_called_one(analysis: Analysis) -> None:
    moved = [(s.partition, s.before, s.after, s.gap_ms) for s in analysis.steps if s.moved]

    assert moved == [(3, "b", "c", 50)]


def test_an_instance_that_is_swapped_again_and_again_is_restless(analysis: Analysis) -> None:
    assert [(r.owner, r.turns, r.kinds) for r in analysis.restless] == [("b", 3, "swapped")]


def test_the_files_of_a_report(spark: SparkSession, tmp_path: Path) -> None:
    folder = write_node(tmp_path / "n1", "n1", LOG.rows)

    written = report([folder], tmp_path / "out", marks=[Mark(START_MS + 1500, "x")], spark=spark)

    assert written.picture is not None
    assert written.picture.read_bytes().startswith(b"\x89PNG")
    page = written.page.read_text()
    assert "new &lt;member&gt;" in page
    assert re.findall(r"""(?:src|href)=["'](?!data:)""", page) == []
    assert "new <member>" in written.text.read_text()


def test_what_is_drawn_is_the_busiest_group(analysis: Analysis) -> None:
    assert busiest_group(analysis) == "g"
    assert draw(analysis, "g").startswith(b"\x89PNG")


def test_no_text_of_a_caller_reaches_a_report_raw() -> None:
    """A terminal and a page obey controls; a picture takes dollar signs for a formula."""
    poison = "\x1b[2J\x9b\u202e\u2028\n$\\frac{"
    step = Step(poison, poison, 0, poison, poison, "left", 1, 1, moved=True)
    opened = Rebalance(poison, 1, 0, 0, poison, poison, "G23", "LeaveGroup", 1, 1, 1)
    owned = Interval(poison, poison, 0, poison, poison, 1, 0, 1_000, "open", 0)
    analysis = Analysis(
        node=poison,
        records=1,
        first_ms=0,
        last_ms=1_000,
        clock_offsets=((0, 0),),
        groups=(GroupSummary(poison, 1, 1, 0, 0, 0, 0, None, None),),
        rebalances=(opened,),
        steps=(step,),
        restless=(Restless(poison, poison, 3, "swapped", 0, 1),),
        intervals=(owned,),
        marks=(Mark(1, poison),),
    )
    picture = draw(analysis, poison)
    assert picture.startswith(b"\x89PNG")
    for written in (text(analysis), page(analysis, {poison: picture})):
        assert not [c for c in written.replace("\n", "") if ord(c) in OBEYED]
        assert r"\x1b[2J\x9b\u202e\u2028\n" in written
    finding = Finding("changed", poison, poison, None, poison)
    table = Report((Check("payload", poison, (finding,)),)).table()
    assert not [c for c in table.replace("\n", "") if ord(c) in OBEYED]
