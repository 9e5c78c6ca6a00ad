"""The report: numbers that the log's own times give, a picture, a page that needs no network."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from holdfast.coordinator.model.text import OBEYED
from holdfast.replay.analyse.analysis import (
    Analysis,
    Bar,
    Cause,
    GroupSummary,
    Mark,
    Restless,
    Step,
)
from holdfast.replay.analyse.intervals import Interval
from holdfast.replay.analyse.queries import analyse
from holdfast.replay.analyse.rebalances import Rebalance
from holdfast.replay.analyse.timeline import Bundle, CellRun, Timeline, Totals
from holdfast.replay.app import report
from holdfast.replay.findings import Check, Finding, Report
from holdfast.replay.read.node_logs import node_log
from holdfast.replay.report.grid_picture import draw_grid
from holdfast.replay.report.page import page
from holdfast.replay.report.picture import draw, pictured
from holdfast.replay.report.writer import text
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


def test_what_instance_ids_saved_and_whose_process_was_fenced(analysis: Analysis) -> None:
    """A's swap follows its release, b's three do not (S12). Five partitions stayed, one moved."""
    (group,) = analysis.groups
    (unquiet,) = analysis.restless

    assert (group.swaps, group.moves, group.kept) == (1 + 3, 1, 5)
    assert (unquiet.owner, unquiet.planned, unquiet.fenced, unquiet.lost) == ("b", 0, 3, 0)


def test_all_rebalances_are_counted_by_cause_and_time(analysis: Analysis) -> None:
    """The log begins at 100 ms and lasts 3.9 s: bars of a second. They begin at 200 and 2000."""
    assert analysis.causes == (Cause("JoinGroup", 2, 0, 300, 700),)
    assert analysis.bar_ms == 1_000
    assert analysis.bars == (Bar(0, "JoinGroup", 1), Bar(1, "JoinGroup", 1))


def test_the_timeline_of_a_log_tells_what_its_intervals_tell(analysis: Analysis) -> None:
    """a: four grants of two, b's 3 twice before c has it; gaps as in the numbers of the group."""
    (drawn,) = analysis.timelines
    gaps_ms = sum(run.gap_ms * run.columns for run in drawn.runs)

    assert drawn.totals == analysis.whole._replace(
        intervals_below=drawn.totals.intervals_below, gaps_below=drawn.totals.gaps_below
    )
    assert (drawn.totals.gaps, gaps_ms) == (2 + 4, 2 * 300 + 4 * 50)
    assert [row.first for row in drawn.rows] == ["t/0", "t/1", "t/2", "t/3"]


def test_the_files_of_a_report(spark: SparkSession, tmp_path: Path) -> None:
    folder = write_node(tmp_path / "n1", "n1", LOG.rows)

    written = report([folder], tmp_path / "out", marks=[Mark(START_MS + 1500, "x")], spark=spark)

    assert written.picture is not None
    assert written.picture.read_bytes().startswith(b"\x89PNG")
    page = written.page.read_text()
    assert "new &lt;member&gt;" in page
    assert re.findall(r"""(?:src|href)=["'](?!data:|#)""", page) == []
    assert "new <member>" in written.text.read_text()


def test_what_is_drawn_is_the_busiest_group(analysis: Analysis) -> None:
    assert pictured(analysis) == ["g"]
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
        timelines=(_grid(poison),),
        whole=Totals(1, 1, 1),
    )
    assert draw_grid(analysis.timelines[0], 1_000).startswith(b"\x89PNG")
    picture = draw(analysis, poison)
    assert picture.startswith(b"\x89PNG")
    for written in (text(analysis), page(analysis, picture)):
        assert not [c for c in written.replace("\n", "") if ord(c) in OBEYED]
        assert r"\x1b[2J\x9b\u202e\u2028\n" in written
    finding = Finding("changed", poison, poison, None, poison)
    table = Report((Check("payload", poison, (finding,)),)).table()
    assert not [c for c in table.replace("\n", "") if ord(c) in OBEYED]


def _grid(name: str) -> Timeline:
    cell = CellRun(0, 0, 0, 1, name, 1, 1_000, 0, 0, 0, 0)
    row = Bundle(f"{name}/0", f"{name}/0", 1)
    return Timeline(name, 1_000, (row,), (cell,), Totals(1, 1, 1))
