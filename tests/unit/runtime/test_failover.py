"""A failover as members see it, on three nodes: parked calls, retries, deadlines, generations."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from holdfast.coordinator.model.events import GenerationStarted
from holdfast.coordinator.model.rejections import MemberIdRequired, RebalanceInProgress
from unit.runtime.trio import (
    REBALANCE_MS,
    SESSION_MS,
    Trio,
    beating,
    heard,
    joined,
    joining,
    leaving,
    left,
    limiting,
    synced,
    syncing,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from holdfast.coordinator.model.replies import JoinReply


def play(story: Callable[[Trio], Coroutine[None, None, None]]) -> None:
    """Run a story on three nodes of which one leads; at the end their logs and states are equal.

    So is what they tell of rebalances.
    """

    async def run() -> None:
        trio = Trio()
        await trio.elect()
        await story(trio)
        logs = [replica.records for replica in trio.replicas]
        states = [replica.state for replica in trio.replicas]
        histories = [replica.histories for replica in trio.replicas]
        trio.close()
        assert logs[0] == logs[1] == logs[2]
        assert states[0] == states[1] == states[2]
        assert histories[0] == histories[1] == histories[2]

    asyncio.run(run())


async def stable(trio: Trio) -> tuple[JoinReply, JoinReply]:
    """A static leader and a dynamic follower that share a generation and have synced."""
    await joined(trio.ask(joining("i1", request_id="first")))
    refused = await joined(trio.ask(joining(None)))
    assert isinstance(refused.error, MemberIdRequired)
    follower = await trio.sent(joining(None, refused.member_id))
    again = await joined(trio.ask(joining("i1", trio.group.body.leader or "", protocols="pq")))
    second = await joined(follower)
    assert (await synced(trio.ask(syncing(again)))).error is None
    assert (await synced(trio.ask(syncing(second)))).error is None
    assert trio.group.state == "Stable"
    return again, second


def test_parked_joins_are_sent_again_and_are_the_same_joins() -> None:
    """K-L5 bettered, S14, S16: a member that never heard of its id gets that one, and no other."""

    async def story(trio: Trio) -> None:
        leader, follower = await stable(trio)
        await trio.sent(joining("i3", request_id="mine"))
        await trio.sent(joining("i1", leader.member_id, "again", "pq"))
        [newcomer] = [m for m in trio.group.body.members.values() if m.instance_id == "i3"]
        await trio.fail_over()

        assert isinstance((await heard(trio.ask(beating(follower)))).error, RebalanceInProgress)
        third = await trio.sent(joining("i3", request_id="mine"))
        first = await trio.sent(joining("i1", leader.member_id, "again", "pq"))
        second = await joined(trio.ask(joining(None, follower.member_id)))

        assert (await joined(third)).member_id == newcomer.member_id
        assert (await joined(first)).leader == leader.member_id
        assert second.generation == leader.generation + 1
        assert (trio.count("MemberJoined"), trio.count("StaticMemberReplaced")) == (3, 0)
        assert trio.count("RebalanceStarted") == 3, "first, second and third member"

    play(story)


def test_parked_syncs_are_sent_again_and_find_their_generation() -> None:
    """K-L5 bettered, S16: the generation was on the log before anybody was told."""

    async def story(trio: Trio) -> None:
        leader, follower = await completing(trio)
        await trio.sent(syncing(follower))
        await trio.fail_over()

        waiting = await trio.sent(syncing(follower))
        assert not waiting.done()
        first = await synced(trio.ask(syncing(leader)))
        second = await synced(waiting)

        assert (first.error, second.error) == (None, None)
        assert second.assignment == follower.member_id.encode()
        assert trio.group.generation == leader.generation

    play(story)


async def completing(trio: Trio) -> tuple[JoinReply, JoinReply]:
    """The same two members in a new generation, answered, and not yet synced."""
    leader, follower = await stable(trio)
    first = await trio.sent(joining("i1", leader.member_id, protocols="pq"))
    second = await joined(trio.ask(joining(None, follower.member_id)))
    return await joined(first), second


def test_no_generation_is_issued_twice() -> None:
    """K-L5 bettered, S13: the leader dies when the join phase has closed and nobody was answered.

    Kafka forgets such a generation, and gives its number to another one.
    """

    async def story(trio: Trio) -> None:
        leader, follower = await stable(trio)
        await trio.sent(joining("i1", leader.member_id, "again", "pq"))
        trio.leader.replica.hold = True
        await trio.sent(joining(None, follower.member_id, "too"))
        trio.leader.replica.release()  # committed everywhere, and the node dies with the answers
        await trio.fail_over()
        reached = trio.group.generation

        first = await joined(trio.ask(joining("i1", leader.member_id, "again", "pq")))
        second = await joined(trio.ask(joining(None, follower.member_id, "too")))
        assert (first.generation, second.generation) == (reached, reached)
        assert reached == leader.generation + 1

        await trio.sent(joining("i1", leader.member_id))
        third = await joined(trio.ask(joining(None, follower.member_id)))
        assert third.generation == reached + 1
        numbers = generations(trio)
        assert numbers == sorted(set(numbers))

    play(story)


def generations(trio: Trio) -> list[int]:
    """All generations that were ever started, in order."""
    events = (record.event for record in trio.records)
    return [event.generation for event in events if isinstance(event, GenerationStarted)]


@pytest.mark.parametrize("failovers", [1, 3])
def test_a_failover_by_itself_moves_nobody(failovers: int) -> None:
    """K-L3, K-L4, S16: no rebalance, no new generation, the same assignment, whoever leads."""

    async def story(trio: Trio) -> None:
        leader, follower = await stable(trio)
        before = len(trio.records)
        for _ in range(failovers):
            await trio.fail_over()
            await trio.advance(SESSION_MS - 500)
            assert (await heard(trio.ask(beating(leader)))).error is None
            assert (await heard(trio.ask(beating(follower)))).error is None
        assert (await synced(trio.ask(syncing(follower)))).assignment == follower.member_id.encode()
        assert len(trio.records) == before

    play(story)


def test_a_new_leader_gives_every_session_in_full_and_no_more() -> None:
    """K-L4, S9: who was about to expire has a session again; who stays silent goes after it."""

    async def story(trio: Trio) -> None:
        leader, follower = await stable(trio)
        await trio.advance(SESSION_MS - 200)
        await trio.fail_over()
        await trio.advance(SESSION_MS - 200)
        assert (await heard(trio.ask(beating(leader)))).error is None
        assert follower.member_id in trio.group.body.members
        await trio.advance(400)

        assert set(trio.group.body.members) == {leader.member_id}

    play(story)


def test_an_open_join_phase_has_its_time_again() -> None:
    """S16: for the new leader nobody has rejoined, and everybody has the full timeout for it."""

    async def story(trio: Trio) -> None:
        leader, follower = await stable(trio)
        await trio.sent(joining("i1", leader.member_id, protocols="pq"))
        await alive(trio, follower, SESSION_MS - 500)
        await trio.fail_over()
        first = await trio.sent(joining("i1", leader.member_id, protocols="pq"))
        for _ in range(2):
            await alive(trio, follower, REBALANCE_MS // 2 - 200)
        assert not first.done()
        assert follower.member_id in trio.group.body.members
        await trio.advance(500)

        assert (await joined(first)).generation == leader.generation + 1
        assert follower.member_id not in trio.group.body.members

    play(story)


async def alive(trio: Trio, member: JoinReply, for_ms: int) -> None:
    """Time passes, and the member heartbeats at its end."""
    await trio.advance(for_ms)
    assert isinstance((await heard(trio.ask(beating(member)))).error, RebalanceInProgress)


def test_a_sync_that_is_owed_is_owed_to_the_new_leader_too() -> None:
    """K-E10, S16: expected of everyone who was answered, for a full timeout from the failover."""

    async def story(trio: Trio) -> None:
        leader, follower = await completing(trio)
        await trio.advance(SESSION_MS - 500)
        await trio.fail_over()
        assert (await synced(trio.ask(syncing(leader)))).error is None
        for _ in range(2):
            await trio.advance(REBALANCE_MS // 2 - 200)
            assert (await heard(trio.ask(beating(leader)))).error is None
            assert (await heard(trio.ask(beating(follower)))).error is None
        await trio.advance(500)

        assert set(trio.group.body.members) == {leader.member_id}
        assert trio.group.generation == leader.generation

    play(story)


def test_what_was_not_committed_never_happened() -> None:
    """S5: the join dies with its leader; sent again it is a first join. The group is untouched."""

    async def story(trio: Trio) -> None:
        leader, _ = await stable(trio)
        trio.leader.replica.hold = True
        await trio.sent(joining("i3", request_id="mine"))
        await trio.fail_over()

        assert (await heard(trio.ask(beating(leader)))).error is None
        assert set(trio.group.body.instances) == {"i1"}
        await trio.sent(joining("i3", request_id="mine"))
        assert set(trio.group.body.instances) == {"i1", "i3"}
        assert trio.count("MemberJoined") == 3

    play(story)


def test_a_swap_whose_answer_was_lost_is_found_again() -> None:
    """K-B22, S14: the same process asks the new leader, and is not taken for a twin of itself."""

    async def story(trio: Trio) -> None:
        leader, _ = await stable(trio)
        trio.leader.replica.hold = True
        await trio.sent(joining("i1", request_id="swap", protocols="pq"))
        trio.leader.replica.release()
        await trio.fail_over()
        again = await joined(trio.ask(joining("i1", request_id="swap", protocols="pq")))

        assert again.member_id == trio.group.body.leader != leader.member_id
        assert (again.skip_assignment, again.generation) == (True, leader.generation)
        assert trio.count("StaticMemberReplaced") == 1

    play(story)


def test_a_group_over_a_lowered_limit_joins_again_under_a_new_leader() -> None:
    """K-I13: the one cause for which a takeover opens a join phase, and the log says so."""

    async def story(trio: Trio) -> None:
        leader, follower = await stable(trio)
        await trio.ask(limiting(1))
        assert (await heard(trio.ask(beating(leader)))).error is None
        await trio.fail_over()
        await trio.advance(100)
        assert isinstance((await heard(trio.ask(beating(follower)))).error, RebalanceInProgress)

        first = await trio.sent(joining("i1", leader.member_id, protocols="pq"))
        too_many = await joined(trio.ask(joining(None, follower.member_id)))
        assert type(too_many.error).__name__ == "GroupMaxSizeReached"
        assert (await joined(first)).generation == leader.generation + 1
        assert trio.records[-3].cause.rule == "I13"

    play(story)


def test_handed_out_ids_are_forgotten_and_asked_for_again() -> None:
    """K-L6: an id that was not used yet was never on the log."""

    async def story(trio: Trio) -> None:
        await stable(trio)
        given = await joined(trio.ask(joining(None)))
        await trio.fail_over()
        unknown = await joined(trio.ask(joining(None, given.member_id)))
        again = await joined(trio.ask(joining(None)))

        assert type(unknown.error).__name__ == "UnknownMemberId"
        assert isinstance(again.error, MemberIdRequired)
        gone = await left(trio.ask(leaving(given.member_id)))
        assert type(gone.members[0].error).__name__ == "UnknownMemberId"

    play(story)


def test_a_new_leader_tells_of_the_same_rebalances() -> None:
    """An operator asks why a group rebalanced just when a node has failed."""

    async def story(trio: Trio) -> None:
        await stable(trio)
        told = trio.leader.replica.histories["g"]
        await trio.fail_over()
        assert trio.leader.replica.histories["g"] == told
        assert [each.number for each in told] == [1, 2]

    play(story)
