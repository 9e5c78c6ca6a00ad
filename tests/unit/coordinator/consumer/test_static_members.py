"""S12, K-N11: how long a new holder is told that an older one may act, or has the instance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.coordinator.model.commands import LeaveGroup, LeavingMember
from unit.coordinator.consumer.talk import GROUP, Talk, parts

if TYPE_CHECKING:
    from collections.abc import Iterator

SESSION_MS = 45_000
"""The session timeout of the heartbeat protocol, by the settings' default."""


@pytest.fixture
def talk() -> Iterator[Talk]:
    made = Talk(a=1, z=1)
    yield made
    made.core.check_replays()


def told_ms(talk: Talk, *, since_removal_ms: int) -> int:
    """What the next holder of an instance is told, whose last one stopped.

    The last one had joined long ago. It was granted what an operator had just taken from a member
    that was not heard to stop.
    """
    talk.told(talk.joins("s1", "z", instance_id="s"))
    talk.told(talk.joins("x", "a"))
    for _ in range(20):
        talk.core.advance(5_000)
        for member_id, instance_id in (("s1", "s"), ("x", None)):
            epoch = talk.member(member_id).epoch
            talk.told(talk.says(member_id, epoch, instance_id=instance_id))
    beat = {"instance_id": "s", "topics": ("a", "z")}
    talk.told(talk.says("s1", talk.member("s1").epoch, **beat))
    gone = (LeavingMember("x", None),)
    talk.send(LeaveGroup(talk.caller(), GROUP, gone, operator=True, reason="stuck"))
    reply = talk.told(talk.says("s1", talk.member("s1").epoch, owned=parts("z0"), instance_id="s"))
    assert reply.grant.predecessor_ms == SESSION_MS, "x may run as long as its session"

    talk.told(talk.says("s1", -2, instance_id="s"))
    talk.core.advance(since_removal_ms)
    return talk.told(talk.joins("s2", "a", "z", instance_id="s")).grant.predecessor_ms


@pytest.mark.parametrize(("since_removal_ms", "left_ms"), [(1_000, 44_000), (44_999, 1)])
def test_s12_a_release_does_not_hide_who_owned_before(
    since_removal_ms: int, left_ms: int, talk: Talk
) -> None:
    """The time of the older owner runs from its removal, not from when the instance joined."""
    assert told_ms(talk, since_removal_ms=since_removal_ms) == left_ms


def test_n11_who_waits_for_an_instance_is_told_for_how_long_it_is_kept(talk: Talk) -> None:
    """A dead process has it for the group's session. What the client would take for that is 45 s.

    Found by the simulator, in groups with a session of 3 s.
    """
    talk.set(consumer_session_timeout_ms="60000")
    talk.told(talk.joins("s1", "a", instance_id="s"))

    assert talk.told(talk.joins("s2", "a", instance_id="s")).grant.session_timeout_ms == 60_000
    assert talk.told(talk.says("x", 3)).grant.session_timeout_ms == 0, "nobody waits for anything"


def test_s12_an_answer_that_tells_a_grant_again_tells_what_is_left_of_the_time(
    talk: Talk,
) -> None:
    """Who waits for older holders would else wait anew with each full answer."""
    talk.told(talk.joins("x", "a"))
    gone = (LeavingMember("x", None),)
    talk.send(LeaveGroup(talk.caller(), GROUP, gone, operator=True, reason="stuck"))
    told = []
    for _ in range(4):
        told.append(talk.told(talk.joins("m", "a")).grant.predecessor_ms)
        talk.core.advance(20_000)

    assert told == [SESSION_MS, 25_000, 5_000, 0]
