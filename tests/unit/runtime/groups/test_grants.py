"""S13: an entry grants nothing twice, for a token is the index of the entry that granted.

Two processes with one token could both write, and no store could tell them apart. Found by chaos
under load: a static member was granted its part, and replaced, by the same entry.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.coordinator.model import commands as c
from holdfast.coordinator.model import events as ev
from holdfast.coordinator.model.consumer_events import MemberAdvanced, MemberSubscribed
from holdfast.coordinator.model.events import LevelRaised
from holdfast.coordinator.model.ids import TopicPartitions
from holdfast.coordinator.model.member_profile import (
    ClassicProfile,
    ConsumerProfile,
    MemberProfile,
    Protocol,
)
from holdfast.runtime.groups.grants import Grants
from unit.runtime.world import World, with_topic

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.coordinator.model.ids import CallId
    from holdfast.coordinator.model.replies import ConsumerHeartbeatReply

OLD, NEW = (f"01900000-0000-7000-8000-00000000000{n}" for n in (1, 2))


async def leading() -> World:
    world = await World().lead()
    world.replica.slip_in("", LevelRaised(2))
    await with_topic(world)
    return world


def joining(member_id: str, **said: Any) -> Callable[[CallId], c.Command]:  # noqa: ANN401 - fields
    fields = {"rebalance_timeout_ms": 10_000, "topics": ("t",), "owned": (), **said}
    return lambda call: c.ConsumerGroupHeartbeat(
        c.Caller(call, "p", "client"), "g", member_id, 0, **fields
    )


def tokens(world: World, member_id: str) -> set[int]:
    """The tokens of what a member owns now."""
    owned = world.replica.state.groups["g"].body.members[member_id].owned
    return {index for each in owned for index in each.granted}


def told(reply: ConsumerHeartbeatReply) -> set[int]:
    """The tokens that an answer tells."""
    return {each.fencing_token for each in reply.assignment or ()}


def test_a_process_that_takes_a_place_over_has_another_token_than_the_one_that_just_got_it() -> (
    None
):
    """S12, S13: both come in one turn; each has an entry of its own."""

    async def story() -> None:
        world = await leading()
        before = len(world.replica.proposed)
        first = world.offer(joining("old", instance_id="i", life=OLD, beat=1))
        second = world.offer(joining("new", instance_id="i", life=NEW, beat=1))
        had = told((await first.future).reply)  # type: ignore[arg-type]  # of a heartbeat
        assert (await second.future).reply.error is None  # type: ignore[union-attr]  # as above

        assert len(world.replica.proposed) == before + 2
        assert had
        assert tokens(world, "new")
        assert max(had) < min(tokens(world, "new"))

    asyncio.run(story())


def test_what_was_taken_from_a_removed_member_is_granted_by_a_later_entry() -> None:
    """S13: an operator removes who has just been granted all, and the next one comes."""

    async def story() -> None:
        world = await leading()
        first = world.offer(joining("a"))
        gone = world.offer(
            lambda call: c.LeaveGroup(c.Caller(call, "ops"), "g", (c.LeavingMember("a", None),))
        )
        last = world.offer(joining("b"))
        had = told((await first.future).reply)  # type: ignore[arg-type]  # of a heartbeat
        await gone.future
        await last.future

        assert had
        assert not had & tokens(world, "b")

    asyncio.run(story())


def test_joins_of_one_turn_that_get_what_nobody_had_share_an_entry() -> None:
    """Each partition is granted once: nothing is put off."""

    async def story() -> None:
        world = await leading()
        before = len(world.replica.proposed)
        for call in [world.offer(joining(f"m{number}")) for number in range(3)]:
            await call.future

        assert len(world.replica.proposed) == before + 1

    asyncio.run(story())


def proposed(event: ev.Event) -> ev.Proposed:
    return ev.Proposed(event, ev.Cause("", ""))


def advanced(member_id: str, *numbers: int) -> ev.Event:
    granted = (TopicPartitions("t", numbers),) if numbers else ()
    return MemberAdvanced(member_id, 2, (), (), granted, waiting=False)


CLASSIC = ClassicProfile(1_000, (Protocol("range", b""),))
PART = (TopicPartitions("t", (0,)),)
LEFT = ev.MembersLeft(("old",), "")


def subscribed(member_id: str, classic: ClassicProfile | None = None) -> ev.Event:
    """A member says something new: that it speaks the classic protocol from now on, perhaps."""
    return MemberSubscribed(member_id, None, ConsumerProfile(), joined=False, classic=classic)


STORED = ev.AssignmentStored(1, ())
SWAP = ev.StaticMemberReplaced("i", "old", "new", MemberProfile("c", "h", 1, 1, ()), "", 0)


@pytest.mark.parametrize(
    ("events", "clash"),
    [
        ((STORED, SWAP), True),
        ((SWAP, STORED), True),
        ((advanced("old", 0), SWAP), True),
        ((advanced("old", 0), subscribed("old", CLASSIC)), True),
        ((subscribed("old", CLASSIC), SWAP), True),
        ((subscribed("old", CLASSIC), subscribed("old", CLASSIC)), True),
        ((subscribed("old", CLASSIC), LEFT, advanced("a", 0)), True),
        ((subscribed("old", CLASSIC), MemberAdvanced("old", 2, (), PART, (), waiting=False)), True),
        ((subscribed("old", CLASSIC), advanced("a", 0)), False),
        ((subscribed("other", CLASSIC), LEFT, advanced("a", 0)), False),
        ((subscribed("old"), advanced("a", 0)), False),
        ((advanced("old", 0), subscribed("old")), False),
        ((SWAP, ev.StaticMemberReplaced("i", "new", "newer", SWAP.profile, "", 0)), True),
        ((advanced("a", 0), advanced("b", 0)), True),
        ((advanced("a", 0), advanced("b", 1)), False),
        ((advanced("old"), SWAP), False),
        ((advanced("other", 0), SWAP), False),
        ((SWAP,), False),
        ((ev.InstanceReleased("i", "old"), SWAP), False),
    ],
)
@pytest.mark.parametrize("split", [0, 1])
def test_what_grants_again(events: tuple[ev.Event, ...], clash: bool, split: int) -> None:  # noqa: FBT001 - a parameter
    """Whether it comes with one decision or with the next."""
    grants = Grants()
    for event in events[:split]:
        assert not grants.note(proposed(event))

    assert grants.clash(map(proposed, events[split:])) == clash
