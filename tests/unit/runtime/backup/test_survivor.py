"""What a survivor's log says of nodes that are lost does not count any more (S25 a, ADR 29)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.raft.membership import ENTRY_KIND, Membership
from holdfast.runtime.backup.recovery_numbers import Wanted
from holdfast.runtime.backup.survivor import Owner, recover
from holdfast.storage.directory.data_directory import DataDirectory
from holdfast.storage.errors import DirectoryRefused
from holdfast.storage.journal.journal import (
    Entry,
    HardState,
    Identity,
    JournalBatch,
    JournalImage,
    NotedMembership,
)
from holdfast.storage.journal.tailed_journal import open_journal

if TYPE_CHECKING:
    from pathlib import Path

NO_OP = Entry(1, 1, b"\x01")
FIVE = Entry(2, 1, ENTRY_KIND + Membership.of(("a", "b", "c", "d", "e")).encode().encode())
WHO = Identity("cluster-1", "a", "disk-1", "member", (("a", "disk-1"),))


def survivor(path: Path, *batches: JournalBatch) -> Path:
    """A member's directory whose log has these entries."""
    with DataDirectory(path, cluster_id="cluster-1", node_id="a", bootstrap=True) as directory:
        journal = open_journal(directory.journal_path)
        journal.load()
        for batch in (JournalBatch(identity=WHO, hard_state=HardState(1)), *batches):
            journal.commit(batch)
        journal.close()
    return path


def held(path: Path, node: str) -> JournalImage:
    with DataDirectory(path, cluster_id="cluster-1", node_id=node) as directory:
        journal = open_journal(directory.journal_path)
        image = journal.load()
        journal.close()
    return image


@pytest.mark.parametrize(
    "batches",
    [
        [JournalBatch(append=(NO_OP, FIVE))],
        [JournalBatch(append=(NO_OP,), membership=NotedMembership(1, "of five"))],
    ],
    ids=["in an entry", "noted beside the log"],
)
def test_s25a_the_files_say_again_which_nodes_go_on(
    tmp_path: Path, batches: list[JournalBatch]
) -> None:
    """Without it the survivor would ask for the votes of three of five, of whom four are lost."""
    path = survivor(tmp_path / "a", *batches)

    kept = recover(path, Owner("cluster-1", "a"), {"b": tmp_path / "b"}, Wanted())

    for where, node in ((path, "a"), (tmp_path / "b", "b")):
        assert held(where, node).membership == NotedMembership(kept.last_index, "")


def test_nothing_is_noted_while_the_files_have_always_said_it(tmp_path: Path) -> None:
    """An older version reads such a journal as before (ADR 26)."""
    path = survivor(tmp_path / "a", JournalBatch(append=(NO_OP,)))

    recover(path, Owner("cluster-1", "a"), {"b": tmp_path / "b"}, Wanted())

    assert held(path, "a").membership is None
    assert held(tmp_path / "b", "b").membership is None


def test_a_recovery_that_was_carried_out_says_so_when_it_is_repeated(tmp_path: Path) -> None:
    """It may have been killed at its very end, and nobody has seen that it had succeeded."""
    path, other = survivor(tmp_path / "a", JournalBatch(append=(NO_OP,))), tmp_path / "b"
    recover(path, Owner("cluster-1", "a"), {"b": other}, Wanted())

    with pytest.raises(DirectoryRefused, match=r"recovery number 1.*it had succeeded"):
        recover(path, Owner("cluster-1", "a"), {"b": other}, Wanted())
    with DataDirectory(tmp_path / "c", cluster_id="cluster-1", node_id="c", bootstrap=True) as c:
        open_journal(c.journal_path).close()
    with pytest.raises(DirectoryRefused, match="it holds data"):
        recover(path, Owner("cluster-1", "a"), {"c": tmp_path / "c"}, Wanted())
