"""A stopped node's log is read from its disk, and the disk stays as it was."""

from __future__ import annotations

from pathlib import Path

from holdfast.runtime.event_log.offline import unsealed
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
