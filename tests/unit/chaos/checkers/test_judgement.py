"""The judgement of all: what was broken, what was not looked at, and what cannot be judged."""

import pytest

from holdfast.chaos.checkers import ALL, TITLES, Unsound, judge
from holdfast.chaos.history.happenings import Returned
from unit.chaos.scribe import Scribe, assigned, joined, opened, started, topic


def quiet() -> Scribe:
    """A group in which nothing goes wrong."""
    s = Scribe()
    s.lead()
    s.entry(topic(2), group="")
    s.create()
    s.entry(opened(), joined("a"), joined("b"))
    s.entry(started(1, "a", "b"))
    token = s.entry(assigned(1, {"a": [0], "b": [1]}))
    s.grant("w1", "a", [0], token)
    s.grant("w2", "b", [1], token)
    s.write("w1", token, accepted=True)
    s.call("Heartbeat", "w1", member_id="a", generation=1)
    return s


def test_every_invariant_has_a_checker_and_a_name() -> None:
    assert list(ALL) == list(TITLES) == [*(f"I{number}" for number in range(1, 13)), "I17"]


def test_a_quiet_history_holds() -> None:
    judgement = judge(quiet().history)

    assert judgement.violations == []
    assert judgement.held
    assert (
        "I1   exclusive ownership             held               2 intervals" in judgement.table()
    )


def test_what_was_not_looked_at_is_visible() -> None:
    """A checker that saw nothing has proved nothing."""
    judgement = judge(quiet().history)

    assert judgement.empty == ["I4", "I6", "I10", "I11", "I17"], "nor had it static members"
    assert (
        "I10  watches tell the log            nothing to judge   0 deliveries" in judgement.table()
    )


def test_an_empty_history_is_judged_by_nobody() -> None:
    judgement = judge([])

    assert judgement.empty == list(ALL)
    assert "held" not in judgement.table()


def test_violations_come_in_order_of_time_and_are_shown() -> None:
    s = quiet()
    s.write("w0", 1, accepted=True)
    s.wait(5).grant("w3", "c", [0], token=99)

    judgement = judge(s.history)

    assert [violation.invariant for violation in judgement.violations] == ["I5", "I1"]
    assert not judgement.held
    assert "fencing is total                BROKEN, 1×" in judgement.table()
    assert "I5 at 0.003 s: t/0 of 'g': w0 wrote with token 1" in judgement.table()


def test_many_violations_are_counted_and_some_shown() -> None:
    s = quiet()
    for _ in range(9):
        s.write("w0", 1, accepted=True)

    assert "I5: and 4 more" in judge(s.history).table()


def test_only_some_can_be_asked() -> None:
    assert list(judge(quiet().history, ["I5", "I1"]).verdicts) == ["I1", "I5"]


@pytest.mark.parametrize("unknown", ["I13", "ownership"])
def test_an_invariant_that_there_is_not_is_refused(unknown: str) -> None:
    with pytest.raises(KeyError, match=unknown):
        judge([], [unknown])


def test_a_history_that_contradicts_itself_is_not_judged() -> None:
    s = quiet()
    s.say(Returned(s.now_us, 1, "ok", "", {}))
    with pytest.raises(Unsound, match="call 1 returned twice"):
        judge(s.history)

    s = quiet()
    s.say(Returned(s.now_us, 77, "ok", "", {}))
    with pytest.raises(Unsound, match="call 77 returned without having been invoked"):
        judge(s.history)

    s = quiet()
    s.say(s.history[-2])
    with pytest.raises(Unsound, match="2 places, first: Invoked at 1000 us after 2000 us"):
        judge(s.history)
