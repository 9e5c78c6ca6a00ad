"""Who of a group is told that it is to compute the target, and who is asked meanwhile (KIP-848)."""

from __future__ import annotations

from holdfast.server.rpc.pushes.one_by_one import SILENT_S
from holdfast.v1 import extras_pb2 as x
from unit.server.consumer_calls import beat
from unit.server.rpc.pushes.push_world import PushWorld, Reader
from unit.server.session_calls import run


def test_a_member_that_is_chosen_to_compute_is_told_and_nobody_else() -> None:
    """KIP-848: by another's heartbeat; while it computes, nobody is asked for one."""

    async def story() -> None:
        world, old, new = await PushWorld().lead(), Reader(), Reader()
        await world.joins(old, "a", holdfast=runs(0, 1))
        old.take()
        await world.joins(new, "b", holdfast=runs(1, 1))  # it cannot read what `a` says

        asked = world.replica.state.groups["g"].body.asked
        assert asked is not None
        assert (asked.member_id, old.take(), new.take()) == ("a", ["a"], [])
        world.later.turn(SILENT_S)
        assert old.take() == new.take() == []

    run(story)


def test_when_the_chosen_process_stops_somebody_is_asked_for_a_heartbeat() -> None:
    """KIP-848, K-N2: no epoch rises, and still nobody computes any more."""

    async def story() -> None:
        world, old, new = await PushWorld().lead(), Reader(), Reader()
        await world.joins(old, "a", holdfast=runs(0, 0), instance_id="i1")
        await world.joins(new, "b", holdfast=runs(0, 0))
        old.take(), new.take()
        assert world.replica.state.groups["g"].body.asked.member_id == "a"
        await world.says(old, beat(-2, "a", instance_id="i1"))

        assert new.take() == ["b"]

    run(story)


def runs(least: int, most: int) -> x.RequestExtras:
    """The assignor of a member that understands these versions, and says something in the first."""
    said = x.ClientAssignor(name="own", minimum_version=least, maximum_version=most, version=least)
    return x.RequestExtras(client_assignors=x.ClientAssignors(assignors=[said]))
