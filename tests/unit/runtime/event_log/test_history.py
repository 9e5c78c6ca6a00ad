"""The history over tail, store and segments: no gap and no duplicate, whatever moves meanwhile."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from pathlib import Path
from shutil import copytree, rmtree
from threading import Event as Flag

import pytest

from holdfast.coordinator.model.events import (
    Cause,
    ClusterFormed,
    Event,
    GroupCreated,
    LogEntry,
    Part,
    Proposed,
    Record,
    SegmentSealed,
)
from holdfast.coordinator.model.ids import Position
from holdfast.runtime.event_log.history import History, NotHeld, Page
from holdfast.runtime.event_log.tail import Tail
from holdfast.runtime.replica.snapshots import StateSnapshots
from holdfast.runtime.replica.state_machine import StoredRecord
from holdfast.storage.codec.event_codec import (
    CHAIN_START,
    append_chain,
    encode_entry,
    encode_record,
)
from holdfast.storage.errors import DiskFull
from holdfast.storage.segments.segment_writer import write_segment
from holdfast.storage.segments.segments import Row, segments_in
from holdfast.storage.state.state_store import EventRecord, StateStore

MAP_BYTES = 64 << 20
DEADLINE = 20.0


def record(index: int, ordinal: int = 0, *, sealed: int = 0) -> StoredRecord:
    """A record; `sealed`: it says that everything up to that index belongs to segments."""
    event: Event = SegmentSealed(Position(sealed, 1)) if sealed else GroupCreated()
    if index == 1:
        event = ClusterFormed("c", ())  # the first record of every log
    group = "" if sealed or index == 1 else f"g{ordinal}"
    place = Position(index, ordinal)
    made = Record(place, group, index, 1, 1, Cause("A1", "JoinGroup"), "", "", event)
    return StoredRecord(made, append_chain(encode_record(made), CHAIN_START))


class Places(StateStore):
    """The three places, moved between by hand; `hook` runs around each look at a place.

    A record is two to an entry; a boundary for everything up to `n` stands at index `n + 1`.
    """

    def __init__(self, folder: Path, library: Path) -> None:
        self.folder, self.library, self.tail = folder / "segments", library, Tail()
        self.rows: list[EventRecord] = []
        self.evolved: list[StoredRecord] = []
        self.history = History(self.tail, self, self.folder, lambda: self.applied)
        self.hook: Callable[[], None] = lambda: None
        look = self.history._sealed.segments
        self.history._sealed.segments = lambda: (self.hook(), look())[1]  # type: ignore[method-assign]  # the hook

    @property
    def applied(self) -> int:
        return self.evolved[-1].record.position.index if self.evolved else 0

    def events(self, start: tuple[int, int], limit: int) -> list[EventRecord]:
        self.hook()
        found = [row for row in self.rows if (row.index, row.ordinal) >= start][:limit]
        self.hook()
        return found

    def evolve(self, first: int, last: int, boundaries: tuple[int, ...] = ()) -> None:
        for index in range(first, last + 1):
            sealed = index - 1 if index - 1 in boundaries else 0
            records = [record(index, 0, sealed=sealed), record(index, 1)]
            self.evolved += records
            self.tail.add([EventRecord(*one.record.position, one.content) for one in records])

    def make_durable(self, index: int) -> None:
        self.rows += self.tail.through(index)
        self.tail.durable(index)

    def seal(self, last: int, *, through: int | None = None) -> None:
        """Seal up to an index, then drop from the store (`through`: only so far)."""
        rows = [Row(Position(r.index, r.ordinal), r.payload) for r in self.rows if r.index <= last]
        if rows:
            # Written once for all tests: each takes a hundred milliseconds of syncing.
            book = self.library / str(hash(tuple(rows)))
            if not book.exists():
                write_segment(book, rows, "c", "n1")
            copytree(book, self.folder, dirs_exist_ok=True)
        self.drop(last if through is None else through)

    def drop(self, last: int) -> None:
        self.rows = [row for row in self.rows if row.index > last]

    def read(self, start: Position | None, limit: int = 1_000) -> Page:
        return asyncio.run(self.history.read(start, limit))

    def all_from(self, start: Position | None, limit: int) -> list[tuple[Position, bytes]]:
        """Read page by page, as a caller does, until the end."""
        found: list[tuple[Position, bytes]] = []
        while not (page := self.read(start, limit)).end:
            found += page.records
            start = page.next
        return found + page.records

    def expected(self, least: Position | None = None) -> list[tuple[Position, bytes]]:
        every = [(one.record.position, one.content) for one in self.evolved]
        return [one for one in every if least is None or one[0] >= least]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Segments that were written for some test of this file."""
    return tmp_path_factory.mktemp("library")


@pytest.fixture
def places(tmp_path: Path, library: Path) -> Places:
    """Two segments, some records in the store, some in the tail."""
    made = Places(tmp_path, library)
    made.evolve(1, 40, boundaries=(10, 20, 30))
    made.make_durable(30)
    made.seal(10)
    made.seal(20)
    return made


@pytest.mark.parametrize("limit", [3, 7, 20, 1_000])
def test_pages_over_all_places_are_the_log_each_record_once(places: Places, limit: int) -> None:
    assert places.all_from(None, limit) == places.expected()
    assert places.all_from(Position(1, 0), limit) == places.expected()


@pytest.mark.parametrize(
    "start", [Position(n, o) for n in (0, 1, 10, 11, 20, 25, 30, 31, 40, 41) for o in (0, 1, 2)]
)
def test_a_start_is_inclusive_wherever_it_is(places: Places, start: Position) -> None:
    page = places.read(start, 5)

    assert page.records == places.expected(start)[:5]


def test_the_end_is_known_and_reading_on_from_it_misses_nothing(places: Places) -> None:
    page = places.read(None)
    places.evolve(41, 42)

    assert (page.end, page.next, page.first) == (True, Position(41, 0), Position(1, 0))
    assert places.read(page.next).records == places.expected(Position(41, 0))


def test_a_start_behind_the_end_is_kept(places: Places) -> None:
    """log.proto: an answer can only be short, as that of a slower node is."""
    page = places.read(Position(90, 1))

    assert (page.records, page.next, page.end) == ([], Position(90, 1), True)


def make_durable_and_seal(places: Places) -> None:
    places.make_durable(40)
    places.seal(30)


MOVES: dict[str, Callable[[Places], None]] = {
    "becomes durable": lambda p: p.make_durable(40),
    "is sealed": lambda p: p.seal(30),
    "becomes durable and is sealed": make_durable_and_seal,
    "is sealed and half dropped": lambda p: p.seal(30, through=25),
}


@pytest.mark.parametrize("moment", range(8))
@pytest.mark.parametrize("what", MOVES)
@pytest.mark.parametrize("start", [None, Position(25, 1)])
def test_what_moves_on_while_it_is_read_is_read_once(
    tmp_path: Path, library: Path, start: Position | None, what: str, moment: int
) -> None:
    """S18, S22: a record leaves a place only when it is durable in the next; at each look."""
    places = Places(tmp_path, library)
    places.evolve(1, 40, boundaries=(10, 20, 30))
    places.make_durable(35)
    places.seal(10)
    places.seal(20)
    looks = iter(range(100))

    def hook() -> None:
        if next(looks) == moment:
            MOVES[what](places)

    places.hook = hook
    page = places.read(start)

    assert page.records == places.expected(start)
    assert page.first == Position(1, 0)


@pytest.mark.parametrize("through", [20, 23, 25, 29, 30])
def test_a_crash_while_the_store_is_shortened_loses_nothing(places: Places, through: int) -> None:
    """S22: what is left is sealed together with the next boundary, so segments may overlap."""
    places.seal(30, through=through)
    places.evolve(41, 60, boundaries=(50,))
    places.make_durable(60)
    places.seal(50)

    assert places.all_from(None, 9) == places.expected()


def test_young_records_are_read_from_memory_alone(places: Places) -> None:
    """A watcher that is up to date costs no look at a disk."""

    def refuse() -> None:
        pytest.fail("a disk was looked at")

    places.hook = refuse
    assert places.read(Position(31, 0)).records == places.expected(Position(31, 0))


def install(places: Places, sealed: int, last: int) -> None:
    """A snapshot of a peer arrives, whose event log begins behind the boundary `sealed`."""
    places.evolve(41, last, boundaries=(sealed,))
    behind = [one for one in places.evolved if one.record.position.index > sealed]
    places.rows = [EventRecord(*one.record.position, one.content) for one in behind]
    places.tail.begin_at(last)


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
@pytest.mark.parametrize("start", [Position(n, o) for n in (21, 30, 31, 40, 41) for o in (0, 1, 2)])
def test_what_is_not_sealed_is_read_without_a_look_at_a_segment(
    places: Places, start: Position, limit: int
) -> None:
    """Who asks for a boundary, and a new leader, have no time for segments: some have many."""
    rmtree(places.folder)
    page = asyncio.run(places.history.live(start, limit))
    behind = places.expected(start)

    assert page.records == behind[:limit]
    assert page.end == (limit > len(behind))
    assert places.history._sealed.segments() == []


def test_segments_that_were_sealed_elsewhere_are_a_gap_and_are_not_skipped(places: Places) -> None:
    """Every node's history is whole or names the missing range."""
    install(places, sealed=50, last=60)

    for start in (Position(1, 0), Position(20, 1), Position(21, 0), Position(50, 1)):
        with pytest.raises(NotHeld, match=r"begins at 51\.0") as refused:
            places.read(start)
        assert refused.value.first == Position(51, 0)
    assert places.all_from(None, 7) == places.expected(Position(51, 0))


def test_an_install_that_follows_on_what_was_sealed_here_leaves_no_gap(places: Places) -> None:
    install(places, sealed=20, last=60)

    assert places.all_from(None, 7) == places.expected()


def test_an_install_seen_before_the_loop_hears_of_it_hides_no_gap(places: Places) -> None:
    """The engine's thread installs first; the tail is still that of the old state."""
    old = places.tail.since(Position(0, 0)).records
    install(places, sealed=50, last=60)
    places.tail.begin_at(30)
    places.tail.add(old)

    with pytest.raises(NotHeld):
        places.read(Position(25, 0))


def test_a_segment_that_is_gone_is_a_gap(places: Places) -> None:
    rmtree(segments_in(places.folder)[1])

    with pytest.raises(NotHeld, match=r"begins at 21\.0"):
        places.read(Position(5, 0))
    rmtree(segments_in(places.folder)[0])
    with pytest.raises(NotHeld, match=r"begins at 21\.0"):
        places.read(Position(1, 0))


def test_a_first_segment_that_is_gone_is_a_gap(places: Places) -> None:
    rmtree(segments_in(places.folder)[0])

    with pytest.raises(NotHeld, match=r"begins at 11\.0"):
        places.read(Position(10, 1))
    assert places.all_from(None, 4) == places.expected(Position(11, 0))


# --- the snapshot writer ---


class HeldStore(StateStore):
    """A store whose snapshots wait until they are let go, or fail."""

    let_go: Flag
    begun: Flag
    fail = False

    def write_snapshot(self, *arguments: object) -> None:
        self.begun.set()
        assert self.let_go.wait(DEADLINE)
        if self.fail:
            raise DiskFull(self.path, "snapshot", "no space left", 28)
        super().write_snapshot(*arguments)  # type: ignore[arg-type]  # passed on


class Snapshots:
    """Real snapshots over a held store, and the history over both."""

    def __init__(self, path: Path) -> None:
        StateStore.create(path / "state")
        self.store = HeldStore(path / "state", map_bytes=MAP_BYTES)
        self.store.let_go, self.store.begun = Flag(), Flag()
        self.snapshots = StateSnapshots(self.store, path / "state.copy")
        self.machine = self.snapshots.load()
        self.history = History(
            self.snapshots.tail,
            self.store,
            path / "segments",
            lambda: self.machine.state.applied_index,
        )

    def evolve(self, first: int, last: int) -> None:
        for index in range(first, last + 1):
            event = Proposed(GroupCreated(), Cause("A1", "JoinGroup"))
            entry = LogEntry(index, index, (Part(f"group-{index}", 1, 0, (event,)),))
            payload = encode_entry(entry)
            self.snapshots.note(self.machine.apply(index, 1, payload), len(payload))

    def indexes(self) -> list[int]:
        page = asyncio.run(self.history.read(None, 1_000))
        return [position.index for position, _ in page.records]


def test_records_of_a_snapshot_under_way_are_not_missed(tmp_path: Path) -> None:
    """S18: while they are written they are in no transaction that a reader sees."""
    node = Snapshots(tmp_path)
    node.evolve(1, 20)
    under_way = node.snapshots.take(node.machine, 1)
    assert node.store.begun.wait(DEADLINE)
    node.evolve(21, 25)
    during = node.indexes()
    node.store.let_go.set()
    under_way.result(DEADLINE)

    assert during == list(range(1, 26))
    assert node.indexes() == list(range(1, 26))
    assert node.snapshots.tail.since(Position(0, 0)).floor == 20
    node.store.close()


def test_the_tail_keeps_bytes_and_not_the_values_that_they_encode(tmp_path: Path) -> None:
    """S20: it grows up to 4 MiB of entries; as values each record takes more than a kilobyte."""
    node = Snapshots(tmp_path)
    node.evolve(1, 20)
    kept = node.snapshots.tail.since(Position(0, 0)).records

    assert len(kept) == 20
    assert {type(part) for part in gc.get_referents(*kept)} == {int, bytes, type}
    node.store.close()


def test_a_snapshot_that_failed_leaves_its_records_to_the_next(tmp_path: Path) -> None:
    """S20: a full disk must not leave a hole in the event log once there is room again."""
    node = Snapshots(tmp_path)
    node.store.let_go.set()
    node.store.fail = True
    node.evolve(1, 20)
    with pytest.raises(DiskFull):
        node.snapshots.take(node.machine, 1).result(DEADLINE)
    node.store.fail = False
    node.evolve(21, 25)
    assert node.indexes() == list(range(1, 26))
    node.snapshots.take(node.machine, 1).result(DEADLINE)

    assert [event.index for event in node.store.events((0, 0), 100)] == list(range(1, 26))
    node.store.close()
