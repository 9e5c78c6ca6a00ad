"""S9: a deadline that fires is judged again; it counts only if nothing happened since."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.coordinator.model.commands import DeadlineFired
from holdfast.coordinator.model.effects import Arm
from holdfast.coordinator.model.volatile import REBALANCE, SESSION, DeadlineKey
from unit.coordinator.consumer.talk import Talk, parts

if TYPE_CHECKING:
    from collections.abc import Iterator

OF_SESSION, OF_REBALANCE = DeadlineKey(SESSION, "a"), DeadlineKey(REBALANCE, "a")


@pytest.fixture
def talk() -> Iterator[Talk]:
    """`a` has been asked to give up t1."""
    made = Talk(t=2)
    made.send(made.joins("a", "t", rebalance_timeout_ms=5_000))
    made.send(made.joins("b", "t"))
    made.send(made.says("a", 2))
    yield made
    made.core.check_replays()


def armed(talk: Talk, key: DeadlineKey) -> int:
    return talk.core.volatile["g"].armed[key]


def test_s9_a_session_that_was_renewed_since_is_armed_again_in_full(talk: Talk) -> None:
    """K-M24: a heartbeat came between the firing and the decision."""
    talk.send(talk.says("a", 2))
    decision = talk.decide(DeadlineFired("g", OF_SESSION, armed(talk, OF_SESSION), 0))

    assert decision.events == ()
    (effect,) = decision.effects
    assert isinstance(effect, Arm)
    assert (effect.key, effect.after_ms) == (OF_SESSION, 45_000)


@pytest.mark.parametrize("key", [OF_SESSION, OF_REBALANCE])
def test_s9_another_arming_counts_no_more(key: DeadlineKey, talk: Talk) -> None:
    late = DeadlineFired("g", key, armed(talk, key) - 1, 99)

    assert talk.decide(late).events == ()


def test_m26_who_has_given_up_is_not_late(talk: Talk) -> None:
    """The deadline fired before the beat was decided, and is judged after it."""
    fired = DeadlineFired("g", OF_REBALANCE, armed(talk, OF_REBALANCE), 0)
    events = talk.decide(talk.says("a", 2, owned=parts("t0")), fired).events

    assert [type(each.event).__name__ for each in events] == ["MemberAdvanced"]


def test_m26_the_time_ends_with_the_confirmation(talk: Talk) -> None:
    talk.core.advance(4_000)
    talk.send(talk.says("a", 2, owned=parts("t0")))

    assert talk.member("a").revoking == ()
    assert OF_REBALANCE not in talk.core.volatile["g"].armed
