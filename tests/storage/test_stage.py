"""Whether a stopped node's directory holds what the node acknowledged; asking changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.storage.directory.data_directory import DataDirectory
from holdfast.storage.directory.stage import lacks_data
from holdfast.storage.journal.journal import Identity, JournalBatch
from holdfast.storage.journal.lmdb_journal import LmdbJournal
from holdfast.storage.journal.tailed_journal import open_journal


def laid_out(path: Path, stage: str = "", *, tailed: bool = False) -> Path:
    with DataDirectory(path, cluster_id="c", node_id="node-1", bootstrap=True) as directory:
        if stage:
            journal = (open_journal if tailed else LmdbJournal)(directory.journal_path)
            journal.load()
            journal.commit(JournalBatch(identity=Identity("c", "node-1", "1", stage)))
            journal.close()
    return path


def content(path: Path) -> dict[str, bytes]:
    return {str(each): each.read_bytes() for each in path.rglob("*") if each.is_file()}


@pytest.mark.parametrize("tailed", [False, True])
@pytest.mark.parametrize(
    ("stage", "lacks"), [("member", False), ("forming", False), ("rebuilding", True), ("", True)]
)
def test_only_a_voters_disk_has_the_data(
    tmp_path: Path, stage: str, *, lacks: bool, tailed: bool
) -> None:
    """S19: a disk that rebuilds, or that nobody was given yet, has nothing for the others.

    The stage may be in the journal's tail alone, or in the environment as 0.1.0 left it.
    """
    path = laid_out(tmp_path / "data", stage, tailed=tailed)
    before = content(path)

    assert lacks_data([path]) == ({path} if lacks else set())
    assert content(path) == before


def test_what_is_not_there_lacks_its_data(tmp_path: Path) -> None:
    """S19: absent, empty, damage that was moved aside, a layout that was cut off."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "aside" / "raft.damaged-1").mkdir(parents=True)
    (tmp_path / "cut" / "raft.new").mkdir(parents=True)
    (tmp_path / "cut" / "unfinished").touch()
    paths = [tmp_path / name for name in ("absent", "empty", "aside", "cut")]
    kept = laid_out(tmp_path / "kept", "member")

    assert lacks_data([*paths, kept]) == set(paths)


def test_what_cannot_be_judged_is_left_to_its_node(tmp_path: Path) -> None:
    """S21: damage, or a directory in use, kills nobody who asks, and is not called lost."""
    short = laid_out(tmp_path / "short", "member")
    file = short / "raft" / "data.mdb"
    file.write_bytes(file.read_bytes()[: 3 * 4096])
    strange = tmp_path / "strange"
    strange.mkdir()
    (strange / "thesis.tex").write_text("years of work")
    used = laid_out(tmp_path / "used", "rebuilding")
    with DataDirectory(used, cluster_id="c", node_id="node-1"):
        assert lacks_data([short, strange, used]) == set()
