"""Heartbeats of the classic protocol in a group of the heartbeat protocol (K-Q9, K-F7, S12)."""

from __future__ import annotations

import pytest

from holdfast.coordinator.model.commands import Heartbeat
from holdfast.coordinator.model.ids import TopicPartitions
from holdfast.coordinator.model.rejections import FencedInstanceId, InvalidRequest
from holdfast.coordinator.model.replies import HeartbeatReply
from unit.coordinator.people import GROUP, SESSION_MS, Classic, Consumer, World, settle, stable


def release(x: Classic) -> HeartbeatReply:
    """The last heartbeat of a process that is restarted."""
    ids = (x.generation, x.id, x.instance)
    reply = x.world.ask(Heartbeat(x.world.caller(), GROUP, *ids, release=True))
    assert isinstance(reply, HeartbeatReply)
    return reply


@pytest.mark.parametrize("mixed", [False, True], ids=["classic", "mixed"])
def test_s12_the_session_of_a_released_member_runs_in_full(*, mixed: bool) -> None:
    """K-F7, K-Q9: its last heartbeat is one like any other, whatever the type of its group.

    So the next process has all of the session to come back. K-N3 is of the other protocol's -2.
    """
    world = World()
    (x,) = stable(world, "x")
    a = Consumer(world, "a")
    if mixed:
        a.beat()
    world.core.advance(SESSION_MS - 300)
    if mixed:
        a.beat()  # so that it outlives x, and the group stays one of its protocol
    assert release(x).error is None

    world.core.advance(SESSION_MS - 1)
    assert x.id in world.core.state.groups[GROUP].body.members
    world.core.advance(1)
    assert x.id not in world.core.state.groups[GROUP].body.members
    world.core.check_replays()


def test_s12_a_refused_release_starts_no_session_over() -> None:
    """K-Q11: who was released already is an older holder; who is dynamic cannot come back."""
    world = World()
    (x,) = stable(world, "x")
    a, dynamic = Consumer(world, "a"), Classic(world, "d")
    a.beat()
    dynamic.join()
    release(x)
    world.core.advance(SESSION_MS - 300)
    a.beat()

    assert isinstance(release(x).error, FencedInstanceId)
    assert isinstance(release(dynamic).error, InvalidRequest)
    world.core.advance(300)
    assert not {x.id, dynamic.id} & set(world.core.state.groups[GROUP].body.members)
    world.core.check_replays()


def test_q5_who_goes_over_to_the_classic_protocol_keeps_its_id_and_has_one_new_token() -> None:
    """K-Q5, S13: the classic protocol has one token for all: of the entry of the change."""
    world = World()
    a = Consumer(world, "a")
    a.beat()
    a.beat()
    before = max(a.tokens.values())

    x = Classic(world, "a", id="a")
    x.join(owned=(TopicPartitions("t", tuple(sorted(a.owned))),))
    settle([x])

    members = world.core.state.groups[GROUP].body.members
    assert list(members) == ["a"]
    assert x.owned == a.owned
    assert x.token > before
    world.core.check_replays()
