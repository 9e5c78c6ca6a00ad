"""cluster.json under several nodes that are back at the same moment."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.server import cluster_file
from holdfast.server.cluster_file import ClusterFile, NodeEntry, read, replace_pid

DEAD = 0
TOGETHER_S = 0.5


def test_no_node_takes_out_another_ones_pid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power cut all nodes start at once; each must be found in the file afterwards."""
    path, names = tmp_path / cluster_file.NAME, ("node-1", "node-2")
    nodes = tuple(NodeEntry(name, "", "", DEAD, "") for name in names)
    cluster_file.write(path, ClusterFile("c", nodes, None))
    both_have_read = threading.Barrier(2)

    def read_and_wait_for_the_other(path: Path) -> ClusterFile:
        content = read(path)
        with suppress(threading.BrokenBarrierError):
            both_have_read.wait(TOGETHER_S)
        return content

    monkeypatch.setattr(cluster_file, "read", read_and_wait_for_the_other)
    threads = [threading.Thread(target=replace_pid, args=(path, name, "c")) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [node.pid for node in read(path).nodes if node.pid == DEAD] == []
