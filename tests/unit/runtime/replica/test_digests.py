"""When a node makes the digest that nodes compare, and of which index (S3)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from holdfast.coordinator.model.events import LogEntry
from holdfast.coordinator.model.state import State
from holdfast.raft.api import Applied, EngineStopped, Installed
from holdfast.runtime.replica.digests import DIGEST_EVERY, RECORDS_A_STEP
from holdfast.runtime.replica.state_machine import StateMachine
from holdfast.storage.codec.event_codec import encode_entry
from unit.runtime.replica.replica_world import World, in_loop, part, settle

STEPS = 4
"""Steps that the digest of 512 entries takes here, at least."""


def payload(index: int) -> bytes:
    """An entry with a group that no other entry has, so that the digests of all indexes differ."""
    return encode_entry(LogEntry(5, 5, (part(f"g-{index}"),)))


def digest_at(index: int) -> bytes:
    """The digest by the rule: all entries up to the index, then all of the state at once."""
    twin = StateMachine(State())
    for each in range(1, index + 1):
        twin.apply(each, 1, b"" if each == 1 else payload(each))
    return twin.digest()


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop turn until it holds; the test's own limit ends a wait in vain."""
    while not condition():
        await settle()


@in_loop
async def test_digests_are_published_at_the_same_indexes_on_every_node(world: World) -> None:
    """S3: what is compared must be the state at one index, not whatever a node is at."""
    await world.lead()
    for index in range(2, 2 * DIGEST_EVERY + 3):
        world.engine.push(Applied(index, 1, payload(index)))
    await until(lambda: len(world.engine.published) == 2)

    assert world.engine.published == [
        (DIGEST_EVERY, digest_at(DIGEST_EVERY)),
        (2 * DIGEST_EVERY, digest_at(2 * DIGEST_EVERY)),
    ]


@pytest.mark.source("it puts a spy in the place of a method")
@in_loop
async def test_entries_are_applied_while_the_digest_of_an_index_is_made(world: World) -> None:
    """S3: all nodes compare at the same index, so a stop of the loop there would be everybody's."""
    assert DIGEST_EVERY >= STEPS * RECORDS_A_STEP
    await world.lead()
    steps: list[int] = []
    machine = world.replica._machine
    plain = machine.step_digest

    def step(records: int) -> bytes | None:
        steps.append(machine.state.applied_index)
        if len(steps) == 1:
            world.engine.push(Applied(DIGEST_EVERY + 1, 1, payload(DIGEST_EVERY + 1)))
        return plain(records)

    machine.step_digest = step  # type: ignore[method-assign]  # a spy
    for index in range(2, DIGEST_EVERY + 1):
        world.engine.push(Applied(index, 1, payload(index)))
    await until(lambda: bool(world.engine.published))

    assert len(steps) >= STEPS
    assert (steps[0], steps[-1]) == (DIGEST_EVERY, DIGEST_EVERY + 1)
    assert world.engine.published == [(DIGEST_EVERY, digest_at(DIGEST_EVERY))]


@in_loop
async def test_a_digest_ends_before_that_of_the_next_index_begins(world: World) -> None:
    """S3: a node that is busy for long must not leave out what its peers compare."""
    await world.lead()
    for index in range(2, DIGEST_EVERY):
        world.replica._handle(Applied(index, 1, payload(index)))
    for index in range(DIGEST_EVERY, 2 * DIGEST_EVERY + 1):
        world.replica._handle(Applied(index, 1, payload(index)))  # in one turn of the loop
    await until(lambda: len(world.engine.published) == 2)

    assert [index for index, _ in world.engine.published] == [DIGEST_EVERY, 2 * DIGEST_EVERY]
    assert world.engine.published[0][1] == digest_at(DIGEST_EVERY)


@in_loop
async def test_an_installed_snapshot_ends_the_digest_of_the_state_before_it(world: World) -> None:
    """S3: the steps of the replaced state are left out; its index is not compared."""
    await world.lead()
    for index in range(2, DIGEST_EVERY + 1):
        world.replica._handle(Applied(index, 1, payload(index)))
    behind = 3 * DIGEST_EVERY - 1
    world.snapshots.next_machine = StateMachine(State(applied_index=behind))
    world.replica._handle(Installed(behind, 1))
    await until(lambda: world.replica.state.applied_index == behind)
    world.engine.push(Applied(behind + 1, 1, b""))
    await until(lambda: bool(world.engine.published))

    twin = StateMachine(State(applied_index=behind + 1))
    assert world.engine.published == [(behind + 1, twin.digest())]


@pytest.mark.source("it puts a spy in the place of a method")
@in_loop
async def test_a_state_without_a_digest_stops_the_node(world: World) -> None:
    """S3: a node whose state can be compared with nobody's must not go on serving it."""
    await world.lead()
    taken: list[int] = []
    machine = world.replica._machine
    plain = machine.step_digest

    def step(records: int) -> bytes | None:
        taken.append(records)
        if len(taken) > 2:
            raise ValueError("a record that has no bytes")
        return plain(records)

    machine.step_digest = step  # type: ignore[method-assign]  # a spy
    for index in range(2, DIGEST_EVERY + 1):
        world.engine.push(Applied(index, 1, payload(index)))
    await until(lambda: world.replica.stopped_because is not None)

    assert "index 512 has no digest" in str(world.replica.stopped_because)
    assert world.engine.published == []


@in_loop
async def test_s3_an_anchor_is_of_an_index_that_peers_compare_nothing_at(world: World) -> None:
    """Whoever asks gets the digest of the moment; nothing is published for it."""
    await world.lead()
    for index in range(2, 8):
        world.replica._handle(Applied(index, 1, payload(index)))

    told = await world.replica.anchor()

    assert (told.index, told.log_time_ms) == (7, 5)
    assert told.digest + told.chain == digest_at(7)
    assert world.engine.published == []


@in_loop
async def test_s3_anchors_leave_the_digests_that_nodes_compare_as_they_are(world: World) -> None:
    """One that is under way when an index to compare comes is finished first, and told whole."""
    await world.lead()
    for index in range(2, DIGEST_EVERY):
        world.replica._handle(Applied(index, 1, payload(index)))
    asked = asyncio.ensure_future(world.replica.anchor())
    await asyncio.sleep(0)  # it has begun
    world.replica._handle(Applied(DIGEST_EVERY, 1, payload(DIGEST_EVERY)))
    joined = asyncio.ensure_future(world.replica.anchor())
    await until(lambda: bool(world.engine.published))

    early, late = await asked, await joined
    assert (early.index, late.index) == (DIGEST_EVERY - 1, DIGEST_EVERY)
    assert early.digest + early.chain == digest_at(DIGEST_EVERY - 1)
    assert world.engine.published == [(DIGEST_EVERY, digest_at(DIGEST_EVERY))]
    assert late.digest + late.chain == digest_at(DIGEST_EVERY)


@in_loop
async def test_s3_whoever_asks_while_a_snapshot_is_installed_is_told_of_the_new_state(
    world: World,
) -> None:
    await world.lead()
    for index in range(2, DIGEST_EVERY):
        world.replica._handle(Applied(index, 1, payload(index)))
    asked = asyncio.ensure_future(world.replica.anchor())
    await asyncio.sleep(0)  # it has begun
    state = State(applied_index=9_000, recovery_number=2)
    world.replica._machine = StateMachine(state)
    world.replica._digests.forget()

    told = await asked

    assert (told.index, told.recovery_number) == (9_000, 2)
    assert told.digest + told.chain == StateMachine(state).digest()


@pytest.mark.source("it puts a spy in the place of a method")
@in_loop
async def test_whoever_asks_for_an_anchor_that_cannot_be_made_is_told_so(world: World) -> None:
    await world.lead()

    def step(records: int) -> bytes | None:
        del records
        raise ValueError("a record that has no bytes")

    world.replica._machine.step_digest = step  # type: ignore[method-assign]  # a spy
    with pytest.raises(EngineStopped, match="a record that has no bytes"):
        await world.replica.anchor()
    assert "has no digest" in str(world.replica.stopped_because)
