"""The replicated state on disk: a snapshot is one transaction, every record is checked (S18)."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.storage.codec.history_image import REBALANCES
from holdfast.storage.directory.check import Verdict, walk_directory
from holdfast.storage.disk.environment import publish_environment
from holdfast.storage.disk.records import pack_record
from holdfast.storage.errors import DiskFull, StateDamaged, StateFailed, WriteRefused
from holdfast.storage.journal.lmdb_journal import LmdbJournal
from holdfast.storage.state.state_records import StateRecord
from holdfast.storage.state.state_store import (
    DROP_EVENTS_A_TRANSACTION,
    Change,
    EventRecord,
    StateStore,
)
from storage.power import recorded
from storage.stores import LONG_KEY, content, events, filled, meta, snapshot_changes
from storage.test_journals import disk_replaced_by

DEADLINE = 20.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state"


def test_a_new_state_is_empty(path: Path) -> None:
    assert content(filled(path, [])) == (None, [], [])


def test_a_snapshot_is_found_again(path: Path) -> None:
    """Last writes win, keys longer than LMDB's limit come back whole, events keep their order."""
    filled(path, [1, 4]).close()

    store = StateStore(path)

    assert store.meta() == meta(4)
    assert store.events((0, 0), 100) == events(1) + events(4)
    assert set(store.load()) == {
        StateRecord("groups", b"g-1", b"group at 4"),
        StateRecord("topics", b"t-1", b"topic "),
        StateRecord("topics", b"t-4", b"topic " * 4),
        StateRecord("requests", LONG_KEY + b"1", b"a key that LMDB cannot hold"),
        StateRecord("requests", LONG_KEY + b"4", b"a key that LMDB cannot hold"),
        StateRecord("chains", b"g-1", snapshot_changes(4)[3][2] or b""),
        StateRecord("meta", b"c", b"the cluster's record at 4"),
    }


OLD_NAMES = ("groups", "topics", "settings", "requests", "events", "chains", "meta")
"""The databases that version 0.1.0 made."""


def test_a_state_of_an_older_version_is_sound_and_gets_the_database_that_it_lacks(
    path: Path,
) -> None:
    """S21: what version 0.1.0 never made is not missing; it is there once this version opens it."""
    publish_environment(path, OLD_NAMES, {})
    LmdbJournal.create(path.with_name("raft"))
    assert walk_directory(path.parent) == Verdict(sound=True, blank=True)

    store = StateStore(path)
    store.write_snapshot([(REBALANCES, b"b", b"told")], [], meta(1))

    assert list(store.load()) == [StateRecord(REBALANCES, b"b", b"told")]


OPENED_WITHOUT_ROOM = """
import resource, signal, sys
from pathlib import Path
from holdfast.storage.errors import StateFailed
from holdfast.storage.state.state_store import StateStore
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    StateStore(Path(sys.argv[1]))
except StateFailed as error:
    print(error)
"""


def test_a_write_that_fails_while_a_state_is_opened_is_not_called_damage(path: Path) -> None:
    """S20, S21: the disk refuses the write, and what was there is there still."""
    publish_environment(path, OLD_NAMES, {})
    command = [sys.executable, "-c", OPENED_WITHOUT_ROOM, str(path)]

    done = subprocess.run(command, check=True, capture_output=True, text=True)

    assert "could not take a new database" in done.stdout
    StateStore(path).close()


def test_a_read_only_state_lacks_what_an_older_version_did_not_make(path: Path) -> None:
    """S18: what is only read stays as it is, byte for byte."""
    publish_environment(path, OLD_NAMES, {})
    before = (path / "data.mdb").read_bytes()
    store = StateStore(path, readonly=True)

    assert (store.meta(), list(store.load())) == (None, [])
    with pytest.raises(StateFailed):
        store.write_snapshot([], [], meta(1))
    store.close()
    assert (path / "data.mdb").read_bytes() == before


def test_a_removed_record_is_gone(path: Path) -> None:
    store = filled(path, [1])
    store.write_snapshot([(name, key, None) for name, key, _ in snapshot_changes(1)], [], meta(2))

    assert list(store.load()) == []


def test_events_are_read_from_any_position_and_in_portions(path: Path) -> None:
    store = filled(path, [1, 2, 300])

    assert store.events((1, 2), 3) == [events(1)[2], *events(2)[:2]]
    assert store.events((3, 0), 10) == events(300)
    assert store.events((301, 0), 10) == []


def test_sealed_events_are_dropped_up_to_a_position(path: Path) -> None:
    """S22: what is durable in a segment leaves LMDB, over more than one transaction's worth."""
    store = filled(path, [])
    many = [EventRecord(5, ordinal, b"e") for ordinal in range(20_005)]
    store.write_snapshot([], many, meta(5))

    assert store.drop_events((5, 20_002))

    assert store.events((0, 0), 10) == many[20_003:]
    assert store.event_count() == 2


def test_s22_dropping_asks_between_transactions_whether_to_go_on(path: Path) -> None:
    """A node that stops waits for one transaction, not for all; the next start drops the rest."""
    store = filled(path, [])
    many = [EventRecord(5, ordinal, b"e") for ordinal in range(20_005)]
    store.write_snapshot([], many, meta(5))
    asked: list[int] = []

    def go_on() -> bool:
        asked.append(store.event_count())
        return len(asked) < 3

    assert not store.drop_events((5, 20_002), go_on=go_on)

    assert asked == [20_005 - n * DROP_EVENTS_A_TRANSACTION for n in (1, 2, 3)]
    assert store.events((0, 0), 1) == [many[3 * DROP_EVENTS_A_TRANSACTION]]


COUNTS_BESIDE = """
import sys
from pathlib import Path
from holdfast.storage.state.state_store import StateStore
print(StateStore(Path(sys.argv[1]), beside_writer=True).event_count())
"""


def test_s22_who_reads_beside_the_writer_does_not_wait_for_its_transaction(path: Path) -> None:
    """The sealing process has a low priority: it must not hold the writers' lock either."""
    store = filled(path, [1, 2])
    seen: list[str] = []

    def meanwhile() -> Iterator[Change]:
        command = [sys.executable, "-c", COUNTS_BESIDE, str(path)]
        seen.append(subprocess.check_output(command, text=True, timeout=DEADLINE))
        yield from snapshot_changes(3)

    store.write_snapshot(meanwhile(), events(3), meta(3))

    assert [int(each) for each in seen] == [6]
    assert store.event_count() == 9


DIES_READING = """
import os, signal, sys
from pathlib import Path
from holdfast.storage.disk.environment import reading
from holdfast.storage.state.state_store import StateStore
store = StateStore(Path(sys.argv[1]), beside_writer=True)
with store._shared.using("test") as opened, reading(opened.environment):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_s22_a_reader_that_was_killed_holds_no_pages_for_ever(path: Path) -> None:
    """Or the file grows with each change for as long as the node lives."""
    store = filled(path, [1, 2])
    subprocess.run([sys.executable, "-c", DIES_READING, str(path)], check=False)
    assert len(readers(store)) == 1

    store.release_dead_readers()

    assert readers(store) == []


def readers(store: StateStore) -> list[str]:
    """LMDB's table of readers in other processes."""
    with store._shared.using("test") as opened:
        lines = opened.environment.readers().splitlines()[1:]
    return [line for line in lines if int(line.split()[0]) != os.getpid()]


@pytest.mark.parametrize(
    ("changes", "new", "index"),
    [
        pytest.param([], [], 6, id="an older snapshot"),
        pytest.param([], events(6), 8, id="an event behind the last"),
        pytest.param([("events", b"x", b"")], [], 8, id="an event as a change"),
        pytest.param([("meta", b"snapshot", b"")], [], 8, id="our own record"),
    ],
)
def test_a_snapshot_that_contradicts_the_state_is_refused_whole(
    path: Path, changes: list[Change], new: list[EventRecord], index: int
) -> None:
    store = filled(path, [7])
    before = content(store)

    with pytest.raises(WriteRefused):
        store.write_snapshot([("groups", b"other", b"x"), *changes], new, meta(index))

    assert content(store) == before


@pytest.mark.parametrize(("device", "error"), [("/dev/full", DiskFull), ("/dev/null", StateFailed)])
def test_a_failed_snapshot_leaves_the_state_as_it_was(
    path: Path, device: str, error: type[StateFailed]
) -> None:
    """S20: a full disk costs a snapshot, not the state; the next one works."""
    store = filled(path, [1])
    before = content(store)

    with disk_replaced_by(device, path / "data.mdb"), pytest.raises(error):
        store.write_snapshot(snapshot_changes(2), events(2), meta(2))

    assert content(store) == before
    store.write_snapshot(snapshot_changes(2), events(2), meta(2))
    assert store.meta() == meta(2)


def test_a_snapshot_is_all_or_nothing_at_every_cut(path: Path) -> None:
    """S18: state, events and applied index belong together whatever the power leaves."""
    store = filled(path, [1, 2])
    file, absent = (path / "data.mdb").read_bytes(), content(store)
    store.write_snapshot(snapshot_changes(3), events(3), meta(3))
    commit, whole = recorded(file, (path / "data.mdb").read_bytes()), content(store)
    store.close()

    found = []
    for cut in commit.cuts():
        (path / "lock.mdb").unlink(missing_ok=True)
        (path / "data.mdb").write_bytes(cut)
        again = StateStore(path)
        found.append(content(again))
        again.close()

    assert found[-1] == whole
    assert all(state in (absent, whole) for state in found)
    assert found.count(absent) > 8


KILLED_WHILE_WRITING = """
import os, sys
from pathlib import Path
from storage.stores import events, meta, snapshot_changes
from holdfast.storage.state.state_store import StateStore
store = StateStore(Path(sys.argv[1]))
def changes():
    yield from snapshot_changes(2)
    os.kill(os.getpid(), 9)
store.write_snapshot(changes(), events(2), meta(2))
"""


def test_a_process_that_is_killed_while_it_writes_leaves_the_last_snapshot(path: Path) -> None:
    """S18: all or nothing under kill -9; the dead writer's lock does not stay."""
    store = filled(path, [1])
    before = content(store)
    store.close()
    places = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])

    child = subprocess.run(
        [sys.executable, "-c", KILLED_WHILE_WRITING, str(path)],
        env={**os.environ, "PYTHONPATH": places},
        check=False,
        timeout=60,
    )

    assert child.returncode == -signal.SIGKILL
    store = StateStore(path)
    assert content(store) == before
    store.write_snapshot(snapshot_changes(2), events(2), meta(2))


@pytest.mark.parametrize("database", ["groups", "requests", "events"])
def test_every_flipped_byte_of_a_record_is_found_and_named(path: Path, database: str) -> None:
    """S21: whichever byte it is, the state is damaged, and the error says where."""
    key, value = {
        "groups": (b"g-1", b"group at 1"),
        "requests": (LONG_KEY + b"1", b"a key that LMDB cannot hold"),
        "events": (b"\0\0\0\0\0\0\0\1\0\0\0\2", b"event 1.2"),
    }[database]
    filled(path, [1]).close()
    file = (path / "data.mdb").read_bytes()
    stored = pack_record(database, key, value)
    assert stored in file

    positions = (
        range(len(stored))
        if len(stored) < 100
        else random.Random(4).sample(range(len(stored)), 100)
    )
    for position in positions:
        flipped = bytearray(stored)
        flipped[position] ^= 1 << position % 8
        (path / "data.mdb").write_bytes(file.replace(stored, bytes(flipped)))
        store = StateStore(path)
        with pytest.raises(StateDamaged) as damage:
            content(store)
        store.close()
        assert damage.value.database == database


def test_a_record_under_another_key_or_in_another_database_is_damage(path: Path) -> None:
    """S21: the checksum covers the place, so a whole record in the wrong place is found."""
    store = filled(path, [])
    with store._shared._current.environment.begin(write=True) as txn:
        txn.put(
            b"b", pack_record("groups", b"a", b"x"), db=store._shared._current.databases["groups"]
        )
        txn.put(
            b"a", pack_record("groups", b"a", b"x"), db=store._shared._current.databases["topics"]
        )

    with pytest.raises(StateDamaged, match="groups"):
        list(store.load())
    with store._shared._current.environment.begin(write=True) as txn:
        txn.delete(b"b", db=store._shared._current.databases["groups"])
    with pytest.raises(StateDamaged, match="topics"):
        list(store.load())
