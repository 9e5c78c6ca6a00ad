"""S19, S21: whatever the power leaves of the last three commits, nothing acknowledged is lost."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from holdfast.storage.disk.records import pack_entry
from holdfast.storage.errors import JournalDamaged
from holdfast.storage.journal.journal import Entry, HardState, JournalBatch, JournalImage
from holdfast.storage.journal.lmdb_journal import LmdbJournal
from storage.power import Commit, recorded

SEED = 20_240_117
TORN_STARTS = 60


def payload(index: int, size: int) -> bytes:
    return random.Random(index).randbytes(size)


# Values that share a page, one over four pages of its own, and what else a batch can do.
LAST_THREE = (
    JournalBatch(
        append=[Entry(9, 2, payload(9, 300))], hard_state=HardState(2, "b"), commit_index=8
    ),
    JournalBatch(append=[Entry(10, 2, payload(10, 13_000))], cut_to=(4, 1), commit_index=9),
    JournalBatch(truncate_from=10, append=[Entry(10, 3, payload(11, 200))]),
)


class Recording:
    """A journal that took eight entries one by one and then the last three commits."""

    def __init__(self, path: Path) -> None:
        LmdbJournal.create(path)
        journal = LmdbJournal(path)
        journal.load()
        for index in range(1, 9):
            journal.commit(JournalBatch(append=[Entry(index, 1, payload(index, 250))]))
        self.images: list[JournalImage] = [journal.load()]
        self.commits: list[Commit] = []
        for batch in LAST_THREE:
            before = (path / "data.mdb").read_bytes()
            journal.commit(batch)
            self.commits.append(recorded(before, (path / "data.mdb").read_bytes()))
            self.images.append(journal.load())
        self.file = (path / "data.mdb").read_bytes()
        journal.close()


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return Recording(tmp_path_factory.mktemp("recorded") / "raft")


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    path = tmp_path / "raft"
    path.mkdir()
    return path


def started(scratch: Path, file: bytes) -> JournalImage:
    """What a start on this file finds."""
    (scratch / "lock.mdb").unlink(missing_ok=True)
    (scratch / "data.mdb").write_bytes(file)
    journal = LmdbJournal(scratch)
    try:
        return journal.load()
    finally:
        journal.close()


@pytest.mark.parametrize("number", range(len(LAST_THREE)))
def test_every_cut_leaves_the_batch_whole_or_absent(
    recording: Recording, scratch: Path, number: int
) -> None:
    """S19: before the last write is on disk nothing was acknowledged, afterwards everything."""
    commit = recording.commits[number]
    absent, whole = recording.images[number], recording.images[number + 1]
    cuts = list(commit.cuts())

    found = [started(scratch, cut) for cut in cuts]

    assert len(cuts) > sum(len(write.data) for write in commit.writes) // 512
    assert found[-1] == whole
    assert all(image in (absent, whole) for image in found)
    assert found[: len(found) - 8] == [absent] * (len(found) - 8), "only the meta page decides"


@pytest.mark.parametrize("number", range(len(LAST_THREE)))
def test_sectors_that_came_in_any_order_before_the_sync_change_nothing(
    recording: Recording, scratch: Path, number: int
) -> None:
    """S19: until its sync returns, a disk may have taken any of the pages' sectors."""
    source = random.Random(SEED + number)

    found = [started(scratch, recording.commits[number].torn(source)) for _ in range(TORN_STARTS)]

    assert found == [recording.images[number]] * TORN_STARTS, f"seed {SEED + number}"


@pytest.mark.parametrize("entry", [8, 9, 10])
def test_every_flipped_byte_of_the_last_three_values_is_found(
    recording: Recording, scratch: Path, entry: int
) -> None:
    """S21: the checksum names the record; LMDB itself has none."""
    image = recording.images[-1]
    stored = pack_entry(next(item for item in image.entries if item.index == entry))
    assert stored in recording.file

    for position in range(len(stored)):
        flipped = bytearray(stored)
        flipped[position] ^= 1 << position % 8
        with pytest.raises(JournalDamaged) as damage:
            started(scratch, recording.file.replace(stored, bytes(flipped)))
        assert damage.value.index == entry
