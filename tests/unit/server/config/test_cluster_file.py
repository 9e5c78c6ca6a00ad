"""cluster.json under several nodes that are back at the same moment."""

from __future__ import annotations

import fcntl
import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.server.config import cluster_file
from holdfast.server.config.cluster_file import ClusterFile, NodeEntry, read, replace_pid, write

DEAD = 0
TOGETHER_S = 5.0
"""Waited for only by who reads or writes without the folder to himself."""


def is_locked(folder: Path) -> bool:
    """Whether somebody has the folder to himself, seen as another process would."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def test_no_node_takes_out_another_ones_pid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power cut all nodes start at once; each must be found in the file afterwards."""
    path, names = tmp_path / cluster_file.NAME, ("node-1", "node-2")
    nodes = tuple(NodeEntry(name, "", "", DEAD, "") for name in names)
    write(path, ClusterFile("c", nodes, None))
    both = threading.Barrier(2)

    def let_the_other_come_as_far() -> None:
        if not is_locked(tmp_path):
            with suppress(threading.BrokenBarrierError):
                both.wait(TOGETHER_S)

    def slow_read(path: Path) -> ClusterFile:
        content = read(path)
        let_the_other_come_as_far()
        return content

    def slow_write(path: Path, content: ClusterFile) -> None:
        let_the_other_come_as_far()
        write(path, content)

    monkeypatch.setattr(cluster_file, "read", slow_read)
    monkeypatch.setattr(cluster_file, "write", slow_write)
    threads = [threading.Thread(target=replace_pid, args=(path, name, "c")) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [node.pid for node in read(path).nodes if node.pid == DEAD] == []


@pytest.mark.parametrize("content", [b"\xff\xb1", b"not JSON", b"7", b"[]", b"{}"])
def test_a_file_that_is_no_cluster_file_is_named(tmp_path: Path, content: bytes) -> None:
    """Whatever was given for it: a picture, a certificate, somebody else's JSON."""
    (tmp_path / "given").write_bytes(content)
    with pytest.raises(ValueError, match=r"given is not a cluster\.json of Holdfast"):
        read(tmp_path / "given")
