"""S12, K-N11: how long a new holder is told that an older one may act, or has the instance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.coordinator.model.commands import LeaveGroup, LeavingMember
from holdfast.coordinator.model.rejections import InvalidRequest
from unit.coordinator.consumer.talk import GROUP, Talk, parts

if TYPE_CHECKING:
    from collections.abc import Iterator

SESSION_MS, MOST_MS = 45_000, 1_800_000
"""The session timeout of the heartbeat protocol, and the longest of all, by the defaults."""


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


def stopped(talk: Talk, absence_ms: int) -> None:
    """A static member owns something, and stops for so long after 30 s without a heartbeat."""
    talk.told(talk.joins("s1", "z", instance_id="s"))
    talk.core.advance(30_000)
    talk.told(talk.says("s1", -2, instance_id="s", absence_ms=absence_ms))


def kept_for_ms(talk: Talk) -> int:
    """How long a place is kept, in whole seconds."""
    begun = talk.core.now_ms
    while talk.group.body.members:
        talk.core.advance(1_000)
    return talk.core.now_ms - begun


@pytest.mark.parametrize(
    ("absence_ms", "kept_ms"),
    [(0, 15_000), (5_000, 5_000), (600_000, 600_000), (10_000_000, MOST_MS)],
)
def test_n3_a_goodbye_may_say_for_how_long_the_place_is_kept(
    absence_ms: int, kept_ms: int, talk: Talk
) -> None:
    """K-N3: without that its session runs on. More than the longest session counts as that."""
    stopped(talk, absence_ms)

    assert kept_for_ms(talk) == kept_ms


def test_s9_a_new_leader_keeps_the_place_in_full(talk: Talk) -> None:
    """S9, K-L9: how long it is to be kept is on the log, when that began is not."""
    stopped(talk, 600_000)
    talk.core.advance(599_000)
    talk.core.fail_over()

    assert kept_for_ms(talk) == 600_000


def test_n6_who_comes_back_has_the_session_of_its_group_again(talk: Talk) -> None:
    """Under its own id as well (K-N7)."""
    for member_id in ("s1", "s2"):
        stopped(talk, 600_000)
        talk.core.advance(300_000)
        reply = talk.told(talk.joins(member_id, "z", instance_id="s"))
        assert (reply.error, reply.grant.predecessor_ms) == (None, 0)
        assert [each.partition for each in reply.assignment or ()] == [0]
        assert kept_for_ms(talk) == SESSION_MS


def test_an_absence_belongs_to_a_goodbye(talk: Talk) -> None:
    talk.told(talk.joins("s1", "z", instance_id="s"))
    for epoch, absence_ms in ((2, 5_000), (-1, 5_000), (-2, -1)):
        said = talk.says("s1", epoch, instance_id="s", absence_ms=absence_ms)
        error = talk.told(said).error
        assert isinstance(error, InvalidRequest)
        assert error.field == "holdfast.absence_ms"
