"""S18: an install waits for nobody, and nobody who reads or writes meanwhile sees a mixture."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from holdfast.storage.disk.environment import reading, walk
from holdfast.storage.errors import WriteOvertaken
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
