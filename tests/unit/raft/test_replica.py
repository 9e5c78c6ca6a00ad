"""The replica over an engine that a test drives item by item (S1-S5, S8)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from holdfast.coordinator.events import (
    Cause,
    ClusterFormed,
    GroupCreated,
    LogEntry,
    Part,
    Proposed,
    Record,
)
from holdfast.coordinator.state import State
from holdfast.raft.api import (
    Applied,
    BarrierPassed,
    EngineStopped,
    Installed,
    Item,
    NotLeader,
    OutcomeUnknown,
    Overloaded,
    ProbeFailed,
    ProposalId,
    Refused,
    RoleChanged,
    Status,
    Stopped,
)
from holdfast.raft.fold import Fold, Folded
from holdfast.raft.outbox import ENTRIES_IN_FLIGHT, WAITING_MAX
from holdfast.raft.replica import DIGEST_EVERY, Clocks, Replica
from holdfast.storage.codec import encode_entry


class ScriptedEngine:
    """Holds proposals until the test says what becomes of them."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.proposed: list[tuple[ProposalId, bytes]] = []
        self.evolved_to = 0
        self.published: list[tuple[int, bytes]] = []
        self.lease = 0
        self._notify: Callable[[], None] = lambda: None
        self._numbers = iter(range(1, 1000))

    def push(self, *items: Item) -> None:
        self.items.extend(items)
        self._notify()

    def commit(self, index: int, term: int = 1, at: int = 0) -> None:
        """The proposal number `at` of those under way is committed."""
        proposal, payload = self.proposed.pop(at)
        self.push(Applied(index, term, payload, proposal))

    def propose(self, payload: bytes, term: int) -> ProposalId:
        proposal = ProposalId(term, next(self._numbers))
        self.proposed.append((proposal, payload))
        return proposal

    def take(self, limit: int) -> list[Item]:
        taken, self.items = self.items[:limit], self.items[limit:]
        return taken

    def on_items(self, notify: Callable[[], None]) -> None:
        self._notify = notify

    def lease_valid(self, now: float) -> int:
        return self.lease if now >= 0 else 0

    def read_barrier(self) -> int:
        return next(self._numbers)

    begin_probe = read_barrier

    def transfer(self, to: str) -> None:
        self.push(RoleChanged("follower", 1, to))

    def evolved(self, index: int) -> None:
        self.evolved_to = index

    def publish(self, index: int, digest: bytes) -> None:
        self.published.append((index, digest))

    def status(self) -> Status:
        raise NotImplementedError


class NoSnapshots:
    """Snapshots that are never due; `reload` gives what the test put there."""

    def __init__(self) -> None:
        self.next_fold = Fold(State())

    def note(self, folded: Folded, size: int) -> None:
        assert size >= 0
        assert folded is not None

    def maybe_take(self, fold: Fold, term: int) -> None:
        assert fold.state.applied_index >= 0
        assert term >= 0

    async def take_now(self, fold: Fold, term: int) -> None:
        del fold, term

    async def reload(self) -> Fold:
        return self.next_fold

    async def close(self, fold: Fold, term: int) -> None:
        del fold, term


class Diary:
    """A listener that writes everything down."""

    def __init__(self) -> None:
        self.entries: list[object] = []

    def on_leading(self, term: int) -> None:
        self.entries.append(("leading", term))

    def on_not_leading(self) -> None:
        self.entries.append("not leading")

    def on_applied(self, records: Sequence[Record], index: int) -> None:
        self.entries.append((index, tuple(record.group_id for record in records)))

    def on_stopped(self, reason: str) -> None:
        self.entries.append(("stopped", reason))


class World:
    """A replica that leads term 1, its engine, and its only listener."""

    def __init__(self) -> None:
        self.boot = 0.0
        self.engine, self.snapshots, self.diary = ScriptedEngine(), NoSnapshots(), Diary()
        clocks = Clocks(boot=lambda: self.boot, wall=lambda: 5_000.0)
        self.replica = Replica("n1", self.engine, Fold(State()), self.snapshots, clocks)
        self.replica.subscribe(self.diary)
        self.replica.start()

    async def lead(self, term: int = 1) -> None:
        self.engine.push(Applied(1, term, b""), RoleChanged("leader", term, "n1"))
        await settle()


async def settle() -> None:
    """Let everything that is ready run."""
    for _ in range(10):
        await asyncio.sleep(0)


def part(group: str, term: int = 1, version: int = 0) -> Part:
    created = Proposed(GroupCreated(), Cause("A1", "JoinGroup"))
    return Part(group, term, version, (created,))


def in_loop(story: Callable[[World], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run a test of a world in a loop of its own."""

    async def run() -> None:
        await story(World())

    def test() -> None:
        asyncio.run(run())

    test.__name__, test.__doc__ = story.__name__, story.__doc__
    return test


@in_loop
async def test_parts_of_one_turn_share_an_entry_and_learn_their_index(world: World) -> None:
    await world.lead()
    futures = [world.replica.propose(part(name)) for name in ("g", "h")]
    await settle()
    assert len(world.engine.proposed) == 1
    world.engine.commit(index=2)

    assert [(await f).index for f in futures] == [2, 2]
    assert world.diary.entries == [("leading", 1), (2, ("g", "h"))]
    assert world.engine.evolved_to == 2


@in_loop
async def test_what_comes_while_entries_are_under_way_shares_the_next_one(world: World) -> None:
    """Design 3, group commit: an idle log makes nobody wait, a busy one takes many at once."""
    await world.lead()
    futures = []
    for name in ("a", "b", "c", "d", "e"):
        futures.append(world.replica.propose(part(name)))
        await settle()
    assert len(world.engine.proposed) == ENTRIES_IN_FLIGHT == 2
    world.engine.commit(index=2)
    await settle()
    assert len(world.engine.proposed) == ENTRIES_IN_FLIGHT
    world.engine.commit(index=3)
    world.engine.commit(index=4)

    assert [(await f).index for f in futures] == [2, 3, 4, 4, 4]


@in_loop
async def test_what_waits_when_the_leadership_ends_is_offered_and_refused(world: World) -> None:
    """S1, S5: it was decided in a term that is over; nobody is left without an answer."""
    await world.lead()
    sent = []
    for name in ("a", "b"):
        sent.append(world.replica.propose(part(name)))
        await settle()
    waiting = world.replica.propose(part("c"))
    await settle()
    unknown = tuple(proposal for proposal, _ in world.engine.proposed)
    world.engine.push(RoleChanged("follower", 2, "n2", unknown=unknown))
    await settle()
    world.engine.push(Refused(world.engine.proposed[-1][0], "decided in term 1", "n2"))

    for future in sent:
        with pytest.raises(OutcomeUnknown):
            await future
    with pytest.raises(NotLeader):
        await waiting


@in_loop
async def test_no_more_parts_wait_than_memory_allows(world: World) -> None:
    """A log without a majority must not let what is proposed meanwhile fill the memory."""
    await world.lead()
    futures = [world.replica.propose(part("g")) for _ in range(WAITING_MAX + 1)]

    with pytest.raises(Overloaded):
        await futures[-1]
    assert not futures[0].done()
    for future in futures:
        future.cancel()


@in_loop
async def test_a_skipped_part_says_so_and_its_neighbour_is_applied(world: World) -> None:
    """S2: the version guard holds for each group by itself."""
    await world.lead()
    first = world.replica.propose(part("g", version=7))
    second = world.replica.propose(part("h"))
    await settle()
    world.engine.commit(index=2)

    assert not (await first).applied
    assert (await second).applied
    assert "g" not in world.replica.state.groups


@in_loop
async def test_refused_is_not_applied_and_lost_is_unknown(world: World) -> None:
    """S5: only what never reached the log may be called not applied."""
    await world.lead()
    refused = world.replica.propose(part("g"))
    await settle()
    lost = world.replica.propose(part("h"))
    await settle()
    (never, _), (sent, _) = world.engine.proposed
    world.engine.push(
        Refused(never, "not leader", "n2"), RoleChanged("follower", 2, "n2", unknown=(sent,))
    )
    await settle()

    with pytest.raises(NotLeader) as error:
        await refused
    assert error.value.leader == "n2"
    with pytest.raises(OutcomeUnknown):
        await lost
    assert world.replica.leading_term == 0
    assert world.diary.entries[-1] == "not leading"


@in_loop
async def test_actors_start_only_behind_the_entries_before_the_own_no_op(world: World) -> None:
    """S1, S4: role changes travel in the same order as entries."""
    await world.lead()
    world.replica.propose(part("g"))
    await settle()
    _, payload = world.engine.proposed.pop()
    world.engine.push(
        RoleChanged("follower", 2, "n2"),
        Applied(2, 1, payload),
        Applied(3, 3, b""),
        RoleChanged("leader", 3, "n1"),
    )
    await settle()

    assert world.diary.entries == [("leading", 1), "not leading", (2, ("g",)), ("leading", 3)]


@in_loop
async def test_log_time_continues_from_the_log_and_not_from_the_wall(world: World) -> None:
    """S8: a wall clock that is a year ahead changes nothing after the bootstrap."""
    world.boot = 100.0
    await world.lead()
    formed = Proposed(ClusterFormed("c", ()), Cause("S23", "FormCluster"))
    world.replica.propose(Part("", 1, 0, (formed,)))
    await settle()
    world.engine.commit(index=2)
    await settle()
    before = world.replica.log_time_ms()
    world.boot += 2.5

    assert world.replica.log_time_ms() - before == 2_500


@in_loop
async def test_a_followers_log_time_goes_on_while_nothing_is_written(world: World) -> None:
    """S15: an id made on it after an idle night must not be too old for the leader."""
    formed = Proposed(ClusterFormed("c", ()), Cause("S23", "FormCluster"))
    entry = LogEntry(7_000_000, 1, (Part("", 1, 0, (formed,)),))
    world.engine.push(Applied(1, 1, encode_entry(entry)))
    await settle()
    world.boot += 36_000

    assert world.replica.log_time_ms() == 7_000_000 + 36_000_000


@in_loop
async def test_a_read_needs_the_lease_or_a_barrier(world: World) -> None:
    """S10 c: without a lease the read waits for a majority, and fails with the leadership."""
    await world.lead()
    assert not world.replica.lease_valid()
    passed = asyncio.ensure_future(world.replica.read_barrier())
    failed = asyncio.ensure_future(world.replica.read_barrier())
    await settle()
    world.engine.push(BarrierPassed(1, 1), ProbeFailed(2, "n2"))
    await passed
    with pytest.raises(NotLeader):
        await failed

    world.engine.lease = 1
    assert world.replica.lease_valid()


@in_loop
async def test_nothing_behind_an_install_is_evolved_before_it(world: World) -> None:
    """S4, S18: the installed state first, then the entries that follow it."""
    world.snapshots.next_fold = Fold(State(cluster_id="c", applied_index=50))
    world.engine.push(Installed(50, 1), Applied(51, 1, b""))
    await settle()

    assert world.replica.state.cluster_id == "c"
    assert world.replica.state.applied_index == 51


@in_loop
async def test_digests_are_published_at_the_same_indexes_on_every_node(world: World) -> None:
    """S3: what is compared must be the state at one index, not whatever a node is at."""
    await world.lead()
    for index in range(2, 2 * DIGEST_EVERY + 3):
        world.engine.push(Applied(index, 1, b""))
    while world.replica.state.applied_index < 2 * DIGEST_EVERY + 2:
        await settle()
    twin = Fold(State())
    for index in range(1, DIGEST_EVERY + 1):
        twin.step(index, 1, b"")

    assert [index for index, _ in world.engine.published] == [DIGEST_EVERY, 2 * DIGEST_EVERY]
    assert world.engine.published[0][1] == twin.digest()


@in_loop
async def test_a_stopped_log_tells_everybody(world: World) -> None:
    await world.lead()
    waiting = world.replica.propose(part("g"))
    await settle()
    world.engine.push(Stopped("the disk failed"))
    await settle()

    with pytest.raises(OutcomeUnknown):
        await waiting
    assert world.diary.entries[-1] == ("stopped", "the disk failed")


@in_loop
async def test_nobody_waits_for_a_log_that_has_stopped(world: World) -> None:
    """S5: what is asked or proposed afterwards ends at once; no item will ever answer it."""
    await world.lead()
    world.engine.push(Stopped("the disk failed"))
    await settle()
    proposed = world.replica.propose(part("g"))
    await settle()

    assert world.engine.proposed == []
    with pytest.raises(EngineStopped):
        await proposed
    with pytest.raises(NotLeader):
        await world.replica.read_barrier()


@in_loop
async def test_an_item_that_cannot_be_handled_stops_the_node(world: World) -> None:
    """S4, S6: the next items lack it; a leader that hangs half way would lead for ever."""
    await world.lead()

    def broken(records: Sequence[Record], index: int) -> None:
        raise ValueError(f"{len(records)} records of {index}")

    world.diary.on_applied = broken  # type: ignore[method-assign]  # a defect
    waiting = world.replica.propose(part("g"))
    await settle()
    world.engine.commit(index=2)
    await settle()

    with pytest.raises(OutcomeUnknown):
        await waiting
    assert "1 records of 2" in str(world.replica.stopped_because)


@in_loop
async def test_an_entry_that_cannot_be_read_stops_the_node(world: World) -> None:
    """Applying what one can read of it would make this node differ from its peers."""
    world.engine.push(Applied(2, 1, b"\xff\xff"))
    await settle()

    assert world.replica.stopped_because is not None
    assert "entry 2 cannot be read" in world.replica.stopped_because
