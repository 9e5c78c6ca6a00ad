"""Calls of the classic protocol in a group of the heartbeat protocol (K-Q5 to K-Q11, S12)."""

from __future__ import annotations

import pytest

from holdfast.coordinator.model.commands import Heartbeat
from holdfast.coordinator.model.events import SettingChange
from holdfast.coordinator.model.ids import TopicPartitions
from holdfast.coordinator.model.rejections import (
    FencedInstanceId,
    InvalidRequest,
    RebalanceInProgress,
)
from holdfast.coordinator.model.replies import HeartbeatReply
from unit.coordinator.people import (
    GROUP,
    REBALANCE_MS,
    SESSION_MS,
    Classic,
    Consumer,
    World,
    settle,
    stable,
)

COMPUTE_MS = 7
"""How long the harness takes for a target that is computed beside the group's work."""


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


# --- K-Q9: a member is told to join once a join brings it something ---


def beside() -> World:
    """All targets are computed beside the groups' work."""
    return World(settings=(SettingChange("group.consumer_inline_work", "0"),))


def paused() -> World:
    """Two targets of a group are ten seconds apart."""
    names = ("group.consumer_max_assignment_interval_ms", "group.consumer_assignment_interval_ms")
    return World(settings=tuple([SettingChange(name, "10000") for name in names]))


def test_q9_nobody_is_told_to_join_while_a_target_is_computed() -> None:
    """A join would bring nothing, and its member would be told again: without a pause, for ever."""
    world = beside()
    (x,) = stable(world, "x")
    Consumer(world, "a").beat()

    while_computed = x.beat().error
    world.core.advance(COMPUTE_MS)
    once_there = x.beat().error

    assert (while_computed, once_there) == (None, RebalanceInProgress())
    world.core.check_replays()


def test_q9_who_joins_while_a_target_is_computed_is_told_what_it_owns_until_then() -> None:
    """Not to join again, as a sync would: the members of the other protocol go on like that."""
    world = beside()
    (x,) = stable(world, "x")
    Consumer(world, "a").beat()

    x.join()
    meanwhile = (x.generation, x.owned, x.beat().error)
    world.core.advance(COMPUTE_MS)
    then = x.beat().error

    assert meanwhile == (1, frozenset({0, 1, 2, 3}), None)
    assert then == RebalanceInProgress()
    x.join()
    assert (x.generation, x.owned, x.beat().error) == (2, frozenset({0, 1}), None)
    world.core.check_replays()


def test_q5_the_first_sync_of_a_new_member_does_not_wait_for_its_target() -> None:
    """It owns nothing yet, and its next heartbeat tells it when there is a target."""
    world = beside()
    a, x = Consumer(world, "a"), Classic(world, "x", "i-x")
    a.beat()
    world.core.advance(COMPUTE_MS)
    a.beat()
    joined = x.join()

    assert joined is not None
    assert (joined.error, x.generation, x.owned, x.beat().error) == (None, 2, frozenset(), None)
    world.core.advance(COMPUTE_MS)
    assert x.beat().error == RebalanceInProgress()
    world.core.check_replays()


def test_q9_a_target_that_is_not_due_is_no_reason_to_join_until_it_is() -> None:
    """K-P15: then the join of any member brings it, and so does a heartbeat of the others."""
    world = paused()
    a, x = Consumer(world, "a"), Classic(world, "x", "i-x")
    a.beat()
    x.join()

    early = (x.generation, x.beat().error)
    world.core.advance(10_000)
    late = x.beat().error
    x.join()

    assert (early, late) == ((2, None), RebalanceInProgress())
    assert x.generation == world.core.state.groups[GROUP].body.assignment_epoch == 3
    world.core.check_replays()


@pytest.mark.parametrize("heard", [False, True])
def test_q10_the_time_to_join_ends_with_the_reason_for_it(*, heard: bool) -> None:
    """S11: what is not asked of a member any more cannot be too late.

    `heard`: it beats meanwhile, and NONE renews what it may do; its time begins with the next word.
    """
    world = beside()
    (x,) = stable(world, "x")
    a, b = Consumer(world, "a"), Consumer(world, "b")
    for one in (a, b):
        one.beat()
    world.core.advance(2 * COMPUTE_MS)  # the first one was overtaken
    settle([x])
    b.leave()
    assert x.beat().error == RebalanceInProgress(), "its join would have the target computed"
    world.core.compute_ms = 4 * REBALANCE_MS
    a.beat()

    if heard:
        assert x.beat().error is None
    world.core.advance(REBALANCE_MS)
    assert x.id in world.core.state.groups[GROUP].body.members

    world.core.advance(3 * REBALANCE_MS)
    assert x.beat().error == RebalanceInProgress()
    world.core.advance(REBALANCE_MS - 1)
    assert x.id in world.core.state.groups[GROUP].body.members
    world.core.advance(1)
    assert x.id not in world.core.state.groups[GROUP].body.members
    world.core.check_replays()
