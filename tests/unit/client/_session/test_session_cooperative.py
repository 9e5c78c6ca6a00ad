"""Cooperative rebalances (KIP-429): members work on, and let go only of what moves."""

from __future__ import annotations

from typing import TypeAlias

import pytest

from holdfast.client._session.protocol import read_assignment
from holdfast.client._session.session_io import Assigned, Grant, Lost, Revoke, Settings
from holdfast.coordinator.assignors import Assignor, CooperativeAssignor, RangeAssignor
from holdfast.v1 import admin_pb2, extras_pb2, group_pb2
from unit.client._session.driver import (
    ILLEGAL_GENERATION,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    Driver,
    claim_of,
    join_answer,
    make_settings,
    partitions,
    sync_answer,
)

JOIN: TypeAlias = group_pb2.JoinGroupRequest
SYNC: TypeAlias = group_pb2.SyncGroupRequest
HEARTBEAT: TypeAlias = group_pb2.HeartbeatRequest
LEAVE: TypeAlias = group_pb2.LeaveGroupRequest
TOPICS: TypeAlias = admin_pb2.ListTopicsRequest
JOIN_AGAIN = b'{"counts": {}, "join_again": true}'


def cooperative(*more: Assignor, **changes: object) -> Settings:
    return make_settings(assignors=(CooperativeAssignor(), *more), **changes)


def stable(*numbers: int, settings: Settings | None = None) -> Driver:
    driver = Driver(settings or cooperative())
    driver.stable(*numbers)
    driver.told.clear()
    return driver


def rejoin(driver: Driver, generation: int, *numbers: int, token: int = 8) -> None:
    """The parked join is answered, and the sync after it."""
    driver.joined(generation=generation, protocol="cooperative-sticky")
    driver.synced(*numbers, token=token)


def let_go(driver: Driver) -> None:
    driver.session.revoked(driver.now)
    driver.take()


def tokens(driver: Driver) -> dict[int, int]:
    return {tp.number: grant.fencing_token for tp, grant in driver.session.ownership.held.items()}


def test_t6_a_rebalance_takes_nothing_away_and_claims_what_is_owned() -> None:
    driver = stable(0, 1)
    driver.next_heartbeat(REBALANCE_IN_PROGRESS)
    assert driver.told == []
    assert driver.owns()
    assert claim_of(driver.waiting(JOIN)[1]) == partitions(0, 1)


def test_nothing_is_told_of_what_is_kept_and_it_keeps_its_token() -> None:
    """S13: nobody else can have had it in between, so the user's token is still the newest."""
    driver = stable(0, 1)
    driver.next_heartbeat(REBALANCE_IN_PROGRESS)
    rejoin(driver, 2, 0, 1, 2)
    assert driver.told == [Assigned(partitions(2), Grant("m-1", 2, 8, 0))]
    assert tokens(driver) == {0: 7, 1: 7, 2: 8}
    assert not driver.is_waiting(JOIN)


def test_what_moves_is_revoked_first_and_given_to_the_group_by_a_second_join() -> None:
    driver = stable(0, 1, 2)
    driver.next_heartbeat(REBALANCE_IN_PROGRESS)
    rejoin(driver, 2, 0, 1)
    assert driver.told == [Revoke(partitions(2))]
    assert set(tokens(driver)) == {0, 1, 2}  # still owned while on_revoked runs
    assert not driver.is_waiting(JOIN)
    let_go(driver)
    assert tokens(driver) == {0: 7, 1: 7}
    assert claim_of(driver.waiting(JOIN)[1]) == partitions(0, 1)
    rejoin(driver, 3, 0, 1)
    assert not driver.is_waiting(JOIN)


def test_what_is_new_is_owned_at_once_while_on_revoked_runs() -> None:
    driver = stable(0, 1)
    driver.next_heartbeat(REBALANCE_IN_PROGRESS)
    rejoin(driver, 2, 1, 5)
    assert driver.told == [
        Revoke(partitions(0)),
        Assigned(partitions(5), Grant("m-1", 2, 8, 0)),
    ]
    let_go(driver)
    assert claim_of(driver.waiting(JOIN)[1]) == partitions(1, 5)


def test_a_rebalance_that_begins_while_on_revoked_runs_waits_for_it() -> None:
    """A join that claimed less than the user acts on would give away what is acted on."""
    driver = stable(0, 1)
    driver.next_heartbeat(REBALANCE_IN_PROGRESS)
    rejoin(driver, 2, 1)
    driver.advance(0)
    driver.heartbeat(REBALANCE_IN_PROGRESS)
    assert not driver.is_waiting(JOIN)
    let_go(driver)
    assert driver.is_waiting(JOIN)


def test_t6_a_heartbeat_that_overtakes_the_sync_does_not_begin_another_join() -> None:
    """K-O3: in a group of both protocols the sync says what is to be given up.

    Until the member has joined without that, its heartbeats ask for a join; one that is sent before
    that answer would claim it again.
    """
    driver = stable(0, 1)
    driver.next_heartbeat(REBALANCE_IN_PROGRESS)
    driver.joined(generation=1, protocol="cooperative-sticky")
    driver.advance(0)
    driver.heartbeat(REBALANCE_IN_PROGRESS)
    assert not driver.is_waiting(JOIN)
    assert driver.is_waiting(SYNC)
    driver.synced(0, token=7)
    let_go(driver)

    assert claim_of(driver.waiting(JOIN)[1]) == partitions(0)


def test_t6_who_was_told_to_join_before_its_sync_asks_again_once_that_is_answered() -> None:
    """Not an interval later: others may wait for what the answer did not take away."""
    driver = stable(0, 1)
    driver.next_heartbeat(REBALANCE_IN_PROGRESS)
    driver.joined(generation=2, protocol="cooperative-sticky")
    driver.advance(0)
    driver.heartbeat(REBALANCE_IN_PROGRESS)
    driver.synced(0, 1)
    driver.advance(0)
    driver.heartbeat(REBALANCE_IN_PROGRESS)

    assert driver.is_waiting(JOIN)


def test_t6_who_is_told_to_join_again_and_again_waits_for_its_sync_no_more() -> None:
    """The group rebalances, and what has become of the sync nobody knows."""
    driver = stable(0, 1)
    driver.next_heartbeat(REBALANCE_IN_PROGRESS)
    driver.joined(generation=2, protocol="cooperative-sticky")
    driver.advance(0)
    driver.heartbeat(REBALANCE_IN_PROGRESS)
    driver.next_heartbeat(REBALANCE_IN_PROGRESS)

    assert driver.is_waiting(JOIN)
    assert not driver.is_waiting(SYNC)


def test_a_process_that_was_started_again_joins_for_what_its_predecessor_claimed() -> None:
    """Else nobody would free it: the new process holds nothing and has claimed nothing."""
    driver = Driver(cooperative(instance_id="i-1"))
    driver.found()
    first = driver.waiting(JOIN)[1]
    driver.joined(protocol="cooperative-sticky")
    driver.answer(SYNC, sync_answer(user_data=JOIN_AGAIN))
    again = driver.waiting(JOIN)[1]
    assert again.member_id == "m-1"
    assert again.protocols != first.protocols  # unchanged bytes would begin nothing (K-A14)
    rejoin(driver, 2)
    assert not driver.is_waiting(JOIN)


def test_whoever_claimed_what_it_no_longer_holds_joins_again_too() -> None:
    """After a loss the claim is only a wish; it must not keep a partition from everyone."""
    driver = stable(0, 1)
    driver.next_heartbeat(ILLEGAL_GENERATION)
    assert claim_of(driver.waiting(JOIN)[1]) == partitions(0, 1)
    rejoin(driver, 3, 0)
    assert claim_of(driver.waiting(JOIN)[1]) == partitions(0)


def test_one_eager_assignor_in_the_list_makes_the_member_eager() -> None:
    """Which one the group will choose is not known yet: the way over is two rolling restarts."""
    driver = stable(0, 1, settings=cooperative(RangeAssignor()))
    driver.next_heartbeat(REBALANCE_IN_PROGRESS)
    assert driver.told == [Revoke(partitions(0, 1))]
    assert not driver.is_waiting(JOIN)
    let_go(driver)
    assert not driver.owns()
    rejoin(driver, 2, 0)  # it claimed 1 as well, for which others may wait
    assert claim_of(driver.waiting(JOIN)[1]) == partitions(0)
    assert not driver.owns()


def test_t3_a_generation_that_passed_while_parked_takes_nothing_from_a_healthy_member() -> None:
    """The join phase has closed, and the heartbeat's answer has overtaken the join's."""
    driver = stable(0)
    driver.next_heartbeat(REBALANCE_IN_PROGRESS)
    driver.next_heartbeat(ILLEGAL_GENERATION)
    assert driver.told == []
    assert driver.owns(), "as if that answer had been lost: the lease bounds it"
    assert driver.is_waiting(JOIN)
    rejoin(driver, 3, 0)
    nothing_new = Assigned((), Grant("m-1", 3, 8, 0))
    assert driver.told == [nothing_new], "kept all the time, under the first grant's token"
    assert driver.owns()


@pytest.mark.parametrize(("session_ms", "rebalance_ms"), [(10_000, 60_000), (60_000, 10_000)])
def test_s11_a_generation_that_passed_while_parked_ends_every_renewal(
    session_ms: int, rebalance_ms: int
) -> None:
    """Left behind or not: owned for 0.8 of the shorter time since the last good heartbeat."""
    settings = cooperative(session_timeout_ms=session_ms, rebalance_timeout_ms=rebalance_ms)
    driver = stable(0, settings=settings)
    driver.next_heartbeat(NONE)
    good_ms = driver.now
    driver.advance(10)
    push = group_pb2.HeartbeatPush(
        group_id="g", member_id="m-1", generation_id=1, error_code=REBALANCE_IN_PROGRESS
    )
    driver.session.pushed(push, driver.now)
    driver.take()
    driver.next_heartbeat(ILLEGAL_GENERATION)
    request = driver.waiting(JOIN)[1]
    driver.advance(good_ms + 7_999 - driver.now)
    assert driver.owns()
    assert not driver.is_waiting(HEARTBEAT)
    assert driver.waiting(JOIN)[1] == request, "the same join again (S17)"
    driver.advance(1)
    assert isinstance(driver.told_last, Lost)
    assert driver.told_last.reason.kind == "clock"
    assert not driver.owns()


def test_t2_a_join_that_tells_of_a_removal_takes_everything_after_a_generation_passed() -> None:
    driver = stable(0)
    driver.next_heartbeat(REBALANCE_IN_PROGRESS)
    driver.next_heartbeat(ILLEGAL_GENERATION)
    driver.answer(JOIN, group_pb2.JoinGroupResponse(error_code=UNKNOWN_MEMBER_ID))
    assert isinstance(driver.told_last, Lost)
    assert not driver.owns()
    assert driver.waiting(JOIN)[1].member_id == ""


def test_s11_the_lease_ends_ownership_while_a_join_is_parked() -> None:
    """Heartbeats are answered, but the join phase outlasts 0.8 of the own rebalance timeout."""
    driver = stable(0, settings=cooperative(rebalance_timeout_ms=5_000))
    driver.next_heartbeat(REBALANCE_IN_PROGRESS)
    for _ in range(3):
        driver.next_heartbeat(REBALANCE_IN_PROGRESS)
    (lost,) = driver.told
    assert isinstance(lost, Lost)
    rejoin(driver, 2, 0)
    assert driver.told_last == Assigned(partitions(0), Grant("m-1", 2, 8, 0))


def test_s11_after_self_fencing_a_heartbeat_of_the_next_generation_gives_nothing_back() -> None:
    """Only the same generation proves it, or the next assignment."""
    driver = stable(0, settings=cooperative(rebalance_timeout_ms=5_000))
    driver.next_heartbeat(REBALANCE_IN_PROGRESS)
    for _ in range(3):
        driver.next_heartbeat(REBALANCE_IN_PROGRESS)
    driver.joined(generation=2, protocol="cooperative-sticky")
    driver.advance(1_000)
    while driver.is_waiting(HEARTBEAT):
        driver.heartbeat(NONE)
    assert not driver.owns()
    assert isinstance(driver.told_last, Lost)


def test_s11_a_sync_that_never_arrives_ends_ownership_before_the_group_gives_up_waiting() -> None:
    """K-E10: who has not synced a rebalance timeout after the join phase is removed at once.

    Heartbeats of the new generation are answered NONE all the while; they must not count.
    """
    driver = stable(0, settings=cooperative(rebalance_timeout_ms=20_000))
    driver.next_heartbeat(NONE)  # sent at 1 s, in the old generation: 0.8 of 20 s from here
    driver.next_heartbeat(REBALANCE_IN_PROGRESS)
    driver.joined(generation=2, protocol="cooperative-sticky")
    driver.advance(0)
    driver.heartbeat(NONE)
    for _ in range(14):
        driver.next_heartbeat(NONE)
    assert driver.owns()  # at 16 s
    driver.advance(999)
    assert driver.owns()
    driver.advance(1)
    assert isinstance(driver.told_last, Lost)


def test_s12_leaving_while_a_join_is_parked_lets_go_first() -> None:
    driver = stable(0, 1)
    driver.next_heartbeat(REBALANCE_IN_PROGRESS)
    parked, _ = driver.waiting(JOIN)
    driver.session.leave(driver.now)
    driver.take()
    assert parked.call in driver.cancelled  # its answer must not begin another round
    assert driver.told == [Revoke(partitions(0, 1))]
    assert not driver.is_waiting(LEAVE)
    let_go(driver)
    assert driver.is_waiting(LEAVE)


def test_s12_leaving_while_a_part_is_revoked_lets_go_of_the_rest_as_well() -> None:
    driver = stable(0, 1)
    driver.next_heartbeat(REBALANCE_IN_PROGRESS)
    rejoin(driver, 2, 0)
    driver.session.leave(driver.now)
    let_go(driver)
    assert driver.told_last == Revoke(partitions(0))
    let_go(driver)
    assert driver.is_waiting(LEAVE)


def test_s12_takeover_wait_holds_back_only_what_is_new() -> None:
    driver = stable(0, settings=cooperative(takeover="wait"))
    driver.next_heartbeat(REBALANCE_IN_PROGRESS)
    driver.joined(generation=2, protocol="cooperative-sticky")
    driver.synced(0, 1, token=8, predecessor_ms=500)
    assert set(tokens(driver)) == {0}
    driver.advance(500)
    assert set(tokens(driver)) == {0, 1}


def test_the_group_leader_withholds_what_moves_and_says_who_must_join_again() -> None:
    driver = Driver(cooperative())
    driver.found()
    subscriptions = {"m-1": (), "m-2": (0, 1), "m-3": ()}
    members = [
        group_pb2.JoinGroupResponseMember(
            member_id=member_id,
            metadata=group_pb2.ConsumerProtocolSubscription(
                topics=["t"],
                owned_partitions=[
                    group_pb2.ConsumerProtocolTopicPartitions(topic="t", partitions=owned)
                ],
                generation_id=1,
            ).SerializeToString(),
        )
        for member_id, owned in subscriptions.items()
    ]
    driver.joined(leader="m-1", members=members, protocol="cooperative-sticky")
    topics = admin_pb2.ListTopicsResponse(
        topics=[admin_pb2.ListedTopic(name="t", num_partitions=2)]
    )
    driver.answer(TOPICS, topics)
    given = {
        a.member_id: read_assignment(a.assignment) for a in driver.waiting(SYNC)[1].assignments
    }
    assert [len(share.partitions) for share in given.values()] == [0, 1, 0]
    assert [share.join_again for share in given.values()] == [False, True, False]


@pytest.mark.parametrize("answered_first", [True, False])
def test_the_second_sync_answer_of_a_round_is_dropped(answered_first: bool) -> None:  # noqa: FBT001 - a table of cases
    """A failed heartbeat sends the parked sync once more (S17); only one of them may count."""
    driver = Driver(cooperative())
    driver.found()
    driver.answer(JOIN, join_answer(protocol="cooperative-sticky"))
    driver.advance(0)
    first, _ = driver.waiting(SYNC)
    driver.fail(HEARTBEAT)
    second, _ = driver.waiting(SYNC)
    one, other = (first, second) if answered_first else (second, first)
    driver.answer_call(one, sync_answer(0))
    assert other.call in driver.cancelled
    driver.session.answered(other.call, sync_answer(0), driver.now)
    driver.take()
    assert driver.told == [Assigned(partitions(0), Grant("m-1", 1, 7, 0))]


def test_t6_a_commit_that_is_refused_before_the_sync_is_answered_begins_no_other_round() -> None:
    """The group waits for the syncs of this very round.

    Whoever works on and tries the commit again and again would cancel the sync each time; a group
    leader would hold up everybody.
    """
    driver = stable(0)
    driver.next_heartbeat(REBALANCE_IN_PROGRESS)
    driver.joined(generation=2, protocol="cooperative-sticky")
    sync, _ = driver.waiting(SYNC)
    extras = extras_pb2.ResponseExtras()
    driver.session.refused(REBALANCE_IN_PROGRESS, driver.session.identity, extras, driver.now)
    driver.take()
    assert driver.waiting(SYNC)[0] == sync
    assert not driver.is_waiting(JOIN)
    driver.advance(0)
    driver.heartbeat(REBALANCE_IN_PROGRESS)
    assert not driver.is_waiting(JOIN), "its answer may have overtaken that of the sync"
    driver.next_heartbeat(REBALANCE_IN_PROGRESS)
    assert driver.is_waiting(JOIN), "a later heartbeat that says so means the next round"
