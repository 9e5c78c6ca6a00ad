"""cluster.json under several nodes that are back at the same moment."""

from __future__ import annotations

import fcntl
import json
import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.server.config import cluster_file
from holdfast.server.config.cluster_file import (
    ClusterFile,
    NodeEntry,
    TlsEntry,
    enter,
    leave_out,
    read,
    write,
)

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
    back = [NodeEntry(name, "", "", os.getpid(), "") for name in names]
    threads = [threading.Thread(target=enter, args=(path, "c", node)) for node in back]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [node.pid for node in read(path).nodes if node.pid == DEAD] == []


def test_what_a_newer_version_wrote_is_skipped_and_kept(tmp_path: Path) -> None:
    """An older command works, and an older node that comes back takes nothing out of the file."""
    path = tmp_path / cluster_file.NAME
    tls = {"ca": "a", "certificate": "b", "key": "c", "crl": "d"}
    node = {"name": "n", "client_address": "x:1", "peer_address": "x:2", "pid": DEAD}
    node |= {"directory": "/n", "rack": "r1"}
    written = {"cluster_id": "c", "nodes": [node], "tls": tls, "regions": [{"unknown": 1}]}
    path.write_text(json.dumps(written))

    assert [each.client_address for each in read(path).nodes] == ["x:1"]
    enter(path, "c", NodeEntry("n", "x:1", "x:2", os.getpid(), "/n"))
    back = {**written, "nodes": [{**node, "pid": os.getpid()}], "http_addresses": {}}
    assert json.loads(path.read_text()) == back


def test_a_new_node_enters_itself_and_a_removed_one_is_taken_out(tmp_path: Path) -> None:
    """S25: commands that read the file must find who is there, and ask nobody who is not."""
    path = tmp_path / cluster_file.NAME
    first, new = (NodeEntry(f"node-{n}", f"x:{n}", f"y:{n}", n, f"/{n}") for n in (1, 4))
    write(path, ClusterFile("c", (first,), None, {"node-1": "z:1"}))

    enter(path, "another", new, "z:4")
    assert read(path).nodes == (first,)
    enter(path, "c", new, "z:4")
    assert read(path).nodes == (first, new)
    leave_out(path, {"node-1"})
    assert read(path).nodes == (new,)
    assert read(path).http_addresses == {"node-4": "z:4"}


def test_where_no_local_cluster_runs_nothing_is_entered(tmp_path: Path) -> None:
    enter(tmp_path / cluster_file.NAME, "c", NodeEntry("n", "x:1", "x:2", 1, "/n"))
    leave_out(tmp_path / cluster_file.NAME, {"n"})

    assert [*tmp_path.iterdir()] == []


def test_the_first_version_can_read_what_this_one_writes(tmp_path: Path) -> None:
    """It knows these fields of a node and of the files for TLS, and refuses a file with others."""
    node, tls = NodeEntry("n", "x:1", "x:2", DEAD, "/n"), TlsEntry("a", "b", "c")
    path = tmp_path / cluster_file.NAME
    write(path, ClusterFile("c", (node,), tls, {"n": "x:3"}))
    written = json.loads(path.read_text())

    names = ["name", "client_address", "peer_address", "pid", "directory"]
    assert [[*each] for each in written["nodes"]] == [names]
    assert [*written["tls"]] == ["ca", "certificate", "key"]
    assert written["http_addresses"] == {"n": "x:3"}


@pytest.mark.parametrize("content", [b"\xff\xb1", b"not JSON", b"7", b"[]", b"{}"])
def test_a_file_that_is_no_cluster_file_is_named(tmp_path: Path, content: bytes) -> None:
    """Whatever was given for it: a picture, a certificate, somebody else's JSON."""
    (tmp_path / "given").write_bytes(content)
    with pytest.raises(ValueError, match=r"given is not a cluster\.json of Holdfast"):
        read(tmp_path / "given")
