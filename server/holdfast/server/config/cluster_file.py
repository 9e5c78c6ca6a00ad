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
    """One node; addresses as `host:port`, `directory` absolute."""

    name: str
    client_address: str
    peer_address: str
    pid: int
    directory: str


@dataclass(frozen=True, slots=True)
class TlsEntry:
    """Absolute paths of what a client of this machine shows; PEM."""

    ca: str
    certificate: str
    key: str


@dataclass(frozen=True, slots=True)
class ClusterFile:
    """The whole file."""

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
    """A node of a running local cluster is back: put this process's id in its place.

    Several may be back at once, so one node's reading and writing are never between another's.
    Blocks while another one's last.
    """
    no_local_cluster = contextlib.suppress(OSError, ValueError)  # none runs here: nothing to do
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
    """Wait until no other process is in such a block; the folder itself is what is locked.

    Raises BlockingIOError if that takes long: whoever may read the folder may hold its lock.
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
