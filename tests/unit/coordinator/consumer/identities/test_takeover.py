"""Who gets the place of a static member that has not released it: `group.consumer_takeover`.

Processes tell their lives, and by the default the newest one of a principal has the place; the one
before is fenced by the same event (S12). Who tells no life gets Kafka's answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.coordinator.model.access import DENY, administrator
from holdfast.coordinator.model.commands import AlterAcls, Caller, JoinGroup
from holdfast.coordinator.model.events import StaticMemberReplaced
from holdfast.coordinator.model.member_profile import Protocol
from holdfast.coordinator.model.rejections import (
    FencedInstanceId,
    InstanceForbidden,
    UnreleasedInstanceId,
)
from unit.coordinator.consumer.talk import GROUP, Talk, parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.coordinator.model.replies import ConsumerHeartbeatReply

FIRST, SECOND, THIRD = (f"01900000-0000-7000-8000-00000000000{n}" for n in (1, 2, 3))
SESSION_MS = 45_000


@pytest.fixture
def talk() -> Iterator[Talk]:
    """The process `old`, of the second life, holds `i` and owns something."""
    made = Talk(t=2)
    joins(made, "old", SECOND)
    made.told(made.says("old", 2, owned=parts("t0", "t1"), life=SECOND, beat=2, instance_id="i"))
    yield made
    made.core.check_replays()


def joins(talk: Talk, member_id: str, life: str, **said: Any) -> ConsumerHeartbeatReply:  # noqa: ANN401 - a field of the command
    number = {"life": life, "beat": said.pop("beat", 1)} if life else {}
    return talk.told(talk.joins(member_id, "t", instance_id="i", **number, **said))


def tokens(talk: Talk, member_id: str) -> list[int]:
    return [index for each in talk.member(member_id).owned for index in each.granted]


def test_s12_the_newest_process_has_the_place_at_once(talk: Talk) -> None:
    """By one event; with newer tokens, since the one before may act on for its session."""
    talk.core.advance(1_000)
    before = tokens(talk, "old")
    reply = joins(talk, "new", THIRD)
    swaps = [
        each.event
        for each in talk.core.log[-1].entry.parts[0].events
        if isinstance(each.event, StaticMemberReplaced)
    ]

    assert (reply.error, reply.grant.predecessor_ms) == (None, SESSION_MS)
    assert [(each.old_member_id, each.new_member_id) for each in swaps] == [("old", "new")]
    assert min(tokens(talk, "new")) > max(before)


@pytest.mark.parametrize("epoch", [2, -1, -2])
def test_n15_the_process_before_is_fenced_whatever_it_says(epoch: int, talk: Talk) -> None:
    """K-N15, K-N16, K-M32: a leave of an older life changes nothing, either."""
    joins(talk, "new", THIRD)
    said = talk.says("old", epoch, instance_id="i", life=SECOND, beat=3)

    assert talk.send(said) == ()
    error = getattr(talk.core.answers[said.caller.call], "error", None)
    assert isinstance(error, FencedInstanceId)
    assert (error.holder, error.holder_life) == ("new", THIRD)


@pytest.mark.parametrize("released", [False, True])
def test_an_older_life_is_fenced_and_told_which_one_is_newer(
    released: bool,  # noqa: FBT001 - a parameter
    talk: Talk,
) -> None:
    """Also where the newer one has stopped: its place waits for a later process."""
    if released:
        talk.told(talk.says("old", -2, instance_id="i", life=SECOND, beat=3))
    error = joins(talk, "late", FIRST).error

    assert isinstance(error, FencedInstanceId)
    assert (error.holder, error.holder_life) == ("old", SECOND)


def test_n12_the_very_process_that_has_the_place_is_answered_in_it(talk: Talk) -> None:
    """K-N12, bettered: it was fenced, or lost an answer, and joins again."""
    before = tokens(talk, "old")
    reply = joins(talk, "old", SECOND, beat=3)

    assert reply.error is None
    assert tokens(talk, "old") == before


@pytest.mark.parametrize("life", ["", THIRD])
def test_n12_another_process_under_the_same_member_id_waits(life: str, talk: Talk) -> None:
    """Nothing could fence the one before: its member id is that of the newcomer."""
    assert isinstance(joins(talk, "old", life).error, UnreleasedInstanceId)


def test_n11_who_tells_no_life_waits_and_is_waited_for(talk: Talk) -> None:
    """K-N11: as in Kafka, on either side."""
    assert isinstance(joins(talk, "bare", "").error, UnreleasedInstanceId)
    talk.told(talk.says("old", -1, instance_id="i", life=SECOND, beat=3))
    joins(talk, "bare", "")

    assert isinstance(joins(talk, "new", THIRD).error, UnreleasedInstanceId)


def test_n11_the_place_of_another_principal_is_not_taken(talk: Talk) -> None:
    assert isinstance(joins(talk, "new", THIRD, principal="mallory").error, UnreleasedInstanceId)


@pytest.mark.parametrize("life", ["", FIRST, SECOND, THIRD])
@pytest.mark.parametrize("policy", ["newest", "after_session", "refuse"])
def test_where_grants_decide_the_place_of_another_principal_is_refused_and_not_waited_for(
    policy: str, life: str
) -> None:
    """ADR 30: an instance id belongs to its first principal, whatever life another one tells."""
    talk = Talk(t=2)
    joins(talk, "old", SECOND, principal="alice")
    root = Caller(99, "root")
    talk.send(AlterAcls(root, (administrator("root"),), (), DENY))
    talk.set(consumer_takeover=policy)

    assert isinstance(joins(talk, "new", life, principal="mallory").error, InstanceForbidden)
    talk.core.check_replays()


@pytest.mark.parametrize(("policy", "waited_for"), [("after_session", True), ("refuse", False)])
def test_n11_by_the_other_policies_nobody_takes_a_place_in_use(
    policy: str,
    waited_for: bool,  # noqa: FBT001 - a parameter
    talk: Talk,
) -> None:
    """The answer says whether the newcomer is to wait for as long as it takes; then it gets it."""
    talk.set(consumer_takeover=policy)
    error = joins(talk, "new", THIRD).error

    assert isinstance(error, UnreleasedInstanceId)
    assert error.is_waited_for == waited_for
    talk.core.advance(SESSION_MS)
    assert joins(talk, "new", THIRD).error is None


def test_lives_outlast_a_failover(talk: Talk) -> None:
    """They are on the log: whoever leads compares the same."""
    talk.core.fail_over()

    assert isinstance(joins(talk, "late", FIRST).error, FencedInstanceId)
    assert joins(talk, "new", THIRD).error is None


# --- the newer process speaks the classic protocol, and tells no life ---


def joins_classic(talk: Talk, name: str) -> None:
    """A process of the classic protocol takes the place."""
    protocols = (Protocol("range", b"subscription", ("t",)),)
    fields = (GROUP, "", "i", 30_000, 60_000, "consumer", protocols, name)
    talk.send(JoinGroup(talk.caller(), *fields))
    assert talk.group.body.instances["i"] == name


@pytest.fixture(params=["classic", "mixed"])
def replaced(request: pytest.FixtureRequest, talk: Talk) -> Talk:
    """`old` was replaced by `twin`; its group has become classic by that, or has not."""
    if request.param == "mixed":
        talk.told(talk.joins("other", "t", life=FIRST, beat=1))
    joins_classic(talk, "twin")
    assert talk.group.group_type == ("classic" if request.param == "classic" else "consumer")
    return talk


@pytest.mark.parametrize("life", [FIRST, SECOND])
def test_s12_who_was_replaced_by_a_classic_process_does_not_take_the_place_back(
    life: str, replaced: Talk
) -> None:
    """Its join comes again, or it joins anew since its epoch is gone: the process is the older one.

    The classic one tells no life. But it has replaced one of the life that was told, so every
    process of that life or an older one came before it.
    """
    before = replaced.group
    error = joins(replaced, "old", life, beat=9).error

    assert isinstance(error, FencedInstanceId)
    assert (error.holder, error.holder_life) == ("twin", SECOND)
    assert replaced.group == before


def test_a_newer_process_takes_the_place_of_a_classic_one(replaced: Talk) -> None:
    """K-N13: who speaks the classic protocol cannot say that it stops, so nobody waits for it."""
    assert joins(replaced, "new", THIRD).error is None
    assert joins(replaced, "bare", "").error is not None


def test_n13_who_tells_no_life_takes_the_place_of_a_classic_process(replaced: Talk) -> None:
    """As in Kafka."""
    assert joins(replaced, "bare", "").error is None


def test_the_life_that_was_replaced_outlasts_processes_that_tell_none(replaced: Talk) -> None:
    """Also a failover: it is on the log."""
    joins_classic(replaced, "third")
    joins(replaced, "bare", "")
    replaced.core.fail_over()

    assert isinstance(joins(replaced, "old", SECOND, beat=9).error, FencedInstanceId)
