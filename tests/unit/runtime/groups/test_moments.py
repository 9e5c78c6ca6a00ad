"""The moments of a traced call: all of them, in order, and nobody else's."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING

import pytest

from holdfast.coordinator.model import commands as c
from holdfast.runtime.errors import StoppedMeanwhile
from holdfast.runtime.groups.moments import CURRENT, MOMENTS_MAX, Moments
from unit.runtime.world import World, beating, committing, joining, with_topic

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from holdfast.runtime.groups.pending_calls import Answered

COMMITTED = ["admitted", "taken", "decided", "proposed", "sent", "committed", "applied", "answered"]


def moments() -> Moments:
    """Moments on a clock that counts up from 100."""
    ticks = count(100)
    return Moments(lambda: float(next(ticks)))


def names(of: Moments) -> list[str]:
    return [name for name, _ in of.seen]


async def traced(world: World, make: Callable[[int], c.Command], of: Moments) -> Answered:
    """A call that is traced, as a stream opens it."""
    with world.actors.open(of) as call:
        return await call.ask(make(call.number))


def in_world(story: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        await story(await World().lead())

    asyncio.run(run())


def test_a_change_passes_all_moments_of_the_log() -> None:
    """From admission to the answer; a wait that no moment ended would be nobody's."""

    async def story(world: World) -> None:
        await with_topic(world)
        of = moments()
        await traced(world, committing("g", 7), of)

        assert names(of) == COMMITTED
        assert of.index == world.replica.state.applied_index
        assert dict(of.seen)["sent"] == world.replica.passage.sent

    in_world(story)


def test_what_changes_nothing_is_decided_and_answered() -> None:
    async def story(world: World) -> None:
        joined = await world.member()
        of = moments()
        await traced(world, beating("i1", joined), of)

        assert names(of) == ["admitted", "taken", "decided", "answered"]
        assert of.index == 0

    in_world(story)


def test_a_call_that_waits_for_other_members_is_parked_until_its_answer() -> None:
    """S17: what its member waits for is no slowness of the node."""

    async def story(world: World) -> None:
        joined = await world.member("i1")
        of = moments()
        waiting = asyncio.ensure_future(traced(world, joining("i2"), of))
        await world.settle()
        assert names(of)[-1] == "parked"
        again = world.offer(joining("i1", joined.member_id))
        await waiting
        await again.future

        assert names(of) == [*COMMITTED[:-1], "parked", "answered"]

    in_world(story)


def test_a_command_that_waits_for_the_batch_before_it_is_taken_later() -> None:
    async def story(world: World) -> None:
        await with_topic(world)
        world.replica.hold = True
        first = world.offer(committing("g", 1))
        await world.until(lambda: world.replica.waits)
        of = moments()
        second = asyncio.ensure_future(traced(world, committing("g", 2), of))
        await world.settle()
        assert names(of) == ["admitted"]
        world.replica.hold = False
        world.replica.release()
        await first.future
        await second

        assert names(of) == COMMITTED

    in_world(story)


def test_only_the_traced_call_of_a_batch_has_moments() -> None:
    """And a call that was given up leaves nothing behind."""

    async def story(world: World) -> None:
        await with_topic(world)
        of = moments()
        other = world.ask(committing("g", 1))
        mine = asyncio.ensure_future(traced(world, committing("g", 2), of))
        await asyncio.gather(other, mine)

        assert len(of.seen) == len(COMMITTED)
        assert not world.actors.calls.traced

    in_world(story)


def test_a_unary_call_finds_its_moments_in_its_task() -> None:
    async def story(world: World) -> None:
        await with_topic(world)
        of = moments()
        CURRENT.set(of)
        await world.ask(committing("g", 7))

        assert names(of) == COMMITTED

    in_world(story)


def test_a_call_that_fails_has_its_end() -> None:
    async def story(world: World) -> None:
        await with_topic(world)
        world.replica.hold = True
        of = moments()
        waiting = asyncio.ensure_future(traced(world, committing("g", 7), of))
        await world.until(lambda: world.replica.waits)
        world.actors.stop()

        with pytest.raises(StoppedMeanwhile):
            await waiting
        assert names(of) == [*COMMITTED[:4], "answered"]
        assert not world.actors.calls.traced

    in_world(story)


def test_a_call_over_many_groups_fills_no_memory() -> None:
    of = moments()
    for _ in range(2 * MOMENTS_MAX):
        of.note("taken")

    assert len(of.seen) == MOMENTS_MAX


def test_the_request_id_is_kept_for_the_log_lines_of_the_call() -> None:
    async def story(world: World) -> None:
        await with_topic(world)
        of, request_id = moments(), world.request_id()
        await traced(world, committing("g", 7, request_id), of)

        assert of.request_id == request_id

    in_world(story)
