"""S7: what members are to own, and their steps to it, fit into entries, however many come at once.

None of it is in a heartbeat: it is as long as the group is large.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, cast

from holdfast.coordinator.model import commands as c
from holdfast.coordinator.model.events import LevelRaised, SettingChange, TopicSize
from holdfast.storage.codec.event_codec import encode_part
from unit.runtime.world import World, committing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from holdfast.coordinator.model.events import Proposed
    from holdfast.coordinator.model.ids import CallId
    from holdfast.coordinator.model.replies import ConsumerHeartbeatReply

ENTRY: Final = 64 * 1024
"""The smallest limit that can be set; its group may fill it with a target."""
SIZES: Final = (
    SettingChange("log.entry_bytes_max", str(ENTRY)),
    SettingChange("group.max_size", "10"),
    SettingChange("group.metadata_bytes_max", "600"),
    SettingChange("group.assignment_bytes_max", "5900"),
)
MEMBERS: Final = tuple(f"m{number}" for number in range(8))
TOPICS: Final = tuple(f"x{number:0248}" for number in range(22))
"""Names as long as they may be. By `range` every member gets a partition of each."""


async def crowded() -> World:
    """A group that waits for its first target, which fills most of an entry, as the steps do."""
    world = await World().lead()
    world.replica.slip_in("", LevelRaised(2))
    await world.ask(lambda call: c.AlterSettings(c.Caller(call), "", SIZES))
    topics = tuple(TopicSize(name, len(MEMBERS)) for name in TOPICS)
    await world.ask(lambda call: c.CreateTopics(c.Caller(call), topics))
    await together(world, map(joining, MEMBERS))
    await world.until(lambda: bool(world.events("RegexResolved")))
    await world.settle()
    world.replica.proposed.clear()
    return world


def joining(member_id: str) -> Callable[[CallId], c.Command]:
    return lambda call: c.ConsumerGroupHeartbeat(
        c.Caller(call, "p", "client"),
        *("g", member_id, 0),
        rebalance_timeout_ms=10_000,
        regex="x.*",
        server_assignor="range",
        owned=(),
    )


def beating(member_id: str, epoch: int) -> Callable[[CallId], c.Command]:
    return lambda call: c.ConsumerGroupHeartbeat(
        c.Caller(call, "p", "client"), "g", member_id, epoch
    )


async def together(
    world: World, makes: Iterable[Callable[[CallId], c.Command]]
) -> list[ConsumerHeartbeatReply]:
    """The answers to calls that come in one turn of the loop."""
    calls = [world.offer(make) for make in makes]
    answered = [await call.future for call in calls]
    return [cast("ConsumerHeartbeatReply", each.reply) for each in answered]


def epoch_of(world: World, member_id: str) -> int:
    epoch: int = world.replica.state.groups["g"].body.members[member_id].epoch
    return epoch


def largest(world: World) -> int:
    return max(len(encode_part(part)) for part in world.replica.proposed)


def test_s7_a_target_and_the_steps_of_all_members_are_cut_to_entries() -> None:
    """S7: else all of them are refused, ask again at once together, and so on for ever."""

    async def story() -> None:
        world = await crowded()
        got = await together(world, (beating(each, epoch_of(world, each)) for each in MEMBERS))

        assert [reply.error for reply in got] == [None] * len(MEMBERS)
        assert [len(reply.assignment or ()) for reply in got] == [len(TOPICS)] * len(MEMBERS)
        assert len(world.events("TargetStored")) == 1
        assert len(world.replica.proposed) > 1
        assert largest(world) <= ENTRY

    asyncio.run(story())


def test_s7_what_follows_a_cut_is_decided_after_it() -> None:
    """S9, S7: a call behind heartbeats that fill the entry, and a goodbye behind that."""

    async def story() -> None:
        world = await crowded()
        beats = [world.offer(beating(each, epoch_of(world, each))) for each in MEMBERS]
        commit = world.offer(committing("g", 7))
        last = world.offer(beating(MEMBERS[0], -1))
        for call in (*beats, commit, last):
            await call.future
        names = [type(each.event).__name__ for each in _events(world)]

        assert largest(world) <= ENTRY
        assert names.index("MembersLeft") > max(
            place for place, name in enumerate(names) if name == "MemberAdvanced"
        )

    asyncio.run(story())


def _events(world: World) -> list[Proposed]:
    return [proposed for part in world.replica.proposed for proposed in part.events]
