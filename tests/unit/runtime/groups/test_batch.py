"""S7: what each fits into an entry of the log does not fail because it came at the same time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.model import commands as c
from holdfast.coordinator.model.events import (
    GroupDeleted,
    MembersRemoved,
    OffsetCommitted,
    OffsetsDeleted,
    RequestRecorded,
    SettingChange,
    TopicsCreated,
    TopicSize,
)
from holdfast.coordinator.model.ids import TopicPartition
from holdfast.runtime.groups.batch import WEIGHT_MAX
from holdfast.storage.codec.event_codec import encode_part
from unit.runtime.world import World, committing, creating, joining, with_topic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.coordinator.model.ids import CallId

LONG_MS = 365 * 24 * 3_600_000
"""Longer than offsets are kept."""
SMALL_EVENTS = 2
"""The first commit makes the group, and commits."""


def large(_: World, offset: int = 2) -> Callable[[CallId], c.Command]:
    """A commit that is worth a batch of its own."""
    wanted = (OffsetCommitted("t", 0, offset, -1, "m" * 4_096),) * (WEIGHT_MAX // 4_096)
    return lambda call: c.CommitOffsets(c.Caller(call), "simple", -1, "", None, wanted)


def forgetting(world: World) -> Callable[[CallId], c.Command]:
    """Offsets to forget, one of them known, so many that the stored answer fills a batch."""
    request_id = world.request_id()
    wanted = (TopicPartition("t", 0), *_nowhere())
    return lambda call: c.DeleteOffsets(
        c.Caller(call, "p", request_id=request_id, digest=b"d"), "simple", wanted
    )


def making_topics(_: World) -> Callable[[CallId], c.Command]:
    """Topics that fill an entry by their names."""
    wanted = tuple(TopicSize(f"{n:0240}", 1) for n in range(WEIGHT_MAX // 240))
    return lambda call: c.CreateTopics(c.Caller(call), wanted)


def _nowhere() -> Iterator[TopicPartition]:
    return (TopicPartition("x" * 200, number) for number in range(WEIGHT_MAX // 200))


@pytest.mark.parametrize("make", [large, forgetting])
def test_what_fills_a_batch_does_not_join_one_that_is_begun(
    make: Callable[[World], Callable[[CallId], c.Command]],
) -> None:
    async def story() -> None:
        world = await World().lead()
        await with_topic(world)
        before = len(world.replica.proposed)
        await asyncio.gather(world.ask(committing("simple", 1)), world.ask(make(world)))

        assert len(world.replica.proposed[before].events) == SMALL_EVENTS

    asyncio.run(story())


def test_topics_that_fill_a_batch_do_not_join_one_that_is_begun() -> None:
    async def story() -> None:
        world = await World().lead()
        before = len(world.replica.proposed)
        await asyncio.gather(world.ask(creating("first")), world.ask(making_topics(world)))

        made = [proposed.event for proposed in world.replica.proposed[before].events]
        assert sum(len(event.topics) for event in made if isinstance(event, TopicsCreated)) == 1

    asyncio.run(story())


def test_a_sweep_shares_its_batch_with_nothing() -> None:
    """What it lists may fill an entry by itself, and nobody knows before it is decided."""

    async def story() -> None:
        world = await World().lead()
        await with_topic(world)
        await world.ask(committing("simple", 1))
        world.replica._now_ms += LONG_MS
        before = len(world.replica.proposed)
        world.actors.submit(c.ExpireOffsets("simple", world.replica.log_time_ms()))
        await world.offer(committing("simple", 2)).future

        made = [type(each.event) for each in world.replica.proposed[before].events]
        assert made == [OffsetsDeleted, GroupDeleted]

    asyncio.run(story())


def test_a_leave_of_many_does_not_join_a_batch_that_is_begun() -> None:
    async def story() -> None:
        world = await World().lead()
        await world.member("i1")
        before = len(world.replica.proposed)
        request_id = world.request_id()
        ghosts = (c.LeavingMember("m" * 1_000, None) for _ in range(WEIGHT_MAX // 1_000))
        gone = (c.LeavingMember("", "i1"), *ghosts)
        world.ask(joining("i2"))
        await world.ask(
            lambda call: c.LeaveGroup(
                c.Caller(call, "p", request_id=request_id, digest=b"d"), "g", gone
            )
        )

        first = [type(each.event) for each in world.replica.proposed[before].events]
        assert MembersRemoved not in first
        assert RequestRecorded not in first
        world.replica.step_down()

    asyncio.run(story())


def test_small_changes_of_one_moment_share_a_batch() -> None:
    """What the tests above compare with."""

    async def story() -> None:
        world = await World().lead()
        await with_topic(world)
        before = len(world.replica.proposed)
        await asyncio.gather(*(world.ask(committing("simple", n)) for n in range(2)))

        assert len(world.replica.proposed[before].events) == SMALL_EVENTS + 1

    asyncio.run(story())


def test_what_comes_after_one_that_must_wait_waits_too() -> None:
    """Commits that are sent one after another on a stream must not change places."""

    async def story() -> None:
        world = await World().lead()
        await with_topic(world)
        calls = (committing("simple", 1), large(world), committing("simple", 3))
        await asyncio.gather(*map(world.ask, calls))

        offsets = world.replica.state.groups["simple"].offsets
        assert offsets[TopicPartition("t", 0)].offset == 3

    asyncio.run(story())


def test_many_small_changes_of_one_moment_fit_into_the_smallest_entries() -> None:
    """S23: the limit is a setting; lowered, it must not refuse what fits alone."""

    async def story() -> None:
        world = await World().lead()
        most = 64 * 1024
        name = "t" * 249
        lower = (
            SettingChange("group.metadata_bytes_max", "1024"),
            SettingChange("group.assignment_bytes_max", "1024"),
            SettingChange("group.max_size", "10"),
            SettingChange("log.entry_bytes_max", str(most)),
        )
        await world.ask(lambda call: c.AlterSettings(c.Caller(call), "", lower))
        assert settings.of_cluster(world.replica.state).entry_bytes_max == most
        await world.ask(lambda call: c.CreateTopics(c.Caller(call), (TopicSize(name, 1),)))
        wanted = (OffsetCommitted(name, 0, 1, -1, "m" * 100),)
        calls = [
            world.ask(lambda call: c.CommitOffsets(c.Caller(call), "simple", -1, "", None, wanted))
            for _ in range(1_000)
        ]
        await asyncio.gather(*calls)

        assert max(len(encode_part(part)) for part in world.replica.proposed) <= most

    asyncio.run(story())
