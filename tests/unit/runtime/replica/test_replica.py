"""The replica over an engine that a test drives item by item (S1-S5, S8)."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Sequence

import pytest

from holdfast.coordinator.model.events import (
    Cause,
    ClusterFormed,
    LogEntry,
    Part,
    Proposed,
    RebalanceStarted,
    Record,
    SettingChange,
    SettingsChanged,
    TopicsDeleted,
)
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.state import State
from holdfast.raft.api import (
    Applied,
    BarrierPassed,
    EngineStopped,
    EntryTooLarge,
    Installed,
    NotLeader,
    OutcomeUnknown,
    Overloaded,
    ProbeFailed,
    Refused,
    RoleChanged,
    Stopped,
)
from holdfast.runtime.replica.group_commit import COALESCED_BYTES, ENTRIES_IN_FLIGHT, WAITING_MAX
from holdfast.runtime.replica.state_machine import StateMachine
from holdfast.storage.codec.event_codec import decode_entry, encode_entry
from holdfast.storage.errors import StateContradicted
from unit.runtime.replica.replica_world import (
    World,
    each_part_fills_an_entry,
    in_loop,
    part,
    settle,
)


@in_loop
async def test_parts_of_one_turn_share_an_entry_and_learn_their_index(world: World) -> None:
    await world.lead()
    futures = [world.replica.propose(part(name)) for name in ("g", "h")]
    await settle()
    assert len(world.engine.proposed) == 1
    world.engine.commit(index=2)

    assert [(await f).first.index for f in futures] == [2, 2]
    assert world.diary.entries == [("leading", 1), (2, ("g", "h"))]
    assert world.engine.evolved_to == 2


@in_loop
async def test_what_comes_while_entries_are_under_way_shares_the_next_one(world: World) -> None:
    """Group commit: an idle log makes nobody wait, a busy one takes many at once."""
    await world.lead()
    futures = []
    for name in ("a", "b", "c", "d", "e"):
        futures.append(world.replica.propose(part(name)))
        await settle()
    assert len(world.engine.proposed) == 1
    world.engine.commit(index=2)
    await settle()
    assert len(world.engine.proposed) == 1
    world.engine.commit(index=3)

    assert [(await f).first.index for f in futures] == [2, 3, 3, 3, 3]


@in_loop
@each_part_fills_an_entry
async def test_a_full_entry_waits_for_no_other_but_for_a_bound(world: World) -> None:
    """What would fill an entry need not wait for company; S7 bounds what is under way."""
    await world.lead()
    for name in ("a", "b", "c"):
        world.replica.propose(part(name))
        await settle()

    assert len(world.engine.proposed) == ENTRIES_IN_FLIGHT


@in_loop
async def test_an_own_entry_is_taken_as_it_was_made_and_any_other_bytes_are_decoded(
    world: World,
) -> None:
    """S4: the leader spares itself to decode what it has encoded, never what only looks like it."""
    await world.lead()
    own = world.replica.propose(part("own"))
    await settle()
    proposal, _ = world.engine.proposed[0]
    other = encode_entry(LogEntry(5, 5, (part("other"),)))
    world.engine.push(Applied(2, 1, other, proposal))
    await own

    assert set(world.replica.state.groups) == {"other"}


@in_loop
async def test_a_part_is_told_when_its_entry_went_to_the_engine_and_when_it_came_back(
    world: World,
) -> None:
    """Traces: what waits for an entry, and what waits for a majority, are told apart."""
    await world.lead()
    world.boot = 10.0
    future = world.replica.propose(part("g"))
    await settle()
    world.boot = 12.0
    world.engine.commit(2)

    assert (await future).passage == (10.0, 12.0, 12.0)


@in_loop
@each_part_fills_an_entry
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
async def test_s7_a_part_over_the_limit_in_force_is_refused(world: World) -> None:
    """S23: the engine's own limit is the most that may be set; the log says what holds."""
    await world.lead()
    least = SettingsChanged("", (SettingChange("log.entry_bytes_max", str(64 << 10)),))
    small = functools.partial(Proposed, cause=Cause("S23", "AlterSettings"))
    changed = world.replica.propose(Part("", 1, 0, (small(least),)))
    await settle()
    world.engine.commit(index=2)
    await changed
    long = TopicsDeleted(("t" * (65 << 10),))

    with pytest.raises(EntryTooLarge, match=str(64 << 10)):
        await world.replica.propose(Part("", 1, 2, (small(long),)))


@in_loop
async def test_s7_a_long_part_makes_nobody_elses_entry_too_long(world: World) -> None:
    """A part of the longest size that is allowed fits an entry of its own only."""
    await world.lead()
    for name in ("a", "b"):
        world.replica.propose(part(name))
        await settle()
    long = Proposed(TopicsDeleted(("t" * COALESCED_BYTES,)), Cause("S7", "DeleteTopics"))
    world.replica.propose(Part("", 1, 0, (long,)))
    world.engine.commit(index=2)
    await settle()

    entries = [decode_entry(payload) for _, payload in world.engine.proposed]
    assert [[each.group_id for each in entry.parts] for entry in entries] == [["b"], [""]]


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
async def test_s2_each_part_is_told_its_own_fate(world: World) -> None:
    """S2: of two parts of one group in one entry the second is skipped, and only the second.

    To tell both alike would have what is done already decided, and done, once more.
    """
    await world.lead()
    first = world.replica.propose(part("g"))
    second = world.replica.propose(part("g"))
    await settle()
    world.engine.commit(index=2)

    assert (await first).applied
    assert not (await second).applied


@in_loop
async def test_each_part_learns_where_its_first_record_stands(world: World) -> None:
    """A part that was skipped has no records, so the next one's stand in their place."""
    await world.lead()
    seen: dict[str, Position] = {}

    def note(records: Sequence[Record], index: int) -> None:
        assert index == 2
        for record in records:
            seen.setdefault(record.group_id, record.position)

    world.replica.subscribe(on_applied=note)
    opened = Proposed(RebalanceStarted("first", "", initial=True, timeout_ms=1), Cause("D1", "x"))
    long = part("a")._replace(events=(*part("a").events, opened))
    parts = (long, part("skipped", version=7), part("b"), part("c"))
    futures = [world.replica.propose(each) for each in parts]
    await settle()
    world.engine.commit(index=2)
    fates = [await each for each in futures]

    assert [fate.first for fate in fates if fate.applied] == list(seen.values())
    assert seen == {"a": Position(2, 0), "b": Position(2, 2), "c": Position(2, 3)}


@in_loop
@each_part_fills_an_entry
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
async def test_s8_log_time_continues_from_the_log_and_not_from_the_wall(world: World) -> None:
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
    world.wall += 365 * 86_400
    world.engine.push(RoleChanged("follower", 2, "n2"), RoleChanged("leader", 3, "n1"))
    await settle()
    assert 0 <= world.replica.log_time_ms() - before <= 2_500, "of the next leader, too"


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
    world.snapshots.next_machine = StateMachine(State(cluster_id="c", applied_index=50))
    world.engine.push(Installed(50, 1), Applied(51, 1, b""))
    await settle()

    assert world.replica.state.cluster_id == "c"
    assert world.replica.state.applied_index == 51


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
async def test_callbacks_are_called_in_the_order_in_which_they_were_given(world: World) -> None:
    """Answers follow what they depend on; who wants one thing is told nothing else."""
    told: list[str] = []
    for name in ("first", "second"):
        world.replica.subscribe(
            on_leading=lambda term, name=name: told.append(f"{name} leads {term}"),  # type: ignore[misc]  # its default is its name
            on_not_leading=lambda name=name: told.append(f"{name} does not"),  # type: ignore[misc]  # as before
        )
    world.replica.subscribe(on_stopped=told.append)
    await world.lead()
    world.engine.push(RoleChanged("follower", 2, "n2"), Stopped("its disk failed"))
    await settle()

    leading = ["first leads 1", "second leads 1"]
    assert told == [*leading, "first does not", "second does not", "its disk failed"]


@in_loop
async def test_an_item_that_cannot_be_handled_stops_the_node(world: World) -> None:
    """S4, S6: the next items lack it; a leader that hangs half way would lead for ever."""
    await world.lead()

    def broken(records: Sequence[Record], index: int) -> None:
        raise ValueError(f"{len(records)} records of {index}")

    world.replica.subscribe(on_applied=broken)
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


@in_loop
async def test_s3_a_snapshot_that_contradicts_the_stored_one_stops_the_node(world: World) -> None:
    """It was refused in another thread; the next turn of the loop ends this node."""
    await world.lead()

    def refuse(machine: StateMachine, term: int) -> None:
        raise StateContradicted(f"snapshot {machine.state.applied_index} of term {term} is wrong")

    world.snapshots.maybe_take = refuse  # type: ignore[method-assign]  # the defect
    world.engine.push(Applied(2, 1, b""))
    await settle()

    told = "storage refused a write: snapshot 2 of term 1 is wrong. Nothing was written."
    assert str(world.replica.stopped_because).startswith(told)
    assert world.diary.entries[-1] == ("stopped", world.replica.stopped_because)
    assert not world.replica.leading_term
