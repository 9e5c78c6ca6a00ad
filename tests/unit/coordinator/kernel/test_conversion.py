"""Groups that change their protocol: nobody loses, or gets, a partition by it (K-Q, S11 to S14)."""

from __future__ import annotations

import pytest

from holdfast.coordinator.groups.assignment_bytes import written
from holdfast.coordinator.kernel import queries
from holdfast.coordinator.model.commands import Heartbeat, TriggerRebalance
from holdfast.coordinator.model.consumer_events import GroupConverted
from holdfast.coordinator.model.events import Assigned, SettingChange
from holdfast.coordinator.model.ids import TopicPartitions
from holdfast.coordinator.model.rejections import (
    FencedInstanceId,
    IllegalGeneration,
    OtherGroupType,
    RebalanceInProgress,
    UnsupportedVersion,
)
from holdfast.coordinator.model.replies import JoinReply
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

ALL = frozenset(range(4))


def kind(world: World) -> str:
    return world.core.state.groups[GROUP].group_type


def test_a_partition_keeps_its_owner_and_its_token_in_an_upgrade() -> None:
    """S13, K-Q2: what was granted before the conversion is owned by the same grant after it."""
    world = World()
    x, y = stable(world, "x", "y")
    before = x.owned, x.token

    assert Consumer(world, "a").beat().assignment == ()
    assert kind(world) == "consumer"
    assert x.beat().grant.fencing_token == before[1]
    group = world.core.state.groups[GROUP]
    assert {
        place.partition for place, owner in group.body.owners.items() if owner == x.id
    } == before[0]
    assert len(group.body.owners) == len(ALL) == len(x.owned | y.owned)


def test_nobody_is_granted_what_a_classic_member_has_not_given_up() -> None:
    """S11: not before it has joined again with nothing in its hands."""
    world = World()
    (x,) = stable(world, "x")
    a = Consumer(world, "a")
    a.beat()
    world.core.advance(REBALANCE_MS - 1)
    x.beat()
    a.beat()
    assert (x.owned, a.owned) == (ALL, frozenset())

    x.join()
    a.beat()
    assert x.owned | a.owned == ALL
    assert not x.owned & a.owned
    assert len(x.owned) == len(a.owned)


def test_nobody_is_granted_what_a_cooperative_member_is_still_giving_up() -> None:
    """S11: nobody is assigned it in this generation, and its owner works on it until it joins."""
    world = World()
    x, y = stable(world, "x", "y")
    x.syncs = y.syncs = False  # by hand
    _withhold(world, x, y)
    a = Consumer(world, "a")
    a.beat()
    a.beat()
    assert a.owned == frozenset()
    (told,) = [each for each in _converted(world).members if each.member_id == x.id]
    assert told.partitions == (TopicPartitions("t", (0, 1, 2, 3)),)

    x.join()  # it claims nothing now
    y.join()
    a.beat()
    assert a.owned


@pytest.mark.parametrize(("released", "kept"), [(False, (0, 3)), (True, (0,))])
def test_a_claim_counts_where_nobody_is_assigned_the_partition(
    kept: tuple[int, ...], *, released: bool
) -> None:
    """S11: what is assigned is its new owner's. A process that has stopped claims nothing (S12)."""
    world = World()
    x, y = stable(world, "x", "y")
    x.syncs = y.syncs = False  # by hand
    _withhold(world, x, y, _share(1, 2))
    if released:
        world.ask(_released(x))
    Consumer(world, "a").beat()

    told = {each.member_id: each.partitions for each in _converted(world).members}
    assert told == {
        x.id: (TopicPartitions("t", kept),),
        y.id: (TopicPartitions("t", (1, 2)),),
    }


def _withhold(world: World, x: Classic, y: Classic, given: bytes = b"") -> None:
    """Another generation, in which x is assigned t-0 alone, after it said that it owns more."""
    x.metadata = _CLAIM
    _rejoin(world, x, y, (_share(0), given))
    x.metadata = b""


_CLAIM = b"\x1a\x09\n\x01t\x12\x04\x00\x01\x02\x03"
"""A subscription's `owned_partitions`: all of t."""


def _share(*numbers: int) -> bytes:
    return written((TopicPartitions("t", numbers),))


def test_a_classic_member_may_act_for_its_rebalance_timeout_after_it_was_told() -> None:
    """S11, K-Q10: the time begins with the first answer that is not NONE, not with the change."""
    world = World()
    (x,) = stable(world, "x")
    world.core.advance(1_000)
    a = Consumer(world, "a")
    a.beat()
    world.core.advance(4_000)
    assert x.beat().error == RebalanceInProgress()
    world.core.advance(REBALANCE_MS - 1)
    a.beat()
    assert a.owned == frozenset()
    world.core.advance(1)
    a.beat()
    assert a.owned == ALL


def test_a_sync_answered_none_gives_a_member_its_time_again() -> None:
    """S11: it counts like a heartbeat that is answered NONE, for what the member keeps."""
    world = World()
    (x,) = stable(world, "x")
    x.syncs = False
    Consumer(world, "a").beat()
    joined = x.join(owned=(TopicPartitions("t", (0, 1, 2, 3)),))
    assert joined is not None
    assert joined.generation == 1
    assert x.beat().error == RebalanceInProgress()
    world.core.advance(REBALANCE_MS - 1)
    x.sync(joined)
    assert x.owned == {0, 1}
    world.core.advance(REBALANCE_MS - 1)
    assert x.id in world.core.state.groups[GROUP].body.members
    world.core.advance(1)
    assert x.id not in world.core.state.groups[GROUP].body.members


def test_who_joins_and_does_not_sync_in_time_is_removed() -> None:
    """K-Q10, K-E10."""
    world = World()
    Consumer(world, "a").beat()
    x = Classic(world, "x", "i-x")
    x.syncs = False
    x.join()
    world.core.advance(REBALANCE_MS)
    assert set(world.core.state.groups[GROUP].body.members) == {"a"}


def test_a_silent_classic_member_goes_after_its_own_session() -> None:
    """K-Q5, K-M24: its session timeout is kept with it, and is not the group's."""
    world = World()
    (x,) = stable(world, "x")
    Consumer(world, "a").beat()
    world.core.advance(SESSION_MS - 1)
    assert x.id in world.core.state.groups[GROUP].body.members
    world.core.advance(1)
    assert x.id not in world.core.state.groups[GROUP].body.members


def test_a_failover_in_the_middle_of_a_conversion_changes_nothing() -> None:
    """S16: what the next leader needs is on the log."""
    world = World()
    x, y = stable(world, "x", "y")
    a = Consumer(world, "a")
    a.beat()
    x.join()
    world.core.fail_over()

    assert y.beat().error == RebalanceInProgress()
    a.beat()
    y.join()
    for _ in range(4):
        settle([x, y])
        a.beat()
    assert sorted([*x.owned, *y.owned, *a.owned]) == sorted(ALL)
    world.core.check_replays()


def test_parked_joins_end_with_the_conversion_and_their_members_stay() -> None:
    """S17, K-Q2: a session runs again from then on."""
    world = World()
    (x,) = stable(world, "x")
    y = Classic(world, "y", "i-y")
    assert y.join("r-1") is None
    Consumer(world, "a").beat()

    answer = world.core.answers.pop(y.parked, None)
    assert isinstance(answer, JoinReply)
    assert answer.error == RebalanceInProgress()
    again = y.join("r-1")
    assert again is not None
    assert again.member_id == answer.member_id
    assert {x.id, y.id} < set(world.core.state.groups[GROUP].body.members)


def test_a_retried_join_finds_its_member_and_a_replaced_one_takes_nothing_back() -> None:
    """S14."""
    world = World()
    Consumer(world, "a").beat()
    first, second = Classic(world, "x", "i-x"), Classic(world, "x2", "i-x")
    made = first.join("r-1")
    first.id = ""
    again = first.join("r-1")
    assert made is not None
    assert again is not None
    assert again.member_id == made.member_id

    second.join("r-2")
    first.id = ""
    late = first.join("r-1")
    assert late is not None
    assert isinstance(late.error, FencedInstanceId)


def test_an_instance_that_changes_the_protocol_gets_newer_tokens_and_is_told_of_the_old() -> None:
    """S12, S13, K-Q4: the old process may run until its session ends."""
    world = World()
    (x,) = stable(world, "x")
    token = x.token
    a = Consumer(world, "a", "i-x")
    reply = a.beat()

    assert a.owned == ALL
    assert min(a.tokens.values()) > token
    assert reply.grant.predecessor_ms == SESSION_MS


def test_a_released_instance_hands_its_tokens_over_to_the_other_protocol() -> None:
    """S12, S13, K-Q4: its process has said that it stops."""
    world = World()
    x, y = stable(world, "x", "y")
    held = x.owned
    assert y.beat().error is None
    world.ask(_released(x))
    a = Consumer(world, "a", "i-x")
    reply = a.beat()
    assert reply.grant.predecessor_ms == 0
    assert {a.tokens[each] for each in a.owned & held} <= {x.token}


def _released(x: Classic) -> Heartbeat:
    return Heartbeat(x.world.caller(), GROUP, x.generation, x.id, x.instance, release=True)


def test_the_last_one_leaves_and_the_rest_keep_what_they_have_until_they_join() -> None:
    """K-Q12, S13: the epoch is the generation, and the newest token is that of all."""
    world = World()
    (x,) = stable(world, "x")
    a = Consumer(world, "a")
    a.beat()
    x.join()
    a.beat()
    held, token = x.owned, x.token
    a.leave()

    group = world.core.state.groups[GROUP]
    assert (group.group_type, group.state, group.generation) == ("classic", "PreparingRebalance", 2)
    member = group.body.members[x.id]
    assert member.assignment == written((TopicPartitions("t", tuple(sorted(held))),))
    assert x.beat().error == RebalanceInProgress()
    assert x.beat().grant.fencing_token == token
    settle([x])
    assert (x.owned, x.generation) == (ALL, 3)
    assert x.token > token
    world.core.check_replays()


def test_a_member_that_is_behind_joins_again_all_the_same() -> None:
    """K-Q12: its generation is an older one than the group's."""
    world = World()
    (x,) = stable(world, "x")
    a = Consumer(world, "a")
    a.beat()
    a.leave()
    assert x.beat().error == IllegalGeneration(1, 2)
    settle([x])
    assert x.owned == ALL


def test_a_partition_of_two_owners_is_not_converted() -> None:
    """K-Q3: nor one that an assignor has told more of than partitions."""
    for shares in ((b"\n\x06\n\x01t\x12\x01\x00",) * 2, (b"\x12\x01x", b"")):
        world = World()
        x, y = stable(world, "x", "y")
        x.syncs = y.syncs = False  # by hand
        _rejoin(world, x, y, shares)
        before = world.core.state

        error = Consumer(world, "a").beat().error
        assert isinstance(error, OtherGroupType)
        assert "what they own cannot be told" in error.problem
        assert world.core.state is before


def _rejoin(world: World, x: Classic, y: Classic, shares: tuple[bytes, ...]) -> None:
    """Another generation, whose leader gives these assignments out."""
    world.ask(TriggerRebalance(world.caller(), GROUP, ""))
    x.join()
    y.join()
    x.look()
    given = tuple(Assigned(*each) for each in zip((x.id, y.id), shares, strict=True))
    for one in (x, y):
        leads = world.core.state.groups[GROUP].body.leader == one.id
        world.ask(one.syncing(given if leads else ()))


def test_a_refused_heartbeat_converts_nothing() -> None:
    """K-Q1: an empty group stays what it is, with its generation.

    S13: converted it has that as its first epoch, since nobody was in it.
    """
    world = World()
    (x,) = stable(world, "x")
    x.leave()
    before, generation = world.core.state, world.core.state.groups["g"].generation
    a = Consumer(world, "a" * 250)
    assert a.beat().error is not None
    assert world.core.state is before

    assert generation > x.generation > 0
    assert Consumer(world, "a").beat().member_epoch == generation
    assert kind(world) == "consumer"


def test_a_refused_join_leaves_an_empty_consumer_group_as_it_is() -> None:
    """K-Q8, K-Q14; S13: converted it goes on with generations above all epochs."""
    world = World()
    a = Consumer(world, "a")
    a.beat()
    a.leave()
    epoch = world.core.state.groups["g"].generation
    before = world.core.state
    stranger = Classic(world, "x", "i-x", id="made-up")
    refused = stranger.join()
    assert refused is not None
    assert refused.error is not None
    assert world.core.state is before

    x = Classic(world, "x", "i-x")
    x.join()
    settle([x])
    assert (kind(world), x.generation, x.owned) == ("classic", epoch + 1, ALL)
    world.core.check_replays()


def test_below_its_level_no_group_is_converted() -> None:
    """S3: older nodes could not read on."""
    world = World(level=1)
    stable(world, "x")
    before = world.core.state
    assert isinstance(Consumer(world, "a").beat().error, UnsupportedVersion)
    assert world.core.state is before


@pytest.mark.parametrize(
    ("policy", "up", "down"),
    [
        ("bidirectional", True, True),
        ("upgrade", True, False),
        ("downgrade", False, True),
        ("disabled", False, False),
    ],
)
def test_the_settings_say_which_way_a_group_with_members_may_go(
    policy: str, *, up: bool, down: bool
) -> None:
    """K-Q3, K-Q12."""
    world = World(settings=(SettingChange("group.consumer_migration_policy", policy),))
    stable(world, "x")
    error = Consumer(world, "a").beat().error
    assert (error is None) is up
    assert up or (isinstance(error, OtherGroupType) and repr(policy) in error.problem)

    other = World(settings=(SettingChange("group.consumer_migration_policy", policy),))
    a = Consumer(other, "a")
    a.beat()
    Classic(other, "x", "i-x").join()
    a.leave()
    assert (kind(other) == "classic") is down


def test_who_asks_with_the_other_protocols_call_is_told_that_the_group_is_there() -> None:
    """K-K6: the code is that of an absent group, as in Kafka; the sentence must not say that."""
    world = World()
    stable(world, "x")
    whole = queries.describe_consumer_group(world.core.state, GROUP)
    assert isinstance(whole.error, OtherGroupType)
    assert "DescribeGroups" in whole.error.problem

    Consumer(world, "a").beat()
    plain = queries.describe_group(world.core.state, GROUP)
    assert isinstance(plain.error, OtherGroupType)
    assert "ConsumerGroupDescribe" in plain.error.problem


def test_a_conversion_names_all_members_with_all_that_they_own() -> None:
    """K-Q2: the event is complete."""
    world = World()
    x, y = stable(world, "x", "y")
    Consumer(world, "a").beat()
    event = _converted(world)
    assert (event.group_type, event.generation) == ("consumer", x.generation)
    told = {
        each.member_id: (each.topics, frozenset(each.partitions[0].partitions))
        for each in event.members
    }
    assert told == {one.id: (("t",), one.owned) for one in (x, y)}


def _converted(world: World) -> GroupConverted:
    (event,) = (
        record.event
        for applied in world.core.log
        for record in applied.records
        if isinstance(record.event, GroupConverted)
    )
    return event
