"""The report says what a run came to, and never calls a run good that was not."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from holdfast.chaos.runner.plan import Plan
from holdfast.chaos.runner.report import SHOWN_MAX, Report, percentiles
from holdfast.chaos.runner.run import _keep_or_remove

if TYPE_CHECKING:
    from pathlib import Path


def test_percentiles_are_by_nearest_rank() -> None:
    hundred = [n / 100 for n in range(1, 101)]

    assert percentiles(hundred) == {"p50": 0.5, "p99": 0.99, "max": 1.0, "count": 100}
    assert percentiles([2.0]) == {"p50": 2.0, "p99": 2.0, "max": 2.0, "count": 1}
    assert percentiles([]) == {}


def test_a_violation_or_a_mishap_of_the_run_fails_it() -> None:
    assert Report(1, "c").passed
    assert not Report(1, "c", violations=["I1 at 3 s: two owners"]).passed
    assert not Report(1, "c", wrong=["node-1 went on"]).passed


def test_failover_is_counted_after_kills_only() -> None:
    """What an operator calls failover; a frozen leader's is told beside it, by kind."""
    report = Report(1, "c", failovers={"kill-leader": [0.5], "pause-leader": [3.0]})

    assert report.as_json()["failover_s"]["max"] == 0.5
    assert report.as_json()["leader_lost_s"]["pause-leader"]["max"] == 3.0


def test_a_run_that_was_cut_short_does_not_look_whole() -> None:
    """Whoever reads "0 violations" must know how much was left out."""
    cut = Report(1, "c", seconds=21.0, cut_short="180 s of faults")
    (line,) = (each for each in cut.table().splitlines() if each.startswith("duration"))

    assert "CUT SHORT" in line
    assert "180 s of faults" in line
    assert cut.as_json()["cut_short"] == "180 s of faults"
    assert "CUT SHORT" not in Report(1, "c", seconds=180.0).table()


def test_the_table_names_what_could_not_be_had() -> None:
    report = Report(1, "c", faults=Counter({"kill-leader": 2}), left_out=("wall-clock",))
    report.missing = {"libfaketime": "libfaketime is not installed"}
    lines = report.table().splitlines()

    assert "not here: wall-clock" in lines
    assert any(line.split() == ["2", "kill-leader"] for line in lines)


def test_the_table_shows_some_findings_and_counts_the_rest() -> None:
    report = Report(1, "c", violations=[f"v{n}" for n in range(SHOWN_MAX + 3)])

    assert "  and 3 more" in report.table().splitlines()
    assert len(report.as_json()["violations"]) == SHOWN_MAX + 3


def test_the_table_names_what_was_not_judged() -> None:
    """Nothing seen is no proof: whoever reads "0 violations" must know of what."""
    assert "I9, I12" in Report(1, "c", unjudged=("I9", "I12")).table()
    assert "unjudged" not in Report(1, "c").table()


@pytest.mark.parametrize(
    ("undecided", "kept"), [(["I7: too many histories to look at"], True), ([], False)]
)
def test_the_evidence_of_what_is_undecided_is_kept(
    tmp_path: Path, undecided: list[str], *, kept: bool
) -> None:
    """Somebody has to look at what the checkers could not tell."""
    folder = tmp_path / "evidence"
    folder.mkdir()
    report = Report(1, "c", undecided=undecided)
    _keep_or_remove(Plan(folder, 1), report, [])

    assert folder.exists() == kept
    assert bool(report.evidence) == kept


def test_a_finding_is_one_line_whatever_it_quotes() -> None:
    """A violation quotes what was committed; a terminal must not obey it."""
    table = Report(1, "c", violations=["two owners of \x1b]0;x\x07\u202e\nall is well"]).table()
    assert r"  two owners of \x1b]0;x\x07\u202e\nall is well" in table.split("\n")
