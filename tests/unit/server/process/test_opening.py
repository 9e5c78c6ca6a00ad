"""A node's directory is opened in a thread, and what that finds is told where it is waited for."""

from __future__ import annotations

import socket
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from harness.poll import WITHIN_S
from holdfast.coordinator.model.access import DENY, OPEN
from holdfast.server.config.node_config import CannotStart, NodeConfig, load
from holdfast.server.process.opening import begin_to_open
from holdfast.storage.errors import DirectoryRefused, Refusal

if TYPE_CHECKING:
    from pathlib import Path


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
    """Nothing is made; a directory that has begun starts whatever its file says."""
    lone = replace(configured(tmp_path), administrators=(), access_mode=DENY)
    with pytest.raises(CannotStart, match=r"access\.administrators"):
        begin_to_open(lone, bootstrap=True)
    assert not lone.data_dir.exists()

    with begin_to_open(replace(lone, access_mode=OPEN), bootstrap=True).result(WITHIN_S):
        pass
    with begin_to_open(lone, bootstrap=True).result(WITHIN_S) as directory:
        assert directory.path == lone.data_dir


def test_s19_a_file_in_the_directorys_place_is_told_by_the_opening(tmp_path: Path) -> None:
    """Whether the cluster would be new is asked of a directory alone."""
    lone = replace(configured(tmp_path), administrators=(), access_mode=DENY)
    lone.data_dir.write_text("somebody's")

    assert begin_to_open(lone, bootstrap=True).exception(WITHIN_S) is not None
    assert lone.data_dir.read_text() == "somebody's"
