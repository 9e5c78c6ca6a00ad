"""A stopped node's log is read from its disk, and the disk stays as it was."""

from __future__ import annotations

from pathlib import Path

from holdfast.runtime.event_log.offline import unsealed
from holdfast.storage.journal.journal import Identity, JournalBatch
from holdfast.storage.journal.tailed_journal import open_journal
from unit.runtime.old_directory import make_old_directory, name_node


def data_files(directory: Path) -> dict[str, bytes]:
    return {path.parent.name: path.read_bytes() for path in directory.rglob("data.mdb")}


def test_s18_reading_an_older_versions_directory_changes_nothing(tmp_path: Path) -> None:
    """It lacks a database that this version makes; who only reads does not make it."""
    make_old_directory(tmp_path)
    name_node(tmp_path)
    before = data_files(tmp_path)

    found = unsealed(tmp_path)

    assert (found.cluster_id, found.node_id) == ("c", "n1")
    assert sorted(before) == ["raft", "state"]
    assert data_files(tmp_path) == before


def test_s18_what_only_the_journals_tail_has_is_read_without_a_change(tmp_path: Path) -> None:
    """A node that was killed has its newest batches there, and its next start moves them."""
    make_old_directory(tmp_path)
    (tmp_path / "lock").touch()
    journal = open_journal(tmp_path / "raft")
    journal.load()
    journal.commit(JournalBatch(identity=Identity("c", "n2", "i", "member")))
    journal.close()
    before = {path.name: path.read_bytes() for path in (tmp_path / "raft").iterdir()}

    found = unsealed(tmp_path)

    after = {path.name: path.read_bytes() for path in (tmp_path / "raft").iterdir()}
    assert (found.cluster_id, found.node_id) == ("c", "n2")
    assert {name for name in before if name.startswith("tail-")}
    assert {n: c for n, c in after.items() if n != "lock.mdb"} == {
        n: c for n, c in before.items() if n != "lock.mdb"
    }
