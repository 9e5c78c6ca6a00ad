"""When topics of regular expressions are looked up (K-P1, K-P5, K-P8), and what is made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.coordinator.consumer.state import places
from holdfast.coordinator.model.commands import InstallRegexes
from holdfast.coordinator.model.consumer_events import RegexResolved, ResolvedRegex
from holdfast.coordinator.model.effects import ResolveRegexes
from unit.coordinator.consumer.talk import Talk, parts

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def talk() -> Iterator[Talk]:
    made = Talk(foo=1)
    yield made
    made.core.check_replays()


def asked(talk: Talk) -> bool:
    """Whether a plain beat of `a` has its expression looked up."""
    epoch = talk.member("a").epoch
    return ResolveRegexes(("fo+",)) in talk.decide(talk.says("a", epoch)).effects


def test_one_search_at_a_time_until_it_counts_as_lost(talk: Talk) -> None:
    """K-P5: a node that was asked may have died with the answer."""
    join = talk.joins("a", regex="fo+")
    assert ResolveRegexes(("fo+",)) in talk.decide(join).effects
    talk.send(join)
    talk.core.unresolved.clear()

    talk.core.now_ms += 60_000
    assert not asked(talk)
    talk.core.now_ms += 1
    assert asked(talk)


def test_what_was_found_is_looked_up_again_by_time(talk: Talk) -> None:
    """K-P8: nothing has changed, so nothing is written."""
    talk.send(talk.joins("a", regex="fo+"))
    talk.core.advance(1)

    talk.core.now_ms += 599_000
    assert not asked(talk)
    talk.core.now_ms += 2_000
    assert asked(talk)
    assert talk.send(InstallRegexes("g", (ResolvedRegex("fo+", ("foo",)),))) == ()


def test_a_new_leader_does_not_search_again_at_once(talk: Talk) -> None:
    """K-P5: when something was found last stands on the log."""
    talk.send(talk.joins("a", regex="fo+"))
    talk.core.advance(1)
    talk.core.fail_over()

    assert not asked(talk)
    talk.send(talk.joins("b", regex="ba."))
    beat = talk.says("b", talk.member("b").epoch)
    assert not [each for each in talk.decide(beat).effects if isinstance(each, ResolveRegexes)]
    talk.core.now_ms += 11_000
    assert ResolveRegexes(("ba.", "fo+")) in talk.decide(talk.says("a", 1)).effects


def test_p3_a_result_that_nobody_uses_is_dropped(talk: Talk) -> None:
    talk.send(talk.joins("a", regex="fo+"))
    found = ResolvedRegex("ba.", ("bar",)), ResolvedRegex("fo+", ())

    assert talk.send(InstallRegexes("g", found)) == (RegexResolved("fo+", (), 2),)
    assert talk.group.generation == 1, "to match nothing is no news"


def test_p4_a_new_expression_that_matches_nothing_gives_the_topics_of_the_old_one_free(
    talk: Talk,
) -> None:
    """INV-16: else the target still names who gave its partitions back, and nobody gets them."""
    talk.grow(foo=2)
    talk.send(talk.joins("a", regex="fo+"))
    talk.core.advance(1)
    talk.told(talk.says("a", 1))
    talk.send(talk.joins("b", "foo"))
    talk.told(talk.says("a", talk.member("a").epoch, owned=parts("foo0")))
    talk.told(talk.says("b", talk.member("b").epoch))
    assert [len(list(places(talk.member(each).owned))) for each in "ab"] == [1, 1]

    talk.told(talk.says("a", talk.member("a").epoch, regex="no+"))
    talk.told(talk.says("a", talk.member("a").epoch, owned=()))
    talk.core.advance(1)
    for member_id in "abab":
        talk.told(talk.says(member_id, talk.member(member_id).epoch))

    assert [len(list(places(talk.member(each).owned))) for each in "ab"] == [0, 2]


def test_a_result_for_a_group_that_is_gone_is_dropped(talk: Talk) -> None:
    assert talk.send(InstallRegexes("g", (ResolvedRegex("fo+", ("foo",)),))) == ()
