"""How many members are looked at, to find out who is to beat now: those in motion, not the group.

Counted, not timed. A group of a thousand has a thousand heartbeats to answer, and one departure
must not hold them up.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.coordinator.groups.group_type import Move
from holdfast.coordinator.kernel.group_types import type_of
from holdfast.coordinator.model.consumer_events import TargetStored
from holdfast.coordinator.model.ids import TopicPartition
from holdfast.server.rpc.pushes import hints
from unit.server.consumer_calls import beat
from unit.server.rpc.pushes.push_world import PushWorld, Reader, given
from unit.server.session_calls import run

if TYPE_CHECKING:
    from holdfast.coordinator.groups.group_type import GroupType
    from holdfast.coordinator.model.ids import MemberId
    from holdfast.coordinator.model.state import Group

MEMBERS = [f"m-{number:02}" for number in range(40)]
PARTITIONS = 2 * len(MEMBERS)


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[MemberId]:
    """The members that were looked at, in order."""
    found: list[str] = []

    def watched(group: Group[Any]) -> GroupType[Any]:
        own: GroupType[Any] = type_of(group)

        def move(group: Group[Any], member_id: MemberId) -> Move | None:
            found.append(member_id)
            return own.move(group, member_id)

        return replace(own, move=move)

    monkeypatch.setattr(hints, "type_of", watched)
    return found


async def at_rest(reader: Reader, **joined: Any) -> PushWorld:  # noqa: ANN401 - of the message
    """A group of many members, each of which owns what it is to own."""
    world = await PushWorld().lead(t=PARTITIONS)
    await world.joins(reader, *MEMBERS[1:])
    await world.joins(reader, MEMBERS[0], **joined)
    while told := reader.take():
        for each in told:
            answer = await world.plain(reader, each)
            if (owned := given(answer)) is not None:
                await world.owns(reader, each, *sorted(owned))
    return world


def test_for_a_target_those_that_it_means_are_looked_at(looked: list[MemberId]) -> None:
    """One goes, and two get what it had: nobody else is looked at."""

    async def story() -> None:
        reader = Reader()
        world = await at_rest(reader)
        looked.clear()
        await world.says(reader, beat(-1, MEMBERS[-1]))
        (asked,) = reader.take()
        assert looked == [], "there is no target yet"
        await world.plain(reader, asked)
        stored = world.events("TargetStored")[-1]
        assert isinstance(stored, TargetStored)
        meant = [each.member_id for each in stored.targets]

        assert looked == meant
        assert 0 < len(meant) <= 2

    run(story)


def test_for_one_more_member_who_gives_is_looked_at_and_who_waits(looked: list[MemberId]) -> None:
    """And then, for each that gave, nobody but who waits, once nothing else is missing."""

    async def story() -> None:
        reader, new = Reader(), Reader()
        world = await at_rest(reader)
        looked.clear()
        await world.joins(new, "new")
        givers = reader.take()
        assert sorted(looked) == sorted([*givers, "new"])
        looked.clear()
        for each in givers:
            answer = await world.plain(reader, each)
            await world.owns(reader, each, *sorted(given(answer) or ()))

        assert looked == ["new"] == new.take()

    run(story)


def test_for_a_swap_who_waits_is_looked_at_and_who_came(looked: list[MemberId]) -> None:
    """K-N3: a static member stops, and another process takes its place."""

    async def story() -> None:
        reader = Reader()
        world = await at_rest(reader, instance_id="i")
        looked.clear()
        await world.says(reader, beat(-2, MEMBERS[0], instance_id="i"))
        assert looked == [], "nobody waits for anything"
        await world.joins(reader, "again", instance_id="i")

        assert looked == ["again"]
        assert [each.member_id for each in reader.pushed] == []

    run(story)


def test_who_waits_for_one_that_goes_is_looked_at_with_the_next_target(
    looked: list[MemberId],
) -> None:
    """No step says what a member frees that goes; the target after it finds out."""

    async def story() -> None:
        world, old, new = await PushWorld().lead(t=2), Reader(), Reader()
        await world.joins(old, "a")
        await world.joins(new, "b")
        old.take()
        assert given(await world.plain(old, "a")) is not None, "it is to give one up, and does not"
        await world.says(old, beat(-1, "a"))
        assert new.take() == ["b"], "somebody is to beat"
        looked.clear()
        took = await world.plain(new, "b")

        assert given(took) == {0, 1}
        assert looked == ["b"]
        assert new.take() == []

    run(story)


def test_a_place_meant_for_another_one_by_now_is_not_forgotten_with_who_waited_before() -> None:
    """Who waited for it and who waits now may be noted in either order."""
    blocked = hints._Blocked()
    place = TopicPartition("t", 0)
    waits = Move(gives=False, lets_go=False, blocked=frozenset({place}))
    blocked.note("before", waits)
    blocked.note("now", waits)
    blocked.note("before", None)

    assert blocked.free(place) == "now"
