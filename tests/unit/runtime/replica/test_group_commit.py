"""How long an entry lingers for more parts (`group_commit`)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from holdfast.runtime.replica.group_commit import (
    COALESCED_BYTES,
    LINGER_GAP_S,
    LINGER_PARTS,
    LINGER_S,
    GroupCommit,
)
from unit.runtime.replica.replica_world import World, in_loop, part, settle


class Parts:
    """Puts parts into the group commit; nobody waits for their fate."""

    def __init__(self) -> None:
        self.waiting = GroupCommit()
        self._loop = asyncio.new_event_loop()

    def come(self, count: int = 1, size: int = 1) -> None:
        for _ in range(count):
            self.waiting.add(part("g"), bytes(size), self._loop.create_future())

    def entry_of(self, count: int) -> None:
        """So many came, and were taken."""
        self.come(count)
        self.waiting.take()

    def close(self) -> None:
        self._loop.close()


@pytest.fixture
def parts() -> Iterator[Parts]:
    made = Parts()
    yield made
    made.close()


def test_after_an_entry_of_a_few_nobody_lingers(parts: Parts) -> None:
    """Few callers gain nothing from each other and would pay with their time."""
    parts.entry_of(LINGER_PARTS - 1)
    parts.come()
    assert not parts.waiting.lingers(0.0)


def test_after_an_entry_of_many_parts_an_entry_lingers_until_nobody_comes(parts: Parts) -> None:
    parts.entry_of(LINGER_PARTS)
    parts.come()
    assert parts.waiting.lingers(0.0)
    parts.come()
    assert parts.waiting.lingers(LINGER_GAP_S)
    assert not parts.waiting.lingers(2 * LINGER_GAP_S)


def test_an_entry_lingers_no_longer_than_the_most(parts: Parts) -> None:
    """However steadily parts come."""
    parts.entry_of(LINGER_PARTS)
    parts.come()
    looks = 0
    while parts.waiting.lingers(looks * LINGER_GAP_S):
        looks += 1
        assert looks * LINGER_GAP_S < 2 * LINGER_S, "it lingers for ever"
        parts.come()
    assert LINGER_S <= looks * LINGER_GAP_S < LINGER_S + 2 * LINGER_GAP_S


def test_each_entry_lingers_anew(parts: Parts) -> None:
    parts.entry_of(LINGER_PARTS)
    parts.come(LINGER_PARTS)
    assert parts.waiting.lingers(0.0)
    assert not parts.waiting.lingers(LINGER_GAP_S)
    parts.waiting.take()
    parts.come()
    assert parts.waiting.lingers(9.0)


def test_a_full_entry_does_not_linger(parts: Parts) -> None:
    """S7: nothing that comes could share it."""
    parts.entry_of(LINGER_PARTS)
    parts.come(size=COALESCED_BYTES)
    assert not parts.waiting.lingers(0.0)


async def committed(world: World, count: int) -> None:
    """So many parts shared entry 2, and all who waited for them were told."""
    futures = [world.replica.propose(part(f"g{n}")) for n in range(count)]
    await settle()
    world.engine.commit(index=2)
    await settle()
    assert all(future.done() for future in futures)


@pytest.mark.parametrize(
    ("came_before", "entries"), [(LINGER_PARTS, [["a", "b"]]), (LINGER_PARTS - 1, [["a"], ["b"]])]
)
def test_those_who_come_again_one_by_one_share_an_entry(
    came_before: int, entries: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gap is one turn of the loop here, so that no clock decides the test."""
    monkeypatch.setattr("holdfast.runtime.replica.replica.LINGER_GAP_S", 0)

    @in_loop
    async def story(world: World) -> None:
        await world.lead()
        await committed(world, came_before)
        later = [world.replica.propose(part("a"))]
        await asyncio.sleep(0)
        later.append(world.replica.propose(part("b")))
        await settle()
        for index in range(3, 3 + len(entries)):
            world.engine.commit(index=index)
            await settle()
        indexes = [(await future).first.index for future in later]
        assert indexes == [3 + n for n, names in enumerate(entries) for _ in names]

    story()


def test_what_an_older_term_decided_is_refused_without_lingering(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """S1: the engine refuses it in any case; whoever waits learns it at once."""
    monkeypatch.setattr("holdfast.runtime.replica.replica.LINGER_GAP_S", 3_600)

    @in_loop
    async def story(world: World) -> None:
        await world.lead()
        await committed(world, LINGER_PARTS)
        world.replica.propose(part("old", term=0))
        await settle()
        assert [proposal.term for proposal, _ in world.engine.proposed] == [0]

    story()
