"""That the seeded defects are what they say, and that what judges them can tell yes from no.

All of them are tried by `./dev teeth`; here a handful, so that the machinery cannot rot.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest

from teeth import judges
from teeth.catalogue import LAYERS, RULE, Defect, Scenario, Simulated, catalogue
from teeth.weather import WEATHERS, Weather

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

QUICK = (
    "heartbeat_commits_unverified",
    "cut_below_the_commit_index",
    "member_id_check_skipped",
    "watch_skips_an_event",
)
FEWEST = 25
DEFECTS = list(catalogue().values())


def each(name: str) -> Defect:
    return catalogue()[name]


def test_there_are_enough_of_every_layer() -> None:
    assert len(DEFECTS) >= FEWEST
    assert {defect.layer for defect in DEFECTS} == set(LAYERS)


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_each_names_a_rule_and_the_harm(defect: Defect) -> None:
    assert RULE.fullmatch(defect.rule)
    kind, number = re.match(r"([A-Z-]+)(\d+)", defect.rule).groups()  # type: ignore[union-attr]  # it does
    assert 1 <= int(number) <= {"S": 26, "I": 17, "D": 6, "FAULT-": 31}[kind]
    assert defect.title.endswith("."), "its docstring says what is taken away"


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_each_can_be_laid_over_the_product(defect: Defect) -> None:
    """What it takes away may have moved; the run of all of them would end at the first such one."""
    with defect.patch():
        pass


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_each_has_a_judge_that_exists(defect: Defect) -> None:
    match defect.judge:
        case Simulated(by=by, weather=weather):
            assert weather in WEATHERS
            assert all(re.fullmatch(r"I\d+|alarm|level|segments", name) for name in by)
        case Scenario(test=test):
            path, _, name = test.partition("::")
            text = (judges.ROOT / path).read_text()
            assert f"def {name.partition('[')[0]}(" in text


@pytest.mark.slow
def test_a_handful_is_caught() -> None:
    """Two by a scenario, two by the simulator; and the same runs are clean without them."""
    command = [sys.executable, str(judges.ROOT / "tests" / "teeth" / "run.py"), *QUICK]
    paths = [str(judges.ROOT / "tests"), *(path for path in sys.path if path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}

    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(QUICK)} of {len(QUICK)} defects caught" in done.stdout


# --- what judges can say no ---


def nothing() -> AbstractContextManager[object]:
    return nullcontext()


def fake(judge: Simulated | Scenario, name: str = "nothing_at_all") -> Defect:
    return Defect(name, "core", "S1", "Nothing is taken away.", judge, nothing)


@pytest.mark.slow
def test_nothing_taken_away_is_not_caught_by_the_simulator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(WEATHERS, "brief", Weather(("connections-reset",), 6.0))

    verdict = judges._simulated(
        fake(Simulated(("I1",), "brief", 1)), Simulated(("I1",), "brief", 1)
    )

    assert verdict.by == ""


@pytest.mark.slow
def test_a_defect_of_something_else_is_not_caught_by_a_scenario() -> None:
    judge = each("heartbeat_commits_unverified").judge
    assert isinstance(judge, Scenario)

    verdict = judges._shown_to_a_test(fake(judge, "watch_skips_an_event"), judge)

    assert verdict.by == ""


@pytest.mark.slow
def test_a_test_that_cannot_run_shows_nothing() -> None:
    judge = Scenario("tests/raft/test_log.py::there_is_no_such_test")

    verdict = judges._shown_to_a_test(fake(judge, "watch_skips_an_event"), judge)

    assert verdict.by == ""
    assert verdict.besides
