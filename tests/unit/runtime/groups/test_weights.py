"""S7: what members are to own, and their steps to it, fit into entries, however many come at once.

None of it is in a heartbeat: it is as long as the group is large.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, cast

from holdfast.coordinator.groups.sizes import of_event
from holdfast.coordinator.model import commands as c
from holdfast.coordinator.model.consumer_events import (
    MemberSubscribed,
    MemberTarget,
    TargetStored,
)
from holdfast.coordinator.model.events import (
    Cause,
    LevelRaised,
    Part,
    Proposed,
    SettingChange,
    TopicSize,
)
from holdfast.coordinator.model.member_profile import ClientAssignor, ConsumerProfile
from holdfast.runtime.groups.weights import of_events
from holdfast.storage.codec.event_codec import encode_part
from unit.runtime.world import World, committing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from holdfast.coordinator.model.ids import CallId, TopicPartitions
    from holdfast.coordinator.model.replies import ConsumerHeartbeatReply
    from holdfast.runtime.groups.actors import Call

ENTRY: Final = 64 * 1024
"""The smallest limit that can be set; its group may fill it with a target."""
SIZES: Final = (
    SettingChange("log.entry_bytes_max", str(ENTRY)),
    SettingChange("group.max_size", "10"),
    SettingChange("group.metadata_bytes_max", "600"),
    SettingChange("group.assignment_bytes_max", "5900"),
)
MEMBERS: Final = tuple(f"m{number}" for number in range(8))
TOPICS: Final = tuple(f"x{number:0248}" for number in range(27))
"""Names as long as they may be. By `range` every member gets a partition of each."""


def joining(member_id: str) -> Callable[[CallId], c.Command]:
    return lambda call: c.ConsumerGroupHeartbeat(
        c.Caller(call, "p", "client"),
        *("g", member_id, 0),
        rebalance_timeout_ms=10_000,
        regex="x.*",
        server_assignor="range",
        owned=(),
    )


def beating(
    member_id: str, epoch: int, owned: tuple[TopicPartitions, ...] | None = None
) -> Callable[[CallId], c.Command]:
    return lambda call: c.ConsumerGroupHeartbeat(
        c.Caller(call, "p", "client"), "g", member_id, epoch, owned=owned
    )


class Crowd:
    """A group whose target is most of an entry, and whose members beat in one turn of the loop."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def form(self) -> None:
        """Join, and come to own everything."""
        world = await self.world.lead()
        world.replica.slip_in("", LevelRaised(2))
        await world.ask(lambda call: c.AlterSettings(c.Caller(call), "", SIZES))
        topics = tuple(TopicSize(name, len(MEMBERS)) for name in TOPICS)
        await world.ask(lambda call: c.CreateTopics(c.Caller(call), topics))
        for call in [world.offer(joining(each)) for each in MEMBERS]:
            await call.future
        await world.until(lambda: bool(world.events("RegexResolved")))
        await world.settle()
        for _ in range(2):
            await self.beat(*MEMBERS)

    async def beat(
        self, *member_ids: str, owned: tuple[TopicPartitions, ...] | None = None
    ) -> None:
        """Let members beat in one turn, and everything happen that follows."""
        for call in self.offer(member_ids, owned):
            answer = cast("ConsumerHeartbeatReply", (await call.future).reply)
            assert answer.error is None
        await self.world.settle()

    def offer(
        self, member_ids: Iterable[str], owned: tuple[TopicPartitions, ...] | None = None
    ) -> list[Call]:
        """The calls of these beats."""
        members = self.world.replica.state.groups["g"].body.members
        return [self.world.offer(beating(each, members[each].epoch, owned)) for each in member_ids]

    async def shift(self) -> None:
        """A member comes before all others, so that by `range` each is to own the next partition.

        All are asked back what they own.
        """
        await self.world.offer(joining("a")).future
        await self.world.settle()
        await self.beat(*MEMBERS)
        self.world.replica.proposed.clear()

    def names(self) -> list[str]:
        """The events that were proposed since."""
        events = [each.event for part in self.world.replica.proposed for each in part.events]
        return [type(each).__name__ for each in events]


def largest(world: World) -> int:
    return max(len(encode_part(part)) for part in world.replica.proposed)


def test_s7_steps_of_all_members_are_cut_to_entries() -> None:
    """S7: else all beats are refused, come again at once together, and so on for ever.

    Each frees all that it owned, and is granted what the one after it has freed before it.
    """

    async def story() -> None:
        crowd = Crowd(World())
        await crowd.form()
        await crowd.shift()
        await crowd.beat(*reversed(MEMBERS), owned=())

        assert crowd.names() == ["MemberAdvanced"] * len(MEMBERS)
        assert len(crowd.world.replica.proposed) > 1
        assert largest(crowd.world) <= ENTRY

    asyncio.run(story())


def test_s7_what_follows_a_cut_is_decided_after_it() -> None:
    """S9, S7: a call behind beats that fill the entry, and a goodbye behind that."""

    async def story() -> None:
        crowd = Crowd(World())
        await crowd.form()
        await crowd.shift()
        beats = crowd.offer(reversed(MEMBERS), ())
        commit = crowd.world.offer(committing("g", 7))
        last = crowd.world.offer(beating(MEMBERS[0], -1))
        for call in (*beats, commit, last):
            await call.future

        names = crowd.names()
        assert largest(crowd.world) <= ENTRY
        assert names[: len(MEMBERS)] == ["MemberAdvanced"] * len(MEMBERS)
        assert names[len(MEMBERS)] == "MembersLeft"

    asyncio.run(story())


def test_s7_a_target_that_fills_an_entry_has_one_of_its_own() -> None:
    """S7: the beats that need it are answered before it is there."""

    async def story() -> None:
        crowd = Crowd(World())
        await crowd.form()
        stored = [
            [type(each.event).__name__ for each in part.events]
            for part in crowd.world.replica.proposed
            if any(type(each.event).__name__ == "TargetStored" for each in part.events)
        ]

        assert stored == [["TargetStored"]]
        assert largest(crowd.world) <= ENTRY

    asyncio.run(story())


def test_s7_what_members_say_and_are_told_by_their_assignors_is_weighed() -> None:
    """S7, KIP-848: the longest names and ids, and metadata on both ways."""
    said = ClientAssignor("n" * 255, 0, 2**15 - 1, 127, 2**15 - 1, b"x" * 70_000)
    profile = ConsumerProfile(client_assignors=(said,) * 16)
    told = MemberTarget("m" * 249, (), 2**15 - 1, b"x" * 70_000)
    subscribed = MemberSubscribed("m" * 249, None, profile, joined=False)
    stored = TargetStored(2**31 - 1, "n" * 255, (told,) * 3, installed_by="ä" * 249)

    for event in (stored, subscribed):
        one = Proposed(event, Cause("KIP-848", "InstallAssignment"), "p", "r" * 36)
        assert len(encode_part(Part("g", 1, 1, (one,)))) <= of_event(event)


def test_s7_what_an_event_weighs_is_never_less_than_it_takes_on_the_log() -> None:
    """S7: else what is found to fit would be refused."""

    async def story() -> None:
        crowd = Crowd(World())
        await crowd.form()
        await crowd.shift()
        await crowd.beat(*reversed(MEMBERS), owned=())

        for part in crowd.world.replica.proposed:
            for each in part.events:
                size = len(encode_part(part._replace(events=(each,))))
                assert size <= of_events([each]), each

    asyncio.run(story())
