"""When a replica makes the digest that nodes compare, and at which indexes (S3)."""

from __future__ import annotations

from holdfast.coordinator.model.events import LogEntry
from holdfast.coordinator.model.state import State
from holdfast.raft.api import Applied
from holdfast.runtime.replica.replica import DIGEST_BYTES, DIGEST_EVERY
from holdfast.runtime.replica.state_machine import StateMachine
from holdfast.storage.codec.event_codec import encode_entry
from unit.runtime.replica.replica_world import World, in_loop, part, settle


@in_loop
async def test_digests_are_published_at_the_same_indexes_on_every_node(world: World) -> None:
    """S3: what is compared must be the state at one index, not whatever a node is at."""
    await world.lead()
    for index in range(2, 2 * DIGEST_EVERY + 3):
        world.engine.push(Applied(index, 1, b""))
    while world.replica.state.applied_index < 2 * DIGEST_EVERY + 2:
        await settle()
    twin = StateMachine(State())
    for index in range(1, DIGEST_EVERY + 1):
        twin.apply(index, 1, b"")

    assert [index for index, _ in world.engine.published] == [DIGEST_EVERY, 2 * DIGEST_EVERY]
    assert world.engine.published[0][1] == twin.digest()


@in_loop
async def test_a_digest_grows_with_the_entries_and_is_not_made_at_once(world: World) -> None:
    """S3: all nodes compare at the same index, so a long stop there would be everybody's."""
    await world.lead()
    digested: list[int] = []
    machine = world.replica._machine
    plain = machine.digest

    def digest() -> bytes:
        digested.append(machine.state.applied_index)
        return plain()

    machine.digest = digest  # type: ignore[method-assign]  # a spy
    payload = encode_entry(LogEntry(5, 5, tuple(part(f"{'g' * 240}{n:03}") for n in range(5))))
    every = -(-DIGEST_BYTES // len(payload))
    for index in range(2, DIGEST_EVERY + 1):
        world.engine.push(Applied(index, 1, payload))
    while world.replica.state.applied_index < DIGEST_EVERY:
        await settle()
    twin = StateMachine(State())
    twin.apply(1, 1, b"")
    for index in range(2, DIGEST_EVERY + 1):
        twin.apply(index, 1, payload)

    assert digested == [*range(1 + every, DIGEST_EVERY, every), DIGEST_EVERY]
    assert world.engine.published == [(DIGEST_EVERY, twin.digest())]
