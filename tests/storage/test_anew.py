"""S21: records that are sound in a file that is not: the node goes on with a copy, and its vote."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.storage.directory import anew
from holdfast.storage.directory.check import ENVIRONMENTS, verify_directory
from holdfast.storage.directory.data_directory import DataDirectory
from holdfast.storage.disk.environment import DATA_FILE
from holdfast.storage.disk.pages import fault_of_pages
from holdfast.storage.errors import DirectoryRefused, Refusal
from holdfast.storage.journal.commit_mark import MARK_FILE, read_mark
from holdfast.storage.journal.journal import Entry, Identity, JournalBatch
from holdfast.storage.journal.lmdb_journal import LmdbJournal
from holdfast.storage.journal.tailed_journal import open_journal
from holdfast.storage.state.state_store import StateStore
from storage.power import META_PAGES, PAGE
from storage.stores import content, events, meta, snapshot_changes

if TYPE_CHECKING:
    from pathlib import Path

COMMITS = 40


def opened(path: Path, *, bootstrap: bool = False, reserve: int | None = None) -> DataDirectory:
    return DataDirectory(
        path, cluster_id="c", node_id="n", bootstrap=bootstrap, disk_reserve_bytes=reserve
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The directory of a node that ran for a while, the newest of its journal in the tail."""
    path = tmp_path / "data"
    opened(path, bootstrap=True).close()
    journal = LmdbJournal(path / "raft")
    journal.load()
    journal.commit(JournalBatch(identity=Identity("c", "n", "disk-1", "member")))
    for number in range(1, COMMITS):
        large = b"payload %d " % number * (9_000 if number == 9 else 60)
        journal.commit(JournalBatch(append=[Entry(number, 1, large)]))
    journal.close()
    write_on(path, COMMITS)
    store = StateStore(path / "state")
    for number in range(1, 15):
        store.write_snapshot(snapshot_changes(number), events(number), meta(number))
    store.close()
    return path


def write_on(path: Path, number: int) -> None:
    """One more entry, by a journal with a tail, as a node has it."""
    journal = open_journal(path / "raft")
    journal.load()
    journal.commit(JournalBatch(append=[Entry(number, 2, b"later")], commit_index=number))
    journal.close()


def seen(path: Path) -> tuple[object, ...]:
    """What a node reads at its start."""
    journal, store = open_journal(path / "raft"), StateStore(path / "state")
    try:
        return journal.load(), content(store)
    finally:
        journal.close()
        store.close()


def spoil(path: Path, name: str) -> bytes:
    """Flip a bit of the number that a page has of itself, which no reader looks at."""
    file = path / name / DATA_FILE
    image = file.read_bytes()
    for page in range(META_PAGES, len(image) // PAGE):
        flipped = bytearray(image)
        flipped[page * PAGE + 2] ^= 1
        file.write_bytes(flipped)
        if fault_of_pages(file):
            return bytes(flipped)
    raise AssertionError("no page of it is in use")


def kept(path: Path, name: str) -> list[bytes]:
    return [file.read_bytes() for file in sorted((path / name).glob(f"{DATA_FILE}.damaged-*"))]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_node_goes_on_with_a_copy_of_its_records(path: Path, name: str) -> None:
    """It loses nothing, its disk stays the disk that it was, and what was damaged is kept."""
    before = seen(path)
    spoiled = spoil(path, name)

    with opened(path) as directory:
        assert directory.verdict.sound
        assert directory.verdict.spoiled.keys() == {name}
        assert seen(path) == before
        write_on(path, COMMITS + 1)

    assert kept(path, name) == [spoiled]
    with opened(path) as directory:
        assert directory.verdict.sound
        assert directory.verdict.spoiled == {}


def test_a_second_damage_is_kept_beside_the_first(path: Path) -> None:
    images = []
    for _ in range(2):
        images.append(spoil(path, "state"))
        opened(path).close()

    assert kept(path, "state") == images


def test_a_copy_of_the_journal_does_not_look_rolled_back(path: Path) -> None:
    """A mark tells the number of the last transaction; the copy counts from the beginning."""
    assert read_mark(path / "raft") > COMMITS // 2
    spoil(path, "raft")

    opened(path).close()

    assert not (path / "raft" / MARK_FILE).exists()
    assert verify_directory(path).sound


class PowerCutError(Exception):
    """The process ends here."""


def power_cut(*_: object) -> None:
    raise PowerCutError


@pytest.mark.parametrize("before", ["_copy_database", "_next", "sync_path", "rename_durably"])
def test_a_power_cut_on_the_way_loses_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    """Whatever is cut short, the next start finds the old file, or the new one, whole."""
    whole = seen(path)
    spoil(path, "raft")
    monkeypatch.setattr(anew, before, power_cut)
    with pytest.raises(PowerCutError):
        opened(path)
    monkeypatch.undo()

    with opened(path) as directory:
        assert directory.verdict.sound
        assert seen(path) == whole
        assert not list(path.glob(f"*{anew.BEGUN}"))


def test_a_full_disk_is_refused_and_nothing_is_touched(path: Path) -> None:
    """S20: the copy needs the room that the file has; the sentence says what for."""
    spoiled = spoil(path, "state")

    with pytest.raises(DirectoryRefused) as refused:
        opened(path, reserve=1 << 60)

    assert refused.value.refusal is Refusal.NO_SPACE
    assert f"a sound copy of {path / 'state' / DATA_FILE}" in str(refused.value)
    assert (path / "state" / DATA_FILE).read_bytes() == spoiled


def test_more_records_than_a_transaction_takes_are_copied(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(anew, "_RECORDS_AT_ONCE", 3)
    before = seen(path)
    spoil(path, "state")

    opened(path).close()

    assert seen(path) == before
