"""A node's directory is opened in a thread, and what that finds is told where it is waited for."""

from __future__ import annotations

import socket
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import pytest

from harness.poll import WITHIN_S
from holdfast.coordinator.model.access import DENY, OPEN
from holdfast.server.config.node_config import CannotStart, NodeConfig, load
from holdfast.server.process.opening import begin_to_open
from holdfast.storage.errors import DirectoryRefused, Refusal
from holdfast.storage.journal.journal import Identity, JournalBatch
from holdfast.storage.journal.lmdb_journal import LmdbJournal

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.raft.api import Stage


def configured(folder: Path, port: int = 1) -> NodeConfig:
    """A cluster of one node in a folder."""
    file = folder / "node.toml"
    file.write_text(
        f"""
        [node]
        name = "a"
        data_dir = "data"
        client_address = "127.0.0.1:{port}"
        peer_address = "127.0.0.1:2"
        [cluster]
        id = "c"
        peers.a.client_address = "127.0.0.1:{port}"
        peers.a.peer_address = "127.0.0.1:2"
        [tls]
        insecure_loopback = true
        """
    )
    return load(file, {}, ())


def test_s19_a_new_directory_is_opened_and_locked(tmp_path: Path) -> None:
    config = configured(tmp_path)
    with begin_to_open(config, bootstrap=True).result(WITHIN_S) as directory:
        assert directory.bootstrapping
        second = begin_to_open(config).exception(WITHIN_S)

    assert isinstance(second, DirectoryRefused)
    assert second.refusal is Refusal.IN_USE


def test_s19_a_refusal_is_raised_where_the_directory_is_waited_for(tmp_path: Path) -> None:
    """Not in the thread: there it would be a traceback, and the node would wait for ever."""
    with pytest.raises(DirectoryRefused) as refused:
        begin_to_open(configured(tmp_path)).result(WITHIN_S)

    assert refused.value.refusal is Refusal.EMPTY


def test_s19_a_directory_is_not_touched_while_the_clients_port_is_in_use(tmp_path: Path) -> None:
    """Mostly by this very node: a second start of it says so at once."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(CannotStart, match="port is in use"):
            begin_to_open(configured(tmp_path, taken.getsockname()[1]), bootstrap=True)

    assert not (tmp_path / "data").exists()


def test_a_new_cluster_in_which_nobody_could_grant_anything_is_not_begun(tmp_path: Path) -> None:
    """Nothing is made."""
    lone = locking_out(tmp_path)
    with pytest.raises(CannotStart, match=r"access\.administrators"):
        begin_to_open(lone, bootstrap=True)
    assert not lone.data_dir.exists()


@pytest.mark.parametrize("left", [(), ("lock",), ("lock", "audit/"), ("lock", "unfinished")])
def test_what_a_start_that_failed_has_left_makes_no_cluster_old(
    tmp_path: Path, left: tuple[str, ...]
) -> None:
    """A package or a mount makes the directory, and each start its lock, before anything else."""
    lone = locking_out(tmp_path)
    lone.data_dir.mkdir()
    for name in left:
        (lone.data_dir / name).mkdir() if name.endswith("/") else (lone.data_dir / name).touch()

    with pytest.raises(CannotStart, match=r"access\.administrators"):
        begin_to_open(lone, bootstrap=True)
    assert {path.name for path in lone.data_dir.iterdir()} == {n.rstrip("/") for n in left}


@pytest.mark.parametrize("stage", ["", "forming"])
@pytest.mark.parametrize("bootstrap", [True, False])
def test_a_cluster_that_was_begun_and_is_not_formed_is_not_created_for_nobody(
    tmp_path: Path, stage: Stage, *, bootstrap: bool
) -> None:
    """Its first record would be made of the file of now, not of the one of the first start."""
    lone = locking_out(tmp_path)
    begun(lone, stage)
    opening = begin_to_open(lone, bootstrap=bootstrap)

    if not (stage or bootstrap):  # nothing may begin: what is blank waits for its peers
        opening.result(WITHIN_S).close()
        return
    assert isinstance(error := opening.exception(WITHIN_S), CannotStart)
    assert "access.administrators" in str(error)
    with begin_to_open(replace(lone, access_mode=OPEN), bootstrap=bootstrap).result(WITHIN_S):
        pass


def test_a_node_of_a_cluster_that_is_formed_starts_whatever_its_file_says(tmp_path: Path) -> None:
    """The list counts at the bootstrap only, so it may go from the file, and the flag may stay."""
    lone = locking_out(tmp_path)
    begun(lone, "member")
    with begin_to_open(lone, bootstrap=True).result(WITHIN_S) as directory:
        assert directory.path == lone.data_dir


def test_s19_an_empty_directory_with_both_options_is_neither_begun_nor_rebuilt(
    tmp_path: Path,
) -> None:
    """One of them was left in a unit: which one is meant, nobody here knows."""
    config = configured(tmp_path)
    with pytest.raises(CannotStart, match="--bootstrap and --rebuild contradict each other"):
        begin_to_open(config, bootstrap=True, rebuild=True)
    assert not config.data_dir.exists()

    begun(config, "member")
    with begin_to_open(config, bootstrap=True, rebuild=True).result(WITHIN_S) as directory:
        assert not directory.bootstrapping, "where there is data, both may stay in the unit"


def locking_out(folder: Path) -> NodeConfig:
    """A node that would create a cluster in which nobody may do anything."""
    return replace(configured(folder), administrators=(), access_mode=DENY)


def begun(config: NodeConfig, stage: Stage | Literal[""]) -> None:
    """Lay the directory out, and let its journal say how far the node has come; "": nowhere."""
    with begin_to_open(replace(config, access_mode=OPEN), bootstrap=True).result(WITHIN_S) as made:
        if stage:
            journal = LmdbJournal(made.journal_path)
            journal.load()
            journal.commit(JournalBatch(identity=Identity("c", "a", "disk-1", stage)))
            journal.close()


def test_s19_a_file_in_the_directorys_place_is_told_by_the_opening(tmp_path: Path) -> None:
    """Whether the cluster would be new is asked of a directory alone."""
    lone = replace(configured(tmp_path), administrators=(), access_mode=DENY)
    lone.data_dir.write_text("somebody's")

    assert begin_to_open(lone, bootstrap=True).exception(WITHIN_S) is not None
    assert lone.data_dir.read_text() == "somebody's"
