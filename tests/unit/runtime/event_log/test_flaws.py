"""S22: what arrived flawed is asked for again ever later, at least once an hour."""

from __future__ import annotations

from itertools import pairwise

from holdfast.runtime.event_log.flaws import AGAIN_SECONDS_MAX, Flaws


def test_s22_each_flaw_doubles_the_pause_up_to_an_hour() -> None:
    """Counted as the waits of somebody who looks each minute, and finds it flawed each time."""
    minute = 0
    flaws = Flaws(lambda: 60.0 * minute)
    tried: list[int] = []
    for minute in range(10 * 60):
        if flaws.may_try("n2 1-10"):
            tried.append(minute)
            flaws.note("n2 1-10")

    pauses = [after - before for before, after in pairwise(tried)]
    assert pauses[:6] == [1, 2, 4, 8, 16, 32]
    assert set(pauses[6:]) == {60}
    assert AGAIN_SECONDS_MAX == 3_600


def test_s22_a_flaw_is_news_once_and_only_where_it_was_found() -> None:
    flaws = Flaws(lambda: 0.0)
    assert flaws.note("n2 1-10")
    assert not flaws.note("n2 1-10")
    assert flaws.is_known("n2 1-10")
    assert flaws.may_try("n3 1-10")
    assert not flaws.is_known("n3 1-10")

    flaws.forget_all()
    assert flaws.may_try("n2 1-10")
    assert flaws.note("n2 1-10"), "a later flaw is another one"
