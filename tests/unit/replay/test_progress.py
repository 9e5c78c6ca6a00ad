"""A progress line rewrites itself, tells steps, tasks and the time left, and then is gone."""

from __future__ import annotations

from io import StringIO

import pytest

from holdfast.replay.progress import SILENT, Line, line

SHARES = {"first": 30.0, "second": 60.0, "third": 10.0}


class Clock:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def _columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def shown(out: StringIO) -> str:
    """What stands on the terminal's line: each text begins where the line begins, and clears it."""
    assert "\n" not in out.getvalue()
    return out.getvalue().rpartition("\r\x1b[K")[2]


def test_it_tells_step_tasks_share_and_what_is_left() -> None:
    out, clock = StringIO(), Clock()
    told = Line(out, SHARES, clock)

    told.step("starting")
    assert shown(out) == "starting"
    clock.now = 100.0
    told.step("first")
    assert shown(out) == "first, 0%"
    clock.now = 112.0
    told.step("second")
    told.tasks(1, 4)
    # A quarter of the first round, which is two thirds of 60 %: with the first step 40 % in 12 s.
    assert shown(out) == "second, 1 of 4 tasks, 40%, about 18 s left"


def test_a_step_with_several_rounds_of_tasks_does_not_go_back_nor_end_early() -> None:
    """Two thirds of 30 % after one round, and two thirds of what is left after another one."""
    out = StringIO()
    told = Line(out, SHARES, Clock())
    told.step("first")
    told.tasks(2, 2)
    assert shown(out) == "first, 2 of 2 tasks, 20%"
    told.tasks(0, 10)
    assert shown(out) == "first, 0 of 10 tasks, 20%"
    told.tasks(10, 10)
    assert shown(out) == "first, 10 of 10 tasks, 27%"


def test_steps_without_a_share_change_nothing_and_the_end_is_100_percent() -> None:
    out = StringIO()
    told = Line(out, SHARES, Clock())
    for name in (*SHARES, "a quick one"):
        told.step(name)

    assert shown(out) == "a quick one, 100%"


def test_long_times_are_told_in_minutes_and_first_guesses_are_not_told() -> None:
    out, clock = StringIO(), Clock()
    told = Line(out, SHARES, clock)
    told.step("first")
    clock.now = 4.0
    told.tasks(1, 2)
    assert "left" not in shown(out)
    clock.now = 60.0
    told.tasks(1, 2)
    assert shown(out).endswith("about 9 min left")


def test_a_narrow_terminal_gets_one_line_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "10")
    out = StringIO()
    Line(out, SHARES, Clock()).step("state by SQL = state by evolve")

    assert shown(out) == "state by "


def test_the_line_is_gone_at_the_end_and_without_a_stream_nothing_is_said() -> None:
    out = StringIO()
    with line(out, SHARES) as told:
        told.step("first")

    assert shown(out) == ""
    with line(None, SHARES) as silent:
        assert silent is SILENT
