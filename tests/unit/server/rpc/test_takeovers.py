"""How often an instance id was taken over: right after failover and restart, bounded in memory."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, cast

import pytest

from holdfast.cli.render import describing, explain
from holdfast.coordinator.model.events import StaticMemberReplaced
from holdfast.server.rpc import takeovers
from holdfast.server.rpc.takeovers import KEPT_MAX, WINDOW_MS, Counts, Takeovers
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import group_pb2 as g
from holdfast.v1 import offset_pb2 as o
from unit.runtime.fake_history import FakeHistory
from unit.runtime.fake_replica import FakeReplica
from unit.runtime.world import World, beating
from unit.server.nodes import Served, beat, join, served, sync, topic, until
from unit.server.watched_world import WatchedWorld

if TYPE_CHECKING:
    from holdfast.coordinator.model.ids import Position
    from holdfast.runtime.event_log.history import Page
    from holdfast.v1 import extras_pb2 as x

MINUTE_MS = 60_000
LEFT_MS = 10_000
"""How long a holder that had not released might still act."""


def taken(number: int, at_ms: int = 0, instance: str = "i") -> takeovers._Takeover:
    return takeovers._Takeover(at_ms, "g", instance, f"{instance}-{number}")


# --- the counts ---


def test_what_is_older_than_the_window_does_not_count() -> None:
    counts = Counts()
    for number in range(10):
        counts.replaced(taken(number, number * MINUTE_MS), LEFT_MS)
    assert counts.count("g", "i", 9 * MINUTE_MS) == 10
    assert counts.count("g", "i", WINDOW_MS + 4 * MINUTE_MS) == 5
    assert counts.count("g", "other", 9 * MINUTE_MS) == 0
    assert len(counts) == 5


def test_s12_a_release_makes_the_next_swap_a_planned_restart() -> None:
    counts = Counts()
    counts.released("i-1")
    counts.replaced(taken(1), LEFT_MS)
    assert counts.count("g", "i", 0) == 0


def test_an_event_that_is_told_twice_counts_once_and_a_release_may_be_learned_late() -> None:
    """What is read back from the log overlaps with what is applied meanwhile."""
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    told = [taken(number, number) for number in range(20)] * 2
    rng.shuffle(told)
    counts = Counts()
    for takeover in told:
        counts.replaced(takeover, LEFT_MS)
    counts.sort()
    assert counts.count("g", "i", 20) == 20
    counts.released("i-7")
    assert counts.count("g", "i", 20) == 19
    assert counts.count("g", "i", WINDOW_MS + 9) == 10


def test_memory_is_bounded_and_the_oldest_is_forgotten_first() -> None:
    counts = Counts()
    for number in range(KEPT_MAX + 100):
        counts.released(f"gone-{number}")
        counts.replaced(taken(number, number, instance=f"i{number}"), LEFT_MS)
    assert len(counts) == KEPT_MAX
    assert len(counts._released) == KEPT_MAX
    assert len(counts._counts) == KEPT_MAX
    assert counts.count("g", "i99", 0) == 0
    assert counts.count("g", "i100", 0) == 1


# --- what is read back ---


async def fight(world: World, swaps: int, instance: str = "i1") -> None:
    """So many processes take the instance id from each other."""
    await world.member(instance)
    for _ in range(swaps):
        await world.join(instance)


async def restarted(replica: FakeReplica) -> Takeovers:
    """The same node in a new process: it has its log, and no memory."""
    anew = Takeovers(replica, FakeHistory(replica))
    anew.start()
    assert anew._reading is not None
    await anew._reading
    return anew


def test_a_process_that_was_restarted_counts_from_the_log_what_it_did_not_see() -> None:
    async def story() -> None:
        world = await WatchedWorld().lead()
        await fight(world, 15)
        assert world.takeovers.count("g", "i1") == 15
        anew = await restarted(world.replica)
        assert anew.count("g", "i1") == 15
        assert anew.count("g", "i2") == 0

    asyncio.run(story())


def test_s12_planned_restarts_are_not_counted_live_or_from_the_log() -> None:
    async def story() -> None:
        world = await WatchedWorld().lead()
        joined = await world.member("i1")
        for _ in range(3):
            await world.ask(beating("i1", joined, release=True))
            joined = await world.join("i1")
        assert world.takeovers.count("g", "i1") == 0
        assert (await restarted(world.replica)).count("g", "i1") == 0

    asyncio.run(story())


def test_s12_a_release_before_what_is_read_back_still_makes_a_planned_restart() -> None:
    """Sessions may be longer than the window: the swap is in it, the release before it."""

    async def story() -> None:
        world = await World().lead()
        joined = await world.member("i1")
        await world.ask(beating("i1", joined, release=True))
        world.replica._now_ms += WINDOW_MS
        await world.join("i1")
        for _ in range(takeovers.PAGE_RECORDS + 1):  # so many entries that it need not be read
            world.replica.slip_in("")
        history = FakeHistory(world.replica)
        swap = next(r for r in world.replica.records if isinstance(r.event, StaticMemberReplaced))
        history.lost_before = swap.position
        anew = Takeovers(world.replica, history)
        anew.start()
        assert anew._reading is not None
        await anew._reading
        assert anew.count("g", "i1") == 0

    asyncio.run(story())


def test_s12_a_release_that_is_not_known_here_still_makes_a_planned_restart() -> None:
    """The node was restarted between release and swap, and the release is out of reach."""

    async def story() -> None:
        world = await World().lead()
        joined = await world.member("i1")
        await world.ask(beating("i1", joined, release=True))
        before = len(world.replica.records)
        anew = Takeovers(world.replica, FakeHistory(world.replica))
        await world.join("i1")
        await world.join("i1")
        anew.on_applied(world.replica.records[before:], 1)
        assert anew.count("g", "i1") == 1, "the second one came without a release"

    asyncio.run(story())


def test_a_node_that_got_its_state_as_a_snapshot_reads_back_when_it_leads() -> None:
    """What a snapshot holds is never applied, so only the log tells of it."""

    async def story() -> None:
        world = await World().lead()
        await fight(world, 4)
        follower = Takeovers(world.replica, FakeHistory(world.replica))
        assert follower.count("g", "i1") == 0
        follower.on_leading(2)
        assert follower._reading is not None
        await follower._reading
        assert follower.count("g", "i1") == 4

    asyncio.run(story())


def test_what_is_read_back_is_bounded_whatever_the_length_of_the_log() -> None:
    async def story() -> None:
        replica = FakeReplica()
        replica.lead()
        replica.state = replica.state._replace(applied_index=10 * takeovers.ENTRIES_BACK_MAX)
        history = FakeHistory(replica)
        replica.records = []
        anew = Takeovers(replica, history)
        anew.start()
        assert anew._reading is not None
        await anew._reading
        starts = [start for start, limit in history.reads if limit == takeovers.PAGE_RECORDS]
        least = replica.state.applied_index - takeovers.ENTRIES_BACK_MAX
        assert all(start is not None and start.index >= least for start in starts)
        assert len(history.reads) < 20

    asyncio.run(story())


@pytest.mark.parametrize("lost", [True, False])
def test_a_log_that_cannot_be_read_costs_the_past_only(
    lost: bool,  # noqa: FBT001 - a table of cases
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken(FakeHistory):
        async def read(self, start: Position | None, limit: int) -> Page:
            del start, limit
            raise OSError("no such disk") if lost else ValueError("no such segment")

    async def story() -> None:
        world = await World().lead()
        anew = Takeovers(world.replica, Broken(world.replica))
        anew.start()
        assert anew._reading is not None
        await anew._reading
        anew.listen()
        await fight(world, 2)
        assert anew.count("g", "i1") == 2

    asyncio.run(story())
    assert "takeovers before this moment" in caplog.text


# --- what is told ---


async def taken_over(node: Served, times: int) -> g.JoinGroupResponse:
    """A member that was granted something, and as many processes that took its place. The first."""
    first = await node.group.JoinGroup(join())
    await node.group.SyncGroup(sync(first))
    for _ in range(times):
        await node.group.JoinGroup(join())
    return first


def test_describe_and_explain_say_that_two_processes_may_fight(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def story() -> a.DescribeGroupsResponse:
        async with served() as node:
            await taken_over(node, 15)
            return await node.admin.DescribeGroups(a.DescribeGroupsRequest(groups=["g"]))

    response = asyncio.run(story())
    assert response.groups[0].members[0].holdfast.takeovers == 15
    describing.show(response)
    told = explain.fought_over(15)
    assert told.startswith("taken over 15 times in 10 min: two processes may use this instance id")
    assert told in capsys.readouterr().out


def test_kip345_a_fenced_member_is_told_how_often_and_for_how_long() -> None:
    """By each call of a member, and on the stream of heartbeats."""

    async def story() -> list[x.ResponseExtras]:
        async with served() as node:
            await topic(node)
            first = await taken_over(node, 3)
            node.replica._now_ms += 161_000
            heartbeat, synced = beat(first), sync(first)
            rejoin = join(member_id=first.member_id)
            commit = o.OffsetCommitRequest(
                group_id="g",
                generation_id_or_member_epoch=1,
                member_id=first.member_id,
                group_instance_id="i1",
                topics=[
                    o.OffsetCommitRequestTopic(
                        name="t", partitions=[o.OffsetCommitRequestPartition(partition_index=0)]
                    )
                ],
            )
            batch = node.group.HeartbeatStream(iter([g.HeartbeatBatch(requests=[heartbeat])]))
            streamed = cast("g.HeartbeatBatchResponse", await batch.read())
            return [
                (await node.group.Heartbeat(heartbeat)).holdfast,
                (await node.group.SyncGroup(synced)).holdfast,
                (await node.group.JoinGroup(rejoin)).holdfast,
                (await node.offset.OffsetCommit(commit)).holdfast,
                streamed.responses[0].holdfast,
            ]

    for extras in asyncio.run(story()):
        assert extras.takeovers == 3
        assert "for 2 min 41 s" in extras.message


def test_a_member_that_is_not_fenced_hears_of_no_takeovers() -> None:
    async def story() -> None:
        async with served() as node:
            await taken_over(node, 1)
            answer = await node.group.Heartbeat(beat(await node.group.JoinGroup(join())))
            assert not answer.holdfast.HasField("takeovers")

    asyncio.run(story())


def test_a_node_begins_to_read_when_it_starts_and_ends_with_it() -> None:
    async def story() -> None:
        async with served() as node:
            reading = node.node.takeovers._reading
            assert reading is not None
            await until(reading.done)

    asyncio.run(story())
