"""A data directory is used by one process, by the node it belongs to, and is never silently new."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from shutil import rmtree

import pytest

from holdfast.storage.directory.data_directory import DataDirectory
from holdfast.storage.disk.records import pack_named
from holdfast.storage.errors import DirectoryRefused, Refusal
from holdfast.storage.journal.journal import Identity, JournalBatch
from holdfast.storage.journal.lmdb_image import SCHEMA
from holdfast.storage.journal.lmdb_journal import LmdbJournal
from holdfast.storage.state.state_store import StateStore
from storage.journal_suite import entries
from storage.stores import events, meta, snapshot_changes


def opened(
    path: Path,
    *,
    bootstrap: bool = False,
    rebuild: bool = False,
    disk_reserve_bytes: int | None = None,
) -> DataDirectory:
    return DataDirectory(
        path,
        cluster_id="cluster-1",
        node_id="node-1",
        bootstrap=bootstrap,
        rebuild=rebuild,
        disk_reserve_bytes=disk_reserve_bytes,
    )


@pytest.fixture
def used(tmp_path: Path) -> Path:
    """The directory of node-1 after some work."""
    path = tmp_path / "data"
    with opened(path, bootstrap=True) as directory:
        journal = LmdbJournal(directory.journal_path)
        journal.load()
        who = Identity("cluster-1", "node-1", "disk-1", "member")
        journal.commit(JournalBatch(append=entries(1, 3), identity=who))
        journal.close()
        store = StateStore(directory.state_path)
        store.write_snapshot(snapshot_changes(2), events(2), meta(2))
        store.close()
    return path


def damage(path: Path) -> None:
    file = path / "raft" / "data.mdb"
    file.write_bytes(file.read_bytes().replace(b"payload 2", b"payload !"))


def refusal(path: Path, **who: str) -> DirectoryRefused:
    ids = {"cluster_id": "cluster-1", "node_id": "node-1", **who}
    with pytest.raises(DirectoryRefused) as refused:
        DataDirectory(path, cluster_id=ids["cluster_id"], node_id=ids["node_id"])
    return refused.value


def test_a_bootstrapped_directory_is_blank_and_then_only_started(tmp_path: Path) -> None:
    with opened(tmp_path / "data", bootstrap=True) as directory:
        assert directory.verdict.sound
        assert directory.bootstrapping
    with opened(tmp_path / "data") as directory:
        assert directory.verdict.sound
        assert not directory.bootstrapping


@pytest.mark.parametrize("exists", [True, False])
def test_empty_is_not_new(tmp_path: Path, *, exists: bool) -> None:
    """S19: without a word from the operator an empty directory is refused and stays empty."""
    if exists:
        (tmp_path / "data").mkdir()

    refused = refusal(tmp_path / "data")

    assert refused.refusal is Refusal.EMPTY
    assert "right disk is mounted" in str(refused)
    assert [p.name for p in (tmp_path / "data").iterdir()] == ["lock"]


def test_a_flag_left_in_a_unit_file_does_nothing_to_a_used_directory(used: Path) -> None:
    """S19: with data there is nothing to bootstrap."""
    with opened(used, bootstrap=True) as directory:
        assert directory.verdict.sound
        assert not directory.bootstrapping


def test_a_replaced_disk_is_laid_out_but_forms_nothing(tmp_path: Path) -> None:
    """S19: the operator says that the peers have the data."""
    with opened(tmp_path / "data", rebuild=True) as directory:
        assert not directory.bootstrapping


@pytest.mark.parametrize("gone", ["both", "segments"])
def test_a_directory_with_a_past_is_not_new_whatever_the_flag_says(used: Path, gone: str) -> None:
    """S19: sealed history, or damage moved aside, means that this cluster exists."""
    if gone == "segments":
        (used / "segments" / "part-1").mkdir()
    else:
        (used / "raft").rename(used / "raft.damaged-1")
    for name in ("raft", "state"):
        if (used / name).exists():
            (used / name).rename(used.parent / name)

    with opened(used, bootstrap=True) as directory:
        assert not directory.verdict.sound
        directory.set_aside()
        assert directory.verdict.sound
        assert not directory.bootstrapping


@pytest.mark.parametrize(
    ("who", "expected", "name"),
    [
        ({"cluster_id": "cluster-2"}, Refusal.FOREIGN_CLUSTER, "cluster-1"),
        ({"node_id": "node-2"}, Refusal.FOREIGN_NODE, "node-1"),
    ],
)
def test_anothers_directory_is_refused_even_if_its_state_is_damaged(
    used: Path, who: dict[str, str], expected: Refusal, name: str
) -> None:
    """Rebuilding over another node's disk would destroy it."""
    assert refusal(used, **who).refusal is expected
    (used / "state" / "data.mdb").write_bytes(b"")

    refused = refusal(used, **who)

    assert refused.refusal is expected
    assert name in str(refused)


def test_a_home_directory_is_not_an_empty_data_directory(tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("dear")

    with pytest.raises(DirectoryRefused) as refused:
        opened(tmp_path, bootstrap=True)

    assert refused.value.refusal is Refusal.NOT_OURS
    assert "letters.txt" in str(refused.value)


HOLDER = """
import sys
from pathlib import Path
from holdfast.storage.directory.data_directory import DataDirectory
with DataDirectory(Path(sys.argv[1]), cluster_id="cluster-1", node_id="node-1"):
    print("open", flush=True)
    sys.stdin.read()
"""


def test_two_processes_cannot_share_a_directory(used: Path) -> None:
    """The second is refused and told whom it met; it works once the first is dead."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(used)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        refused = refusal(used)
        holder.kill()

    assert refused.refusal is Refusal.IN_USE
    assert str(holder.pid) in str(refused)
    with opened(used) as directory:
        assert directory.verdict.sound


def test_damage_is_reported_moved_aside_and_kept(used: Path) -> None:
    """S19, S21: the caller decides; nothing is deleted, and each time gets a number of its own."""
    damage(used)
    with opened(used) as directory:
        assert not directory.verdict.sound
        assert "entry 2" in directory.verdict.reason
        directory.set_aside()
        assert directory.verdict.blank
        assert b"payload !" in (used / "raft.damaged-1" / "data.mdb").read_bytes()
        assert (used / "state.damaged-1" / "data.mdb").exists()
        directory.set_aside()
        assert (used / "raft.damaged-2").exists()


@pytest.mark.parametrize("missing", ["raft", "state"])
def test_a_missing_environment_is_damage(used: Path, missing: str) -> None:
    """S19: a journal without its state, or the other way round, cannot be trusted."""
    (used / missing).rename(used.parent / "gone")

    with opened(used) as directory:
        assert not directory.verdict.sound
        directory.set_aside()
        assert directory.verdict.sound


def test_a_crash_while_laying_out_is_as_if_it_had_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S19: half a new directory is neither damage nor data: bootstrapping starts over."""

    class Crash(BaseException):
        pass

    def crash(_path: Path) -> None:
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(StateStore, "create", crash)
        with pytest.raises(Crash):
            opened(tmp_path / "data", bootstrap=True)
    assert (tmp_path / "data" / "raft").exists()

    assert refusal(tmp_path / "data").refusal is Refusal.EMPTY
    with opened(tmp_path / "data", bootstrap=True) as directory:
        assert directory.bootstrapping


def test_leftovers_of_a_crash_are_removed(used: Path) -> None:
    for name in ("raft.new", "state.new", "state.incoming", "state.copy"):
        (used / name).mkdir()
        (used / name / "data.mdb").write_bytes(b"half")

    with opened(used) as directory:
        assert directory.verdict.sound

    assert sorted(p.name for p in used.iterdir()) == ["lock", "raft", "segments", "state"]


def test_a_newer_versions_directory_is_refused_and_not_moved(used: Path) -> None:
    journal = LmdbJournal(used / "raft")
    with journal._environment.begin(write=True) as txn:
        txn.put(SCHEMA, pack_named(SCHEMA, 99), db=journal._databases["named"])
    journal.close()

    assert refusal(used).refusal is Refusal.NEWER_SCHEMA


MIB = 1 << 20


@pytest.fixture
def small_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system of 24 MiB, 20 of them free: less than any reserve that is not configured."""
    blocks = (1 << 20, 1 << 20, 24, 20, 20, 0, 0, 0, 0, 255)
    monkeypatch.setattr(os, "statvfs", lambda _path: os.statvfs_result(blocks))


@pytest.mark.usefixtures("small_disk")
@pytest.mark.parametrize(
    ("reserve", "words"),
    [
        (None, "268435456 bytes (node.disk_reserve_bytes is unset"),
        (30_000_000, "30000000 bytes (node.disk_reserve_bytes)"),
    ],
)
def test_no_directory_is_laid_out_below_the_reserve(
    tmp_path: Path, reserve: int | None, words: str
) -> None:
    """S20: the sentence says how much is left, the reserve in force, and who sets it."""
    with pytest.raises(DirectoryRefused) as refused:
        opened(tmp_path / "data", bootstrap=True, disk_reserve_bytes=reserve)

    assert refused.value.refusal is Refusal.NO_SPACE
    assert "20971520 bytes" in str(refused.value)
    assert words in str(refused.value)


@pytest.mark.usefixtures("small_disk")
def test_a_small_disk_is_laid_out_if_the_configured_reserve_is_there(tmp_path: Path) -> None:
    """S20: the configured reserve counts from the first moment, also when damage is set aside."""
    with opened(tmp_path / "data", bootstrap=True, disk_reserve_bytes=1_000_000) as directory:
        assert directory.verdict.sound
    rmtree(tmp_path / "data" / "raft")
    with opened(tmp_path / "data", disk_reserve_bytes=1_000_000) as directory:
        directory.set_aside()
        assert directory.verdict.sound


@pytest.mark.usefixtures("small_disk")
@pytest.mark.parametrize(("reserve", "refused"), [(4 * MIB, False), (4 * MIB + 1, True)])
def test_s20_the_files_of_the_journals_tail_are_not_taken_from_the_reserve(
    tmp_path: Path, reserve: int, *, refused: bool
) -> None:
    """Of 20 MiB, the two files take 16 at the first start: what is left must be the reserve."""
    if not refused:
        opened(tmp_path / "data", bootstrap=True, disk_reserve_bytes=reserve).close()
        return
    with pytest.raises(DirectoryRefused) as error:
        opened(tmp_path / "data", bootstrap=True, disk_reserve_bytes=reserve)

    assert error.value.refusal is Refusal.NO_SPACE
    assert "and the 16777216 bytes that files of the journal take at once" in str(error.value)


def test_a_path_that_is_a_file_is_refused_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")

    assert refusal(tmp_path / "data").refusal is Refusal.UNUSABLE
