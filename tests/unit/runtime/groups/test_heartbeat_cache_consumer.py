"""Plain heartbeats of the heartbeat protocol from memory: only as `decide` would answer them.

A decision clears the answers of those that it touches, and no others; what changes topics, settings
or rights clears all.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from holdfast.coordinator.model import commands as c
from holdfast.coordinator.model.events import (
    AclsChanged,
    LevelRaised,
    PartitionsAdded,
    SettingChange,
    SettingsChanged,
    TopicsCreated,
    TopicsDeleted,
    TopicSize,
)
from holdfast.coordinator.model.ids import TopicPartitions
from holdfast.coordinator.model.rejections import PastHeartbeat
from holdfast.coordinator.model.volatile import DeadlineKey, HeardBeat, Volatile
from holdfast.coordinator.structures.pmap import PMap
from holdfast.runtime.groups.heartbeat_cache import HeartbeatCache
from unit.runtime.world import World, committing, with_topic

if TYPE_CHECKING:
    from holdfast.coordinator.model.events import Event
    from holdfast.coordinator.model.replies import ConsumerHeartbeatReply

SESSION, MAX = "group.consumer_session_timeout_ms", "group.consumer_max_session_timeout_ms"
LIFE, OTHER_LIFE = "01900000-0000-7000-8000-000000000001", "01900000-0000-7000-8000-000000000002"


class Group:
    """The group `g` on a leading node, with the topic `t` of four partitions."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.epochs: dict[str, int] = {}

    async def say(
        self,
        member_id: str,
        epoch: int | None = None,
        **said: Any,  # noqa: ANN401 - of the command
    ) -> ConsumerHeartbeatReply:
        """A heartbeat that is decided, at the epoch of the last answer."""
        epoch = self.epochs[member_id] if epoch is None else epoch
        answered = await self.world.ask(
            lambda call: c.ConsumerGroupHeartbeat(
                c.Caller(call, "p", "client"), "g", member_id, epoch, **said
            )
        )
        reply = cast("ConsumerHeartbeatReply", answered.reply)
        assert reply.error is None
        self.epochs[member_id] = reply.member_epoch
        return reply

    async def join(self, member_id: str, **said: Any) -> ConsumerHeartbeatReply:  # noqa: ANN401 - of the command
        """A join that says everything."""
        full = {"rebalance_timeout_ms": 10_000, "topics": ("t",), "owned": ()}
        return await self.say(member_id, 0, **(full | said))

    def remembered(
        self,
        member_id: str,
        instance_id: str | None = None,
        principal: str = "p",
        number: tuple[str, int] = ("", 0),
    ) -> object:
        """The answer to a plain heartbeat that would be given without a decision."""
        life, beat = number
        hearing = self.world.actors.hearing()
        last = hearing.last("g", member_id)
        epoch = self.epochs[member_id]
        if last is None or not last.is_followed_by(epoch, instance_id, principal, life, beat):
            return None
        return hearing.again("g", last, beat).reply

    async def settled(self, *member_ids: str) -> None:
        """Join, and hand over what each is to own, until all of them rest."""
        for member_id in member_ids:
            await self.join(member_id)
        for _ in range(3):
            for member_id in member_ids:
                owned = self.owned(member_id)
                await self.say(member_id, owned=owned)
        for member_id in member_ids:
            await self.say(member_id)

    async def give_up(self, member_id: str) -> None:
        """Hear what is to be given up, and say that it was."""
        told = await self.say(member_id)
        assert told.assignment is not None
        left = tuple(place.partition for place in told.assignment)
        await self.say(member_id, owned=(TopicPartitions("t", left),))

    def owned(self, member_id: str) -> Any:  # noqa: ANN401 - of the command
        """What a member owns by the state, as it would say it."""
        member = self.world.replica.state.groups["g"].body.members[member_id]
        return tuple(TopicPartitions(each.topic, each.partitions) for each in member.owned)


async def group() -> Group:
    """A group of nobody, on a cluster whose log may hold the protocol."""
    world = await World().lead()
    world.replica.slip_in("", LevelRaised(2))
    await with_topic(world)
    return Group(world)


def test_m13_a_plain_heartbeat_from_memory_is_what_decide_would_answer() -> None:
    """K-M13: and it renews the session."""

    async def story() -> None:
        made = await group()
        await made.settled("m1")
        decided = await made.say("m1")
        actor = made.world.actors.actor("g")
        assert actor is not None
        before = actor.volatile.renewals.get("m1", 0)
        remembered = made.remembered("m1")
        await made.say("m1")

        assert remembered == decided
        assert actor.volatile.renewals.get("m1", 0) == before + 2

    asyncio.run(story())


def test_who_asks_otherwise_is_not_answered_from_memory() -> None:
    """Another epoch, instance id or principal: the core judges each of them."""

    async def story() -> None:
        made = await group()
        await made.settled("m1")

        assert made.remembered("m1") is not None
        assert made.remembered("m1", "i1") is None
        assert made.remembered("m1", principal="mallory") is None
        made.epochs["m1"] += 1
        assert made.remembered("m1") is None

    asyncio.run(story())


def test_a_step_of_one_member_leaves_the_answers_of_the_others() -> None:
    """Else each acknowledgement in a large group would have every member decided anew."""

    async def story() -> None:
        made = await group()
        await made.settled("m1", "m2")
        await made.join("m3")
        await made.say("m1")
        await made.say("m1")
        before = made.remembered("m1")
        steps = len(made.world.events("MemberAdvanced"))
        await made.give_up("m2")
        await made.world.ask(committing("g", 1))

        assert before is not None
        assert len(made.world.events("MemberAdvanced")) > steps
        assert made.remembered("m1") is before
        assert made.remembered("m2") is None

    asyncio.run(story())


def test_o3_a_join_clears_the_answers_of_those_that_it_takes_from() -> None:
    """K-O3: the next heartbeat has to hear of the new target."""

    async def story() -> None:
        made = await group()
        await made.settled("m1")
        await made.join("m2")
        forgotten = made.remembered("m1") is None
        told = await made.say("m1")
        kept = made.remembered("m1")

        assert forgotten
        assert len(told.assignment or ()) == 2
        assert kept is None, "it has to give something up, so it does not rest"

    asyncio.run(story())


def test_o10_who_waits_for_a_partition_is_decided_each_time() -> None:
    """K-O9, K-O10: the answer changes by the step of another member."""

    async def story() -> None:
        made = await group()
        await made.settled("m1")
        await made.join("m2")
        await made.say("m2")
        waiting = made.remembered("m2") is None
        await made.give_up("m1")
        freed = await made.say("m2")

        assert waiting
        assert len(freed.assignment or ()) == 2

    asyncio.run(story())


@pytest.mark.parametrize(
    "event",
    [
        TopicsCreated((TopicSize("u", 1),)),
        PartitionsAdded((TopicSize("t", 5),)),
        TopicsDeleted(("t",)),
        SettingsChanged("", (SettingChange("group.consumer_heartbeat_interval_ms", "4000"),)),
        SettingsChanged("g", (SettingChange("group.consumer_heartbeat_interval_ms", "4000"),)),
        AclsChanged((), ()),
    ],
)
def test_m27_what_all_answers_depend_on_clears_them(event: Event) -> None:
    """K-M27, K-M31: the heartbeat of any member finds that topics have changed."""

    async def story() -> None:
        made = await group()
        await made.settled("m1")
        assert made.remembered("m1") is not None
        made.world.replica.slip_in("", event)

        assert made.remembered("m1") is None

    asyncio.run(story())


def test_p8_a_group_with_expressions_is_decided_each_time() -> None:
    """K-P8: they are looked up again by time, and a heartbeat sees to it."""

    async def story() -> None:
        made = await group()
        await made.join("m1", regex="t.*")
        for _ in range(3):
            await made.world.settle()
            await made.say("m1")

        assert made.remembered("m1") is None

    asyncio.run(story())


def test_s10_without_the_lease_nothing_is_answered_from_memory() -> None:
    """S10 c: a leader that was deposed without knowing it would confirm a lost session."""

    async def story() -> None:
        made = await group()
        await made.settled("m1")
        made.world.replica.lease = False

        assert made.remembered("m1") is None

    asyncio.run(story())


def test_s9_nothing_is_answered_from_memory_for_a_member_that_is_just_removed() -> None:
    """S9: while the batch is in flight, and after it."""

    async def story() -> None:
        made = await group()
        await made.settled("m1", "m2")
        made.world.replica.hold = True
        call = made.world.offer(
            lambda call: c.ConsumerGroupHeartbeat(c.Caller(call, "p", "client"), "g", "m1", -1)
        )
        await made.world.until(lambda: made.world.replica.waits)
        during = [made.remembered(name) is not None for name in ("m1", "m2")]
        made.world.replica.release()
        await call.future
        after = [made.remembered(name) is not None for name in ("m1", "m2")]

        assert during == [False, True]
        assert after == [False, False]

    asyncio.run(story())


def test_s26_only_a_later_heartbeat_is_answered_from_memory() -> None:
    """One that comes again, late, or from another life is judged by the core."""

    async def story() -> None:
        made = await group()
        await made.join("m1", life=LIFE, beat=1)
        await made.say("m1", owned=made.owned("m1"), life=LIFE, beat=2)
        await made.say("m1", life=LIFE, beat=3)
        asked = [(LIFE, 4), (LIFE, 4), (LIFE, 3), (OTHER_LIFE, 5), (LIFE, 6)]

        heard = [made.remembered("m1", number=number) is not None for number in asked]
        assert heard == [True, False, False, False, True]

    asyncio.run(story())


def test_s14_what_is_answered_again_is_not_the_answer_to_later_heartbeats() -> None:
    """It says all that its member is to own, and for how long older holders may act (S12)."""

    async def story() -> None:
        made = await group()
        await made.join("m1", life=LIFE, beat=1)
        await made.say("m1", owned=made.owned("m1"), life=LIFE, beat=2)
        assert (await made.say("m1", life=LIFE, beat=2)).assignment is not None

        assert made.remembered("m1", number=(LIFE, 3)) is None

    asyncio.run(story())


def test_s26_the_core_knows_the_number_that_was_answered_from_memory() -> None:
    """Else the one before it would be taken for new."""

    async def story() -> None:
        made = await group()
        await made.join("m1", life=LIFE, beat=1)
        await made.say("m1", owned=made.owned("m1"), life=LIFE, beat=2)
        await made.say("m1", life=LIFE, beat=3)
        assert made.remembered("m1", number=(LIFE, 7)) is not None
        await made.join("m2")

        late = await made.world.ask(
            lambda call: c.ConsumerGroupHeartbeat(
                c.Caller(call, "p", "client"), "g", "m1", 2, owned=(), life=LIFE, beat=6
            )
        )
        assert isinstance(cast("ConsumerHeartbeatReply", late.reply).error, PastHeartbeat)

    asyncio.run(story())


def test_s26_a_number_from_memory_outlasts_a_batch_but_not_another_life() -> None:
    """S9: what is heard while a batch is under way is merged into what that has made."""
    cache = HeartbeatCache()
    armed: PMap[DeadlineKey, int] = PMap({DeadlineKey("session", "m"): 1}.items())
    heard = PMap({"m": HeardBeat(LIFE, 9)}.items())
    before = Volatile(armed=armed, beats=heard)
    merged = []
    for known in (None, HeardBeat(LIFE, 5), HeardBeat(LIFE, 10), HeardBeat(OTHER_LIFE, 1)):
        cache.note("m")
        made = Volatile(armed=armed)
        after = made if known is None else made._replace(beats=PMap({"m": known}.items()))
        merged.append(cache.merged(before, after).beats["m"])

    assert merged == [
        *[HeardBeat(LIFE, 9), HeardBeat(LIFE, 9), HeardBeat(LIFE, 10)],
        HeardBeat(OTHER_LIFE, 1),
    ]


def test_s11_nothing_is_answered_from_memory_while_a_session_is_being_lowered() -> None:
    """It would be renewed by what counts now, and that is to become less by time."""

    async def story() -> None:
        made = await group()
        made.world.replica.slip_in("", SettingsChanged("", (SettingChange(MAX, "90000"),)))
        made.world.replica.slip_in("", SettingsChanged("", (SettingChange(SESSION, "90000"),)))
        await made.settled("m1")
        assert made.remembered("m1") is not None
        made.world.replica.slip_in("", SettingsChanged("", (SettingChange(SESSION, "45000"),)))
        told = await made.say("m1")

        assert told.grant.session_timeout_ms == 45_000
        assert made.remembered("m1") is None

    asyncio.run(story())
