"""`cluster.json`: where the nodes of a local cluster are, for programs. Written by rename.

Present exactly while the cluster serves; a node that is brought back replaces its pid in it, one
that is new enters itself, and one that was removed is taken out.

Commands and nodes of different versions read it and write it again. So its fields are never removed
and keep their meaning; a field that a version does not know is skipped by it, and kept. Version 0.1
refuses unknown fields inside `nodes` and `tls`: what is new stands beside them.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

Entry = TypeVar("Entry", "NodeEntry", "TlsEntry", "ClusterFile")

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
    unknown: Mapping[str, Any] = field(default_factory=dict)  # fields of a newer version


@dataclass(frozen=True, slots=True)
class TlsEntry:
    """Absolute paths of the PEM files that a client on this machine uses."""

    ca: str
    certificate: str
    key: str
    unknown: Mapping[str, Any] = field(default_factory=dict)  # fields of a newer version


@dataclass(frozen=True, slots=True)
class ClusterFile:
    """The content of the file."""

    cluster_id: str
    nodes: tuple[NodeEntry, ...]
    tls: TlsEntry | None
    http_addresses: Mapping[str, str] = field(default_factory=dict)
    """host:port of each node that answers HTTP, by its name."""
    unknown: Mapping[str, Any] = field(default_factory=dict)  # fields of a newer version


def write(path: Path, content: ClusterFile) -> None:
    """Replace the file in one step, so that nobody reads half of it."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(_with_unknown(asdict(content)), indent=2) + "\n")
    draft.replace(path)


def _with_unknown(written: Any) -> Any:  # noqa: ANN401 - any value of JSON
    """Return a value of JSON with each entry's unknown fields where they stood."""
    match written:
        case {"unknown": unknown, **known}:
            return {name: _with_unknown(value) for name, value in known.items()} | unknown
        case list() | tuple():
            return [_with_unknown(value) for value in written]
        case _:
            return written


def read(path: Path) -> ClusterFile:
    """Read the file. Raises OSError, or ValueError with a sentence if it is not one of ours."""
    try:
        raw: dict[str, Any] = json.loads(path.read_text())
        nodes = tuple(_entry(NodeEntry, node) for node in raw["nodes"])
        tls = _entry(TlsEntry, raw["tls"]) if raw["tls"] else None
        return _entry(ClusterFile, {**raw, "nodes": nodes, "tls": tls})
    except (KeyError, TypeError, ValueError) as error:  # ValueError: no JSON, or no text at all
        raise ValueError(f"{path} is not a cluster.json of Holdfast: {error!r}") from error


def _entry(kind: type[Entry], raw: Mapping[str, Any]) -> Entry:
    """Make an entry of its fields; those that it does not have are kept aside."""
    names = {each.name for each in fields(kind)} - {"unknown"}
    known = {name: value for name, value in raw.items() if name in names}
    unknown = {name: value for name, value in raw.items() if name not in names}
    return kind(**known, unknown=unknown)


def enter(path: Path, cluster_id: str, node: NodeEntry, http_address: str = "") -> None:
    """Enter a node that serves now into the file of a running local cluster.

    Of one that came back its process id is replaced; one that is new there is added. Several may
    come at once, so each reads and writes under the lock of the directory. Blocks while another
    process has the lock.
    """
    no_local_cluster = contextlib.suppress(OSError, ValueError)  # none runs here
    if not path.exists():
        return
    with no_local_cluster, _alone(path.parent):
        content = read(path)
        if content.cluster_id == cluster_id:
            write(path, _with(content, node, http_address))


def _with(content: ClusterFile, new: NodeEntry, http_address: str) -> ClusterFile:
    if any(node.name == new.name for node in content.nodes):
        nodes = (replace(n, pid=new.pid) if n.name == new.name else n for n in content.nodes)
        return replace(content, nodes=tuple(nodes))
    http = {new.name: http_address} if http_address else {}
    return replace(
        content,
        nodes=(*content.nodes, new),
        http_addresses={**content.http_addresses, **http},
    )


def leave_out(path: Path, names: Collection[str]) -> None:
    """Take removed nodes out of the file, as `enter` enters them."""
    no_local_cluster = contextlib.suppress(OSError, ValueError)
    with no_local_cluster, _alone(path.parent):
        content = read(path)
        nodes = tuple(node for node in content.nodes if node.name not in names)
        http = {n: at for n, at in content.http_addresses.items() if n not in names}
        if nodes != content.nodes:
            write(path, replace(content, nodes=nodes, http_addresses=http))


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
