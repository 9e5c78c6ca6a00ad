"""Changes of nodes at the replica: what the caller of one is told, and when (S25, S5)."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.coordinator.model.state import State
from holdfast.raft.api import (
    Applied,
    EngineStopped,
    NotLeader,
    OutcomeUnknown,
    Refused,
    RoleChanged,
    Stopped,
)
from holdfast.raft.membership import ChangeRefused, Membership, Promote, Remove
from holdfast.runtime.replica.state_machine import StateMachine
from unit.runtime.replica.replica_world import World, in_loop, settle


async def asked(world: World) -> asyncio.Task[None]:
    """Lead at level 2, and ask for a change."""
    await lead_at(world, 2)
    call = asyncio.ensure_future(world.replica.change_nodes(Promote("n4")))
    await settle()
    return call


async def lead_at(world: World, level: int) -> None:
    world.replica._machine = StateMachine(State(cluster_id="c", raised_to=level))
    await world.lead()


def at_engine(world: World) -> list[object]:
    return [change for _, change in world.engine.changes]


@in_loop
async def test_a_change_is_done_when_its_entry_is_applied(world: World) -> None:
    call = await asked(world)
    assert at_engine(world) == [Promote("n4")]
    assert not call.done()

    proposal, _ = world.engine.changes[0]
    assert proposal.term == 1
    world.engine.push(Applied(2, 1, b"", proposal))

    await asyncio.wait_for(call, 5)


@in_loop
async def test_a_rule_that_refuses_is_told_with_its_sentence(world: World) -> None:
    call = await asked(world)

    refused = Refused(world.engine.changes[0][0], "it is behind", "n1", by_rule=True)
    world.engine.push(refused)

    with pytest.raises(ChangeRefused, match="it is behind"):
        await asyncio.wait_for(call, 5)


@in_loop
async def test_whoever_leads_no_more_names_the_next_one(world: World) -> None:
    """Also the heir of a leader that is to be removed (S25 d)."""
    call = await asked(world)

    world.engine.push(Refused(world.engine.changes[0][0], "hands over", "n2"))

    with pytest.raises(NotLeader) as told:
        await asyncio.wait_for(call, 5)
    assert told.value.leader == "n2"


@in_loop
async def test_s5_a_change_in_the_log_of_a_deposed_leader_is_unknown(world: World) -> None:
    call = await asked(world)

    world.engine.push(RoleChanged("follower", 2, "n2", (world.engine.changes[0][0],)))

    with pytest.raises(OutcomeUnknown):
        await asyncio.wait_for(call, 5)


@in_loop
async def test_s5_a_node_that_stops_leaves_a_change_unknown_and_takes_no_other(
    world: World,
) -> None:
    call = await asked(world)

    world.engine.push(Stopped("the disk is gone"))

    with pytest.raises(OutcomeUnknown):
        await asyncio.wait_for(call, 5)
    with pytest.raises(EngineStopped, match="the disk is gone"):
        await world.replica.change_nodes(Remove("n2"))


@in_loop
async def test_a_node_that_does_not_lead_proposes_nothing(world: World) -> None:
    with pytest.raises(NotLeader):
        await world.replica.change_nodes(Remove("n2"))

    assert at_engine(world) == []


@in_loop
async def test_below_level_2_no_change_is_proposed(world: World) -> None:
    """Nodes of level 1 cannot read the entry (docs/adr/0034): the upgrade is to be ended first."""
    await lead_at(world, 1)

    with pytest.raises(ChangeRefused, match="holdfast cluster upgrade finish"):
        await world.replica.change_nodes(Remove("n2"))

    assert at_engine(world) == []


@in_loop
async def test_listeners_hear_of_a_membership_in_the_loop(world: World) -> None:
    """The engine tells in its own thread."""
    heard: list[tuple[Membership, bool]] = []
    loop = asyncio.get_running_loop()
    world.replica.on_membership(
        lambda membership: heard.append((membership, asyncio.get_running_loop() is loop))
    )
    other = Membership.of(("n1", "n2"))

    await asyncio.to_thread(world.engine.tell_membership, other)
    await settle()

    assert heard == [(other, True)]


@in_loop
async def test_the_membership_is_the_one_in_force(world: World) -> None:
    assert world.replica.membership.voter_names == ("n1", "n2", "n3")
