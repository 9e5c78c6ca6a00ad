"""S18: an install waits for nobody, and nobody who reads or writes meanwhile sees a mixture."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from harness.children import environment
from holdfast.storage.disk.environment import reading, walk
from holdfast.storage.disk.files import rename_durably
from holdfast.storage.errors import WriteOvertaken
from holdfast.storage.state import state_store
from holdfast.storage.state.state_install import StateInstall, incoming_path
from holdfast.storage.state.state_store import StateStore, read_chunks
from storage.stores import content, events, filled, meta, snapshot_changes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from holdfast.storage.state.state_store import Change

DEADLINE = 20.0


@pytest.fixture
def leader(tmp_path: Path) -> StateStore:
    return filled(tmp_path / "leader", range(1, 12))


@pytest.fixture
def follower(tmp_path: Path) -> StateStore:
    (tmp_path / "node").mkdir()
    return filled(tmp_path / "node" / "state", [1, 2])


def sealed_install(leader: StateStore, follower: StateStore, tmp_path: Path) -> StateInstall:
    """All of the leader's state, durable beside the follower's."""
    leader.copy_to(tmp_path / "copy")
    install = StateInstall(follower)
    for chunk in read_chunks(tmp_path / "copy", 1000):
        install.add(chunk)
    install.seal()
    return install


def test_s18_an_install_does_not_wait_for_a_reader(
    leader: StateStore, follower: StateStore, tmp_path: Path
) -> None:
    """The tick thread installs: a reader that dawdles must not cost it an election.

    The reader is in this very thread, so an install that waited for it would never return.
    """
    before = list(follower.load())
    install = sealed_install(leader, follower, tmp_path)
    reader = follower.load()
    found = [next(reader)]

    install.install()

    assert content(follower) == content(leader)
    assert [*found, *reader] == before, "the reader ends on the state that it began with"


def test_s18_the_old_state_is_closed_when_its_last_reader_leaves(
    leader: StateStore, follower: StateStore, tmp_path: Path
) -> None:
    """Or each install would leave a map and three open files behind."""
    old = follower._shared._current
    reader = follower.load()
    next(reader)
    sealed_install(leader, follower, tmp_path).install()
    with reading(old.environment):
        assert len(old.users) == 1

    reader.close()  # type: ignore[attr-defined]  # a generator

    with pytest.raises(Exception, match="closed"):
        reading(old.environment)


def test_s18_a_snapshot_that_is_being_written_is_overtaken(
    leader: StateStore, follower: StateStore, tmp_path: Path
) -> None:
    """The install does not wait for the writer, and what the writer writes is in no state."""
    install = sealed_install(leader, follower, tmp_path)
    writing, installed = threading.Event(), threading.Event()
    refused: list[WriteOvertaken] = []

    def slowly() -> Iterator[Change]:
        writing.set()
        assert installed.wait(DEADLINE)
        yield from snapshot_changes(3)

    def write() -> None:
        try:
            follower.write_snapshot(slowly(), events(3), meta(3))
        except WriteOvertaken as error:
            refused.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    assert writing.wait(DEADLINE)
    install.install()
    installed.set()
    writer.join(DEADLINE)

    assert len(refused) == 1
    assert content(follower) == content(leader)
    follower.write_snapshot(snapshot_changes(12), events(12), meta(12))
    assert follower.meta() == meta(12)


def test_s18_after_an_install_other_processes_see_the_new_state_and_share_its_lock(
    leader: StateStore, follower: StateStore, tmp_path: Path
) -> None:
    """The sealing process opens the state by its path; pages it reads must not be reused."""
    sealed_install(leader, follower, tmp_path).install()
    inode = (follower.path / "lock.mdb").stat().st_ino
    assert not incoming_path(follower.path).exists()
    follower.close()
    again = StateStore(follower.path)
    assert content(again) == content(leader)
    assert (follower.path / "lock.mdb").stat().st_ino == inode
    with again._shared.using("look") as opened, reading(opened.environment) as txn:
        assert list(walk(txn, opened.databases["groups"]))


def test_s22_events_of_another_state_than_the_sealed_one_are_not_dropped(
    leader: StateStore, follower: StateStore, tmp_path: Path
) -> None:
    """An install does not wait for a sealing under way, and nothing may be lost."""
    generation = follower.generation
    sealed_install(leader, follower, tmp_path).install()
    with pytest.raises(WriteOvertaken):
        follower.drop_events((2, 2), generation=generation)

    assert content(follower) == content(leader)


# --- a process that reads meanwhile ---

READER = """
import sys, time
from pathlib import Path
from holdfast.coordinator.model.ids import Position
from holdfast.storage.segments import seal
from holdfast.storage.state.state_store import StateStore

def wait(*_):
    print("waits", flush=True)
    sys.stdin.readline()

time.sleep = wait
seal.BATCH = 2
store = StateStore(Path(sys.argv[1]), beside_writer=True)
for number, row in enumerate(seal.rows_through(store, Position(99, 0))):
    if number == 1 and sys.argv[2:]:
        wait()
    print(*row.position, row.content.decode(), flush=True)
"""
"""Reads the event log as the child does that seals; waits when told to, and to open it again."""


class Reader:
    """Such a process."""

    def __init__(self, state: Path, *arguments: str) -> None:
        command = [sys.executable, "-c", READER, str(state), *arguments]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        self.rows: list[str] = []
        self.waits = False

    def go_on(self) -> None:
        """Let it go on until it waits, or has ended."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        if self.waits:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        self.waits = False
        for line in self.process.stdout:
            if line == "waits\n":
                self.waits = True
                return
            self.rows.append(line.removesuffix("\n"))
        assert self.process.wait(DEADLINE) == 0
        self.process.communicate()  # closes the pipes


def rows_of(store: StateStore) -> list[str]:
    return [f"{e.index} {e.ordinal} {e.payload.decode()}" for e in store.events((0, 0), 1_000)]


def other_leader(path: Path) -> StateStore:
    """One whose log begins later: what lies before is sealed there."""
    other = filled(path, range(1, 12))
    other.drop_events((2, 0))
    return other


def test_s22_what_a_child_reads_to_seal_it_is_of_one_state_though_another_is_installed(
    follower: StateStore, tmp_path: Path
) -> None:
    """S22: else a segment could have a hole, of what was sealed and dropped on another node."""
    before = rows_of(follower)
    install = sealed_install(other_leader(tmp_path / "other"), follower, tmp_path)
    reader = Reader(follower.path, "wait within")
    reader.go_on()
    assert len(reader.rows) == 1

    install.install()
    for index in range(12, 40):  # pages of the old state would be reused, if they were shared
        follower.write_snapshot(snapshot_changes(index), events(index), meta(index))
    reader.go_on()

    assert reader.rows == before
    assert rows_of(follower) != before


@pytest.mark.parametrize("odd", [False, True])
def test_s22_a_child_that_opens_the_state_while_it_is_replaced_reads_one_of_the_two_as_it_is(
    *, odd: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S22: one read without its last snapshot, whose segment ended before its boundary.

    The lock file was the new state's already, and told LMDB the number of another transaction: by
    that, it took the older of the two roots of the old state, for one parity of that number.
    """
    (tmp_path / "node").mkdir()
    follower = filled(tmp_path / "node" / "state", range(1, 10))
    leader = filled(tmp_path / "leader", [1, 2, 3, 50] if odd else [1, 2, 3, 4, 50])
    allowed = [rows_of(follower), rows_of(leader)]
    install = sealed_install(leader, follower, tmp_path)
    reader = Reader(follower.path)

    def rename_later(source: Path, target: Path) -> None:
        reader.go_on()
        rename_durably(source, target)

    monkeypatch.setattr(state_store, "rename_durably", rename_later)
    install.install()
    if reader.waits:
        reader.go_on()

    assert reader.rows in allowed
