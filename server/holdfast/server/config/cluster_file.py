"""`cluster.json`: where the nodes of a local cluster are, for programs. Written by rename.

Present exactly while the cluster serves; a node that is brought back replaces its pid in it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME: Final = "cluster.json"
LOCK_S_MAX: Final = 5.0
LOCK_LOOK_S: Final = 0.01


@dataclass(frozen=True, slots=True)
class NodeEntry:
    """One node of the local cluster."""

    name: str
    client_address: str  # host:port
    peer_address: str  # host:port
    pid: int
    directory: str  # absolute path of its data directory
    http_address: str = ""  # host:port; empty: it answers no HTTP


@dataclass(frozen=True, slots=True)
class TlsEntry:
    """Absolute paths of the PEM files that a client on this machine uses."""

    ca: str
    certificate: str
    key: str


@dataclass(frozen=True, slots=True)
class ClusterFile:
    """The content of the file."""

    cluster_id: str
    nodes: tuple[NodeEntry, ...]
    tls: TlsEntry | None


def write(path: Path, content: ClusterFile) -> None:
    """Replace the file in one step, so that nobody reads half of it."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(asdict(content), indent=2) + "\n")
    draft.replace(path)


def read(path: Path) -> ClusterFile:
    """Read the file. Raises OSError, or ValueError with a sentence if it is not one of ours."""
    try:
        raw: dict[str, Any] = json.loads(path.read_text())
        nodes = tuple(NodeEntry(**node) for node in raw["nodes"])
        tls = TlsEntry(**raw["tls"]) if raw["tls"] else None
        return ClusterFile(raw["cluster_id"], nodes, tls)
    except (KeyError, TypeError, ValueError) as error:  # ValueError: no JSON, or no text at all
        raise ValueError(f"{path} is not a cluster.json of Holdfast: {error!r}") from error


def replace_pid(path: Path, name: str, cluster_id: str) -> None:
    """Enter this process's id for a node that came back to a running local cluster.

    Several nodes may come back at once, so each reads and writes under the lock of the directory.
    Blocks while another process has the lock.
    """
    no_local_cluster = contextlib.suppress(OSError, ValueError)  # none runs here
    if not path.exists():
        return
    with no_local_cluster, _alone(path.parent):
        content = read(path)
        if content.cluster_id == cluster_id:
            nodes = (
                replace(node, pid=os.getpid()) if node.name == name else node
                for node in content.nodes
            )
            write(path, replace(content, nodes=tuple(nodes)))


@contextlib.contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Run the body while no other process runs one: the directory itself is locked.

    Raises BlockingIOError if that takes long: a process that may read the directory can lock it.
    """
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _lock(descriptor)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    until = time.monotonic() + LOCK_S_MAX
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise
            time.sleep(LOCK_LOOK_S)
