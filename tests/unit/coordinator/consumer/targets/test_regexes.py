"""When topics of regular expressions are looked up (K-P1, K-P5, K-P8), and what is made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.coordinator.consumer.state import places
from holdfast.coordinator.kernel.queries import newest_topic
from holdfast.coordinator.model.commands import CreateTopics, DeleteTopics
from holdfast.coordinator.model.consumer_events import RegexResolved, ResolvedRegex
from holdfast.coordinator.model.effects import InstallRegexes, ResolveRegexes
from holdfast.coordinator.model.events import TopicSize
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
    assert talk.send(InstallRegexes("g", (ResolvedRegex("fo+", ("foo",)),), 2, 9)) == ()


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

    assert talk.send(InstallRegexes("g", found, 2, 9)) == (RegexResolved("fo+", (), 2),)
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
    assert talk.send(InstallRegexes("g", (ResolvedRegex("fo+", ("foo",)),), 2, 9)) == ()


def seen(talk: Talk) -> tuple[int, int]:
    """What a search that begins now says of the topics that it looks at."""
    return newest_topic(talk.core.state), talk.core.state.applied_index


def creates(talk: Talk, *names: str) -> None:
    made = tuple(TopicSize(name, 1) for name in names)
    talk.send(CreateTopics(talk.caller(), made))


def test_p8_what_was_found_before_a_topic_came_is_not_put_over_what_was_found_after_it(
    talk: Talk,
) -> None:
    """K-P8: a result that waited longer than the next one knows less."""
    talk.send(talk.joins("a", regex="fo+"))
    old = InstallRegexes("g", (ResolvedRegex("fo+", ("foo",)),), *seen(talk))
    creates(talk, "fooo")
    talk.core.advance(1)
    found = talk.group.body.regexes["fo+"]

    assert found.topics == ("foo", "fooo")
    assert talk.send(old) == ()
    assert talk.group.body.regexes["fo+"] == found


def test_p8_a_result_says_itself_which_topics_it_knew(talk: Talk) -> None:
    """K-P8: a topic that came after it is looked for, though a later search was asked for."""
    talk.send(talk.joins("a", regex="fo+"))
    old = InstallRegexes("g", (ResolvedRegex("fo+", ("foo",)),), *seen(talk))
    creates(talk, "fooo")
    talk.core.now_ms += 60_001
    assert asked(talk)
    talk.send(talk.says("a", talk.member("a").epoch))
    talk.core.unresolved.clear()
    (resolved, _) = talk.send(old)

    assert resolved == RegexResolved("fo+", ("foo",), old.newest_index)
    talk.core.now_ms += 10_001
    assert asked(talk), "nobody has looked at the newest topic"


def test_p8_topics_are_found_after_the_newest_one_was_deleted(talk: Talk) -> None:
    """K-P8: then the newest topic is an older one than that of the search before."""
    creates(talk, "foo2")
    talk.send(talk.joins("a", regex="fo+"))
    talk.core.advance(1)
    talk.send(talk.says("a", 1, regex="f.*"))
    talk.core.advance(11_000)
    talk.send(DeleteTopics(talk.caller(), ("foo2",)))
    talk.send(talk.says("a", talk.member("a").epoch, regex="fo*"))
    talk.core.advance(11_000)
    talk.send(talk.says("a", talk.member("a").epoch))
    talk.core.advance(1)

    assert talk.group.body.regexes["fo*"].topics == ("foo",)


def test_s7_topics_that_cannot_be_written_are_not_looked_up_again_and_again(talk: Talk) -> None:
    """S7: until a topic is created, or it is time; members keep what they have."""
    talk.send(talk.joins("a", regex="fo+"))
    talk.core.unresolved.clear()
    talk.send(InstallRegexes("g", (), *seen(talk), ("fo+",)))

    talk.core.now_ms += 11_000
    assert not asked(talk)
    creates(talk, "fooo")
    assert asked(talk)


def test_s7_an_expression_that_comes_later_is_looked_up_at_once(talk: Talk) -> None:
    """K-P1: it does not suffer from one that matches too much."""
    talk.send(talk.joins("a", regex="fo+"))
    talk.core.unresolved.clear()
    talk.send(InstallRegexes("g", (), *seen(talk), ("fo+",)))

    effects = talk.decide(talk.joins("b", regex="ba.")).effects
    assert ResolveRegexes(("ba.", "fo+")) in effects
