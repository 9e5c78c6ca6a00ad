"""S26: the heartbeats of a member have an order, whatever the network makes of it.

A late one changes nothing, also after another leader has taken over, who knows only what is on the
log. A repeated one is answered again (S14).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.coordinator.model.consumer_events import MemberAdvanced, MemberSubscribed
from holdfast.coordinator.model.events import InstanceReleased
from holdfast.coordinator.model.rejections import FencedMemberEpoch, PastHeartbeat
from unit.coordinator.consumer.talk import Talk, parts, replies

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.coordinator.model.commands import ConsumerGroupHeartbeat

LIFE, LATER = "01900000-0000-7000-8000-000000000001", "01900000-0000-7000-8000-000000000002"
ALL = parts("t0", "t1", "t2", "t3")
SESSION_MS = 45_000


@pytest.fixture
def talk() -> Iterator[Talk]:
    made = Talk(t=4)
    yield made
    made.core.check_replays()


def joins(talk: Talk, member_id: str, beat: int, **said: Any) -> ConsumerGroupHeartbeat:  # noqa: ANN401 - a field of the command
    return talk.joins(member_id, "t", beat=beat, **{"life": LIFE, **said})


def says(talk: Talk, member_id: str, beat: int, **said: Any) -> ConsumerGroupHeartbeat:  # noqa: ANN401 - as above
    """A heartbeat at the member's epoch, if the test names no other one."""
    epoch = said.pop("epoch", None)
    epoch = talk.member(member_id).epoch if epoch is None else epoch
    return talk.says(member_id, epoch, beat=beat, **{"life": LIFE, **said})


def refused_as_past(talk: Talk, command: ConsumerGroupHeartbeat) -> bool:
    """Whether it is refused as one of the past, and nothing comes of it."""
    before = talk.core.state
    events = talk.send(command)
    reply: Any = talk.core.answers[command.caller.call]
    return isinstance(reply.error, PastHeartbeat) and events == () and talk.core.state is before


def all_of_it_asked_back(talk: Talk) -> None:
    """Another member comes, to whom half of `a`'s is to go."""
    talk.told(talk.joins("b", "t"))


@pytest.mark.parametrize("fails_over", [False, True])
def test_s26_a_late_list_frees_nothing(fails_over: bool, talk: Talk) -> None:  # noqa: FBT001 - a parameter
    """The answer to the join was lost, the next heartbeat went astray, the one after was heard."""
    talk.told(joins(talk, "a", 1))
    late = says(talk, "a", 2, owned=())
    talk.told(says(talk, "a", 3, owned=ALL))
    if fails_over:
        talk.core.fail_over()
    all_of_it_asked_back(talk)

    assert refused_as_past(talk, late)
    assert talk.member("b").owned == ()


@pytest.mark.parametrize("fails_over", [False, True])
def test_s26_a_doubled_list_from_before_its_answer_was_known_frees_nothing(
    fails_over: bool,  # noqa: FBT001 - a parameter
    talk: Talk,
) -> None:
    """It was heard, in order, and changed nothing; its copy comes when the member knows more.

    A new leader takes it for a repetition, and answers from what is.
    """
    talk.told(joins(talk, "a", 1))
    talk.told(says(talk, "a", 2, owned=()))
    talk.told(says(talk, "a", 3, owned=ALL))
    if fails_over:
        talk.core.fail_over()
    all_of_it_asked_back(talk)

    assert talk.send(says(talk, "a", 2, owned=())) == ()
    assert talk.member("b").owned == ()


def test_s26_a_copy_of_what_is_not_on_the_log_frees_nothing_after_a_failover(talk: Talk) -> None:
    """It says what the member's next heartbeat would say, so it may be taken for that."""
    talk.told(joins(talk, "a", 1))
    assert talk.send(says(talk, "a", 2, owned=ALL)) == ()
    talk.core.fail_over()
    all_of_it_asked_back(talk)
    talk.told(says(talk, "a", 2, owned=ALL))

    assert [each.partitions for each in talk.member("a").revoking] == [(2, 3)]
    assert talk.member("b").owned == ()


@pytest.mark.parametrize("fails_over", [False, True])
@pytest.mark.parametrize("epoch", [-1, -2])
def test_s26_a_late_goodbye_does_not_end_the_next_life_of_its_member(
    epoch: int,
    fails_over: bool,  # noqa: FBT001 - a parameter
    talk: Talk,
) -> None:
    """K-M32: the goodbye went astray, and the member has joined again under its id."""
    ids = {"instance_id": "i"} if epoch == -2 else {}
    talk.told(joins(talk, "a", 1, **ids))
    late = says(talk, "a", 2, epoch=epoch, **ids)
    if epoch == -2:  # or the join would be refused: its place is in use (K-N12)
        talk.told(says(talk, "a", 3, epoch=-2, **ids))
    talk.told(joins(talk, "a", 4, **ids))
    if fails_over:
        talk.core.fail_over()

    assert refused_as_past(talk, late)
    assert not talk.member("a").released


@pytest.mark.parametrize("fails_over", [False, True])
def test_s26_a_late_join_does_not_revive_a_member_that_has_stopped(
    fails_over: bool,  # noqa: FBT001 - a parameter
    talk: Talk,
) -> None:
    talk.told(joins(talk, "a", 1, instance_id="i"))
    late = joins(talk, "a", 2, instance_id="i")
    talk.told(says(talk, "a", 3, epoch=-2, instance_id="i"))
    if fails_over:
        talk.core.fail_over()

    assert refused_as_past(talk, late)
    assert talk.member("a").released


def test_s14_a_repeated_join_is_answered_from_what_is(talk: Talk) -> None:
    """Also of a static member, whose place is in use by itself (K-N12)."""
    first = talk.told(joins(talk, "a", 1, instance_id="i"))
    again = joins(talk, "a", 1, instance_id="i")

    assert talk.send(again) == ()
    assert talk.core.answers[again.caller.call] == first


def test_s14_a_repeated_heartbeat_is_told_the_epoch_that_it_brought(talk: Talk) -> None:
    """Without a number it would be fenced, for it says no list (K-M12)."""
    talk.told(joins(talk, "a", 1))
    talk.told(says(talk, "a", 2, owned=ALL))
    talk.told(talk.joins("b", "u"))
    told = talk.told(says(talk, "a", 3))
    again = talk.told(says(talk, "a", 3, epoch=told.member_epoch - 1))

    assert told.member_epoch == talk.group.generation
    assert (again.error, again.member_epoch) == (None, told.member_epoch)


def test_s11_a_repeated_heartbeat_that_is_accepted_renews_the_session(talk: Talk) -> None:
    """Its client may have sent it again, and acts for 0.8 sessions from then, if told NONE."""
    talk.told(joins(talk, "a", 1))
    talk.core.advance(SESSION_MS // 2)
    assert talk.told(joins(talk, "a", 1)).error is None
    talk.core.advance(SESSION_MS * 8 // 10)

    assert "a" in talk.group.body.members
    talk.core.advance(SESSION_MS * 2 // 10)
    assert "a" not in talk.group.body.members


def test_s14_a_repeated_goodbye_is_answered_as_the_first(talk: Talk) -> None:
    talk.told(joins(talk, "a", 1, instance_id="i"))
    goodbye = says(talk, "a", 2, epoch=-2, instance_id="i")
    first = talk.told(goodbye)

    assert talk.send(again := says(talk, "a", 2, epoch=-2, instance_id="i")) == ()
    assert talk.core.answers[again.caller.call] == first


def test_s26_a_goodbye_with_a_number_that_was_heard_is_of_the_past(talk: Talk) -> None:
    talk.told(joins(talk, "a", 1))
    talk.told(says(talk, "a", 2))

    assert refused_as_past(talk, says(talk, "a", 2, epoch=-1))


def test_s26_what_has_no_number_is_judged_as_it_comes(talk: Talk) -> None:
    """Kafka's clients number nothing, and the member may have numbered its heartbeats before."""
    talk.told(joins(talk, "a", 1))
    talk.told(says(talk, "a", 5, owned=ALL))
    bare = talk.told(talk.says("a", talk.member("a").epoch, owned=ALL))
    fenced = talk.told(talk.says("a", 9))

    assert bare.error is None
    assert isinstance(fenced.error, FencedMemberEpoch)


def test_s26_a_life_begins_with_a_join(talk: Talk) -> None:
    """Nothing else that another life says is of this member; its numbers begin with 1 again."""
    talk.told(joins(talk, "a", 7))
    assert refused_as_past(talk, says(talk, "a", 8, life=LATER))
    assert refused_as_past(talk, says(talk, "a", 8, life=LATER, epoch=-1))

    assert talk.told(joins(talk, "a", 1, life=LATER)).error is None
    assert talk.told(says(talk, "a", 2, life=LATER)).error is None
    assert refused_as_past(talk, says(talk, "a", 8))


def test_s26_a_member_without_a_number_may_begin_to_number(talk: Talk) -> None:
    """The service was upgraded under it."""
    talk.told(talk.joins("a", "t"))
    events = talk.send(says(talk, "a", 12))

    assert [type(each) for each in events] == [MemberSubscribed]
    assert (talk.member("a").life, talk.member("a").beat) == (LIFE, 12)
    assert refused_as_past(talk, says(talk, "a", 11))


def test_s26_the_number_is_on_the_log_with_what_it_brings_about(talk: Talk) -> None:
    """And a heartbeat that brings nothing about has no record at all, if none is missing."""
    joined = talk.send(joins(talk, "a", 1, instance_id="i"))
    plain = talk.send(says(talk, "a", 2)) + talk.send(says(talk, "a", 3, owned=ALL))
    all_of_it_asked_back(talk)
    stepped = talk.send(says(talk, "a", 4))
    stopped = talk.send(says(talk, "a", 5, epoch=-2, instance_id="i"))
    numbered = (MemberSubscribed, MemberAdvanced, InstanceReleased)
    numbers = [
        [each.beat for each in some if isinstance(each, numbered)]
        for some in (joined, plain, stepped, stopped)
    ]

    assert numbers == [[1, 1], [], [4], [5]]


def test_s26_after_a_plain_heartbeat_that_skips_numbers_nothing_can_come_late(talk: Talk) -> None:
    """It says nothing, so the one before it was answered: no record is made."""
    talk.told(joins(talk, "a", 1))
    talk.core.fail_over()

    assert talk.send(says(talk, "a", 9)) == ()
    assert refused_as_past(talk, says(talk, "a", 8))


def test_s26_a_late_heartbeat_of_the_same_batch_is_of_the_past(talk: Talk) -> None:
    """The later one waits for the batch to close, since it needs a target."""
    talk.told(joins(talk, "a", 1))
    later = says(talk, "a", 3, owned=ALL, topics=("t", "u"))
    late = says(talk, "a", 2, owned=(), topics=("t",))
    answered = {each.call: each.reply for each in _answers(talk, later, late)}

    assert answered[later.caller.call].error is None
    assert isinstance(answered[late.caller.call].error, PastHeartbeat)


def test_s14_a_repetition_in_the_same_batch_is_told_what_the_first_brought(talk: Talk) -> None:
    first, again = joins(talk, "a", 1), joins(talk, "a", 1)
    one, other = replies(talk.decide(first, again))

    assert one == other
    assert one.member_epoch > 0


def _answers(talk: Talk, *commands: ConsumerGroupHeartbeat) -> list[Any]:
    return [each for each in talk.decide(*commands).effects if hasattr(each, "reply")]
