"""Sealing on a real state store, with the child process (S22), and the disk's reserve (S20)."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from harness.plain_child import run_plain_child
from harness.poll import until_async
from holdfast.coordinator.model.events import Cause, GroupCreated, Record, SegmentSealed
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.levels import LEVEL_MAX, LEVEL_MIN
from holdfast.raft.api import DiskLow
from holdfast.runtime.event_log.seal import (
    AGAIN_SECONDS,
    TURN_SECONDS_AN_EVENT,
    Sealing,
    SealingPlace,
)
from holdfast.storage.codec.event_codec import CHAIN_START, append_chain, encode_record
from holdfast.storage.disk.disk_guard import LOOK_AGAIN_SECONDS, DiskGuard
from holdfast.storage.segments.segments import (
    MANIFEST,
    read_manifest,
    read_rows,
    segment_name,
    segments_in,
)
from holdfast.storage.state.rules import StateMeta
from holdfast.storage.state.state_install import install_from
from holdfast.storage.state.state_store import EventRecord, StateStore, read_chunks


def event(index: int) -> EventRecord:
    cause = Cause("B2", "JoinGroup")
    return stored(Record(Position(index, 0), "g", index, 1, 1, cause, "", "", GroupCreated()))


def boundary(index: int, last: Position) -> Record:
    cause = Cause("S22", "SealSegment")
    return Record(Position(index, 0), "", index, 1, 1, cause, "", "", SegmentSealed(last))


def stored(record: Record) -> EventRecord:
    return EventRecord(*record.position, append_chain(encode_record(record), CHAIN_START))


class Node:
    """A store whose events become durable only when sealing asks for it."""

    def __init__(self, path: Path, turn: int = 0) -> None:
        StateStore.create(path / "state")
        self.path = path
        self.store = StateStore(path / "state", map_bytes=64 << 20)
        self.evolved: list[EventRecord] = []
        self.paused: list[float] = []
        self.turn = asyncio.Event()
        place = SealingPlace(path / "state", path / "segments", "c", "n1", turn)
        self.level = LEVEL_MAX
        self.sealing = Sealing(place, self.store, self.make_durable, lambda: self.level, self.pause)

    async def pause(self, seconds: float) -> None:
        self.paused.append(seconds)
        await self.turn.wait()

    async def make_durable(self) -> None:
        if self.evolved:
            last = self.evolved[-1].index
            self.store.write_snapshot([], self.evolved, StateMeta(last, 1, 1, CHAIN_START))
            self.evolved = []

    def evolve(self, first: int, last: int) -> None:
        self.evolved += [event(index) for index in range(first, last + 1)]

    def set_boundary(self, index: int, last: Position) -> None:
        """Apply the record of a boundary, as it lies on the log."""
        record = boundary(index, last)
        self.evolved.append(stored(record))
        self.sealing.on_applied([record], index)

    def sealed(self) -> list[list[int]]:
        found = segments_in(self.path / "segments")
        return [[row.position.index for row in read_rows(segment)] for segment in found]


@pytest.fixture
def plain_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.runtime.event_log.seal.run_child", run_plain_child)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_s22_a_boundary_seals_what_lies_before_it_and_drops_it_from_the_log(node: Node) -> None:
    async def story() -> None:
        node.evolve(1, 12)
        node.sealing.on_applied([boundary(13, Position(8, 0))], 13)
        await node.sealing.idle()
        node.evolve(13, 20)
        node.sealing.on_applied([boundary(21, Position(20, 0))], 21)
        await node.sealing.idle()

    asyncio.run(story())

    assert node.sealed() == [list(range(1, 9)), list(range(9, 21))]
    assert node.store.events((0, 0), 100) == []


@pytest.mark.usefixtures("plain_child")
@pytest.mark.parametrize(("level", "number"), [(LEVEL_MIN, 1), (LEVEL_MAX, 2)])
def test_what_is_sealed_is_readable_by_every_node_that_the_level_allows(
    level: int, number: int, node: Node
) -> None:
    """Nodes of 0.1.0, which run at level 1, refuse manifests of format 2 (ADR 26, 59)."""
    node.level = level

    async def story() -> None:
        node.evolve(1, 5)
        node.sealing.on_applied([boundary(6, Position(5, 0))], 6)
        await node.sealing.idle()

    asyncio.run(story())

    (segment,) = segments_in(node.path / "segments")
    assert read_manifest(segment).format_version == number


@pytest.mark.usefixtures("plain_child")
def test_a_start_finishes_what_a_crash_left_unsealed(node: Node) -> None:
    async def story() -> None:
        node.evolve(1, 5)
        await node.make_durable()
        node.sealing.start(Position(5, 0))
        await node.sealing.idle()

    asyncio.run(story())

    assert node.sealed() == [[1, 2, 3, 4, 5]]


@pytest.mark.usefixtures("plain_child")
def test_records_that_a_crash_left_behind_are_not_sealed_twice(node: Node) -> None:
    """A kill between two of the transactions that drop what is sealed already."""

    async def story() -> None:
        node.evolve(1, 9)
        node.sealing.on_applied([boundary(10, Position(6, 0))], 10)
        await node.sealing.idle()
        left_behind = [event(index) for index in range(4, 7)]
        node.store.drop_events((9, 0))
        node.store.write_snapshot([], left_behind, StateMeta(9, 1, 1, CHAIN_START))
        node.evolve(10, 12)
        node.sealing.on_applied([boundary(13, Position(12, 0))], 13)
        await node.sealing.idle()

    asyncio.run(story())

    assert node.sealed() == [[1, 2, 3, 4, 5, 6], [10, 11, 12]]


@pytest.mark.usefixtures("plain_child")
def test_a_disk_that_refuses_keeps_the_records_where_they_are(node: Node) -> None:
    """Nothing is dropped from LMDB before the segment is durable."""
    (node.path / "segments").write_text("a file where a folder should be")

    async def story() -> None:
        node.evolve(1, 5)
        node.sealing.on_applied([boundary(6, Position(5, 0))], 6)
        await until_async(lambda: bool(node.paused), "it waits before it tries again")
        await node.sealing.close()

    asyncio.run(story())

    assert len(node.store.events((0, 0), 100)) == 5


@pytest.mark.usefixtures("plain_child")
def test_s22_what_could_not_be_sealed_is_tried_again_without_another_boundary(node: Node) -> None:
    """The next boundary may be a day away, and in a quiet log an operator can set none."""
    in_the_way = node.path / "segments"
    in_the_way.write_text("a file where a folder should be")

    async def story() -> None:
        node.evolve(1, 5)
        node.sealing.on_applied([boundary(6, Position(5, 0))], 6)
        await until_async(lambda: bool(node.paused), "it waits before it tries again")
        in_the_way.unlink()
        node.turn.set()
        await node.sealing.idle()

    asyncio.run(story())

    assert node.paused == [AGAIN_SECONDS]
    assert node.sealed() == [[1, 2, 3, 4, 5]]


@pytest.mark.usefixtures("plain_child")
def test_s22_why_the_last_try_failed_is_known_until_one_succeeds(node: Node) -> None:
    """S22: here a segment that cannot be read; so the node does not know up to where it sealed."""
    broken = node.path / "segments" / segment_name(Position(1, 0), Position(2, 0))
    broken.mkdir(parents=True)
    (broken / MANIFEST).write_text("{")

    async def story() -> None:
        node.evolve(1, 5)
        node.sealing.on_applied([boundary(6, Position(5, 0))], 6)
        await until_async(lambda: bool(node.paused), "it waits before it tries again")
        assert f"the sealed segment {broken} cannot be read" in node.sealing.problem
        (broken / MANIFEST).unlink()
        node.turn.set()
        await node.sealing.idle()

    asyncio.run(story())

    assert node.sealing.problem == ""


@pytest.mark.usefixtures("plain_child")
def test_s22_each_node_seals_in_its_turn_the_longer_the_log_the_later(tmp_path: Path) -> None:
    """All nodes see a boundary within milliseconds; sealing together cost an election once."""
    node = Node(tmp_path, turn=2)

    async def story() -> None:
        node.evolve(1, 50)
        await node.make_durable()
        node.sealing.on_applied([boundary(51, Position(50, 0))], 51)
        await until_async(lambda: bool(node.paused), "it waits for its turn")
        assert node.sealed() == []
        node.turn.set()
        await node.sealing.idle()

    asyncio.run(story())

    assert node.paused == [2 * 50 * TURN_SECONDS_AN_EVENT]
    assert node.sealed() == [list(range(1, 51))]


async def two_boundaries(node: Node) -> None:
    """A log with two boundaries, and nothing behind the second one."""
    node.evolve(1, 5)
    node.set_boundary(6, Position(5, 0))
    await asyncio.sleep(0)  # the node begins: at once, or to wait for its turn
    node.evolve(7, 8)
    node.set_boundary(9, Position(8, 0))


TWO = [[1, 2, 3, 4, 5], [6, 7, 8]]


@pytest.mark.usefixtures("plain_child")
@pytest.mark.parametrize("turn", [0, 2])
def test_s22_each_boundary_ends_a_segment_on_every_node_whenever_its_turn_comes(
    turn: int, tmp_path: Path
) -> None:
    """S22: nodes have the same segments, so that what they hold can be compared and published."""
    node = Node(tmp_path, turn)

    async def story() -> None:
        await two_boundaries(node)
        node.turn.set()
        await node.sealing.idle()

    asyncio.run(story())

    assert node.sealed() == TWO
    assert [each.index for each in node.store.events((0, 0), 100)] == [9]


@pytest.mark.usefixtures("plain_child")
def test_s22_a_start_makes_each_boundary_that_was_missed_a_segment_of_its_own(node: Node) -> None:
    """S22: the state tells the last boundary alone; the log has those before it."""

    async def story() -> None:
        node.evolve(1, 5)
        node.evolved.append(stored(boundary(6, Position(5, 0))))
        node.evolve(7, 8)
        node.evolved.append(stored(boundary(9, Position(8, 0))))
        node.evolve(10, 11)
        await node.make_durable()
        node.sealing.start(Position(8, 0))
        await node.sealing.idle()

    asyncio.run(story())

    assert node.sealed() == TWO
    assert [each.index for each in node.store.events((0, 0), 100)] == [9, 10, 11]


@pytest.mark.usefixtures("plain_child")
def test_s22_segments_of_a_child_that_fails_at_a_later_one_are_done(tmp_path: Path) -> None:
    """S22: what keeps one segment from being made keeps no records in LMDB that are sealed."""
    node = Node(tmp_path, turn=1)  # so that it finds both boundaries at once
    in_the_way = tmp_path / "segments" / segment_name(Position(6, 0), Position(8, 0))
    in_the_way.parent.mkdir()
    in_the_way.write_text("a file where a folder should be")
    left: list[int] = []

    async def pause(seconds: float) -> None:
        node.paused.append(seconds)
        if seconds == AGAIN_SECONDS:
            left.extend(each.index for each in node.store.events((0, 0), 100))
            in_the_way.unlink()

    node.sealing._pause = pause

    async def story() -> None:
        await two_boundaries(node)
        await node.make_durable()
        await node.sealing.idle()

    asyncio.run(story())

    assert left == [6, 7, 8, 9]
    assert node.sealed() == TWO
    assert [each.index for each in node.store.events((0, 0), 100)] == [9]


@pytest.mark.usefixtures("plain_child")
def test_the_first_in_turn_waits_for_nobody(node: Node) -> None:
    async def story() -> None:
        node.evolve(1, 5)
        node.sealing.on_applied([boundary(6, Position(5, 0))], 6)
        await node.sealing.idle()

    asyncio.run(story())

    assert node.paused == []
    assert node.sealed() == [[1, 2, 3, 4, 5]]


@pytest.mark.usefixtures("plain_child")
def test_a_stop_waits_for_no_turn_and_the_next_start_seals(tmp_path: Path) -> None:
    node = Node(tmp_path, turn=1)

    async def story() -> None:
        node.evolve(1, 5)
        await node.make_durable()
        node.sealing.on_applied([boundary(6, Position(5, 0))], 6)
        await until_async(lambda: bool(node.paused), "it waits for its turn")
        await node.sealing.close()

    asyncio.run(story())
    assert node.sealed() == []

    node.turn.set()
    node.sealing = Sealing(
        node.sealing._place, node.store, node.make_durable, lambda: node.level, node.pause
    )

    async def again() -> None:
        node.sealing.start(Position(5, 0))
        await node.sealing.idle()

    asyncio.run(again())
    assert node.sealed() == [[1, 2, 3, 4, 5]]


@pytest.mark.usefixtures("plain_child")
def test_s18_after_an_install_meanwhile_the_new_state_is_sealed_before_it_is_dropped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Rows of the old state were sealed; nothing of the new one goes before it was looked at."""
    other = Node(tmp_path / "other")
    other.evolve(1, 7)
    asyncio.run(other.make_durable())
    node = Node(tmp_path / "node")

    found: list[int] = []

    async def make_durable() -> None:
        await node.make_durable()
        found.append(len(node.store.events((0, 0), 100)))
        if len(found) > 1:
            return
        install_from(node.store, chunks_of(other.store, tmp_path / "copy"))

    node.sealing._make_durable = make_durable

    async def story() -> None:
        node.evolve(1, 5)
        node.sealing.on_applied([boundary(6, Position(5, 0))], 6)
        await node.sealing.idle()

    with caplog.at_level(logging.INFO):
        asyncio.run(story())

    assert found == [5, 7], "the second time all of the new state is there"
    assert node.sealed() == [[1, 2, 3, 4, 5]]
    assert [each.index for each in node.store.events((0, 0), 100)] == [6, 7]
    assert "a snapshot was installed while" in caplog.text


def chunks_of(store: StateStore, copy: Path) -> list[bytes]:
    store.copy_to(copy)
    return list(read_chunks(copy, 1_000))


def test_the_reserve_is_looked_at_again_when_space_was_freed(tmp_path: Path) -> None:
    """S20: refused below the reserve, accepted again without a restart."""
    now = 0.0
    full = DiskGuard(tmp_path, lambda: now, reserve=1 << 62)
    roomy = DiskGuard(tmp_path, lambda: now, reserve=0)
    assert full.low()
    assert not roomy.low()

    full._reserve = 0
    assert full.low()
    now += LOOK_AGAIN_SECONDS
    assert not full.low()


def test_a_refusal_for_want_of_room_names_the_setting() -> None:
    """S20: who reads it should know where the reserve comes from."""
    assert "node.disk_reserve_bytes" in str(DiskLow())
