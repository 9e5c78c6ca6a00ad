"""S11: a shorter timeout counts only when a member can reckon with the longer one no more.

It hears of the new one by an answer, and that may be lost: so it may act for as long as the answers
before allow it, and nobody else may own what it owns until then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.coordinator.model.consumer_events import MemberSubscribed
from unit.coordinator.consumer.talk import Talk, parts

if TYPE_CHECKING:
    from collections.abc import Iterator

LONG_MS, SHORT_MS = 45_000, 10_000
SETTING = "consumer_session_timeout_ms"
LIFE = "01900000-0000-7000-8000-000000000001"


@pytest.fixture
def talk() -> Iterator[Talk]:
    made = Talk(t=2)
    made.set(
        consumer_min_session_timeout_ms="6000",
        consumer_max_session_timeout_ms="600000",
    )
    made.told(made.joins("a", "t", life=LIFE, beat=1))
    yield made
    made.core.check_replays()


def beats(talk: Talk, **said: object) -> int:
    """A plain heartbeat; the session timeout that its answer tells."""
    return talk.told(talk.says("a", talk.member("a").epoch, **said)).grant.session_timeout_ms


def lives_for_ms(talk: Talk) -> int:
    """How long the member lives that is not heard any more, in whole seconds."""
    begun = talk.core.now_ms
    while "a" in talk.group.body.members:
        talk.core.advance(1_000)
    return talk.core.now_ms - begun


def test_s11_who_was_not_heard_since_a_session_was_lowered_has_the_one_before(talk: Talk) -> None:
    talk.set(**{SETTING: str(SHORT_MS)})

    assert lives_for_ms(talk) == LONG_MS


@pytest.mark.parametrize("fails_over", [False, True])
def test_s11_the_answer_that_told_a_shorter_session_may_be_lost(
    fails_over: bool,  # noqa: FBT001 - a parameter
    talk: Talk,
) -> None:
    """What the member knew counts from that heartbeat once more; a new leader knows it, too."""
    talk.set(**{SETTING: str(SHORT_MS)})
    talk.core.advance(1_000)
    assert beats(talk) == SHORT_MS
    if fails_over:
        talk.core.fail_over()

    assert lives_for_ms(talk) == LONG_MS


def test_s11_a_shorter_session_counts_once_the_longer_one_must_have_run_out(talk: Talk) -> None:
    """From then on no session of the new length can end before what the member may believe."""
    talk.set(**{SETTING: str(SHORT_MS)})
    beats(talk)
    for _ in range(8):
        talk.core.advance(5_000)
        assert beats(talk) == SHORT_MS

    assert talk.member("a").session_timeout_ms == SHORT_MS
    assert lives_for_ms(talk) == SHORT_MS


@pytest.mark.parametrize("fails_over", [False, True])
def test_s11_a_longer_session_counts_from_the_heartbeat_whose_answer_tells_it(
    fails_over: bool,  # noqa: FBT001 - a parameter
    talk: Talk,
) -> None:
    """It is on the log before it is told; a member that was not told it has the one before."""
    talk.set(**{SETTING: "90000"})
    assert beats(talk) == 90_000
    if fails_over:
        talk.core.fail_over()

    assert lives_for_ms(talk) == 90_000


def test_s11_a_session_that_is_raised_again_meanwhile_is_the_longest_of_all(talk: Talk) -> None:
    talk.set(**{SETTING: str(SHORT_MS)})
    beats(talk)
    talk.set(**{SETTING: str(LONG_MS)})
    beats(talk)
    talk.core.advance(44_000)
    talk.set(**{SETTING: str(SHORT_MS)})
    beats(talk)

    assert lives_for_ms(talk) == LONG_MS


def test_s11_a_heartbeat_that_agrees_writes_nothing(talk: Talk) -> None:
    """One record for each member and each change of the setting."""
    talk.set(**{SETTING: str(SHORT_MS)})
    written: list[object] = []
    for _ in range(20):
        talk.core.advance(5_000)
        written += talk.send(talk.says("a", talk.member("a").epoch))

    assert [type(each) for each in written] == [MemberSubscribed]


def test_s11_a_repeated_heartbeat_is_not_told_more_than_counts(talk: Talk) -> None:
    """A repetition writes nothing, so a longer session must not be told by it (S26)."""
    life = {"life": LIFE, "beat": 2}
    beats(talk, **life)
    talk.set(**{SETTING: "90000"})

    assert beats(talk, **life) == LONG_MS
    assert lives_for_ms(talk) == LONG_MS


@pytest.mark.parametrize("fails_over", [False, True])
def test_s11_a_shorter_rebalance_timeout_counts_once_the_longer_one_must_have_run_out(
    fails_over: bool,  # noqa: FBT001 - a parameter
    talk: Talk,
) -> None:
    """The member may not have heard that it counts: by the one before it has a minute (K-M25)."""
    beats(talk, owned=parts("t0", "t1"), life=LIFE, beat=2)
    beats(talk, rebalance_timeout_ms=5_000, life=LIFE, beat=3)
    talk.core.advance(1_000)
    talk.told(talk.joins("b", "t"))
    assert beats(talk) == LONG_MS
    if fails_over:
        talk.core.fail_over()
    lived = 0
    while "a" in talk.group.body.members:
        talk.core.advance(1_000)
        lived += 1_000
        for member_id in ("a", "b"):
            if member_id in talk.group.body.members:
                talk.told(talk.says(member_id, talk.member(member_id).epoch))

    assert lived == 59_000


def test_s11_a_shorter_rebalance_timeout_counts_in_the_end(talk: Talk) -> None:
    beats(talk, owned=parts("t0", "t1"), rebalance_timeout_ms=5_000, life=LIFE, beat=2)
    for _ in range(13):
        talk.core.advance(5_000)
        beats(talk)
    talk.told(talk.joins("b", "t"))
    beats(talk)
    talk.core.advance(4_999)
    assert "a" in talk.group.body.members
    talk.core.advance(1)

    assert "a" not in talk.group.body.members


def test_m25_without_a_number_a_shorter_rebalance_timeout_counts_at_once(talk: Talk) -> None:
    """K-M25, as in Kafka, whose client ends no ownership by itself."""
    beats(talk, owned=parts("t0", "t1"), rebalance_timeout_ms=5_000)
    talk.told(talk.joins("b", "t"))
    beats(talk)
    talk.core.advance(5_000)

    assert "a" not in talk.group.body.members


def asked_for_one_longer_ms(talk: Talk, **number: Any) -> int:  # noqa: ANN401 - life and beat
    """`a` has five seconds, is asked for a partition, and says it wants thirty; what it is told."""
    short = {"owned": parts("t0", "t1"), "rebalance_timeout_ms": 5_000}
    beats(talk, **short, **({**number, "beat": 2} if number else {}))
    for _ in range(13):  # until the minute that it had before must have run out
        talk.core.advance(5_000)
        beats(talk)
    talk.told(talk.joins("b", "t"))
    beats(talk, owned=parts("t0", "t1"))
    assert talk.member("a").state == "unrevoked"
    longer = {"owned": parts("t0", "t1"), "rebalance_timeout_ms": 30_000}
    return talk.told(talk.says("a", 2, **longer, **number)).grant.rebalance_timeout_ms


def test_s11_a_longer_rebalance_timeout_counts_once_it_is_told(talk: Talk) -> None:
    """Also for what was asked for before: the answer that tells it lets the member act so long."""
    told_ms = asked_for_one_longer_ms(talk, life=LIFE, beat=3)
    talk.core.advance(told_ms - 1)
    assert "a" in talk.group.body.members
    talk.core.advance(1)

    assert "a" not in talk.group.body.members


def test_m25_without_a_number_a_longer_rebalance_timeout_counts_the_next_time(talk: Talk) -> None:
    """K-M25, as in Kafka: what was asked for before is waited for as long as was said then."""
    asked_for_one_longer_ms(talk)
    talk.core.advance(5_000)

    assert "a" not in talk.group.body.members
