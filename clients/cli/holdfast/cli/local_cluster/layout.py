"""How `holdfast cluster start` lays out a local cluster: a directory a node, ports, certificates.

DIR/authority/           the authority's certificate and key; not needed to run
DIR/client/              certificate for commands and programs of this machine
DIR/<name>/node.toml     the node's configuration;  DIR/<name>/data its data
DIR/cluster.json         where the nodes are, while they serve (`cluster_file`)
DIR/nodes.json           which nodes there were when the cluster last served (`standing`)
DIR/formed               exists from when all nodes of the new cluster have served
DIR/cluster.lock         locked by the command that runs the cluster, or lays it out
DIR/unfinished           exists while the first three are made

A layout is complete or void: one that was interrupted still has the last mark, and is made again,
since no node ever started from it. Version 0.1.0 made no such mark; its layout is complete if the
cluster was formed, or if every node that a configuration names has a configuration.
"""

from __future__ import annotations

import json
import socket
import uuid
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.raft.transport.peer_names import node_uri
from holdfast.server.config.address import Address, is_taken
from holdfast.server.config.keys import BY_NAME
from holdfast.server.config.node_config import ANONYMOUS, ConfigError, load
from holdfast.server.security import certificates
from holdfast.storage.disk.files import sync_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from holdfast.server.config.node_config import NodeConfig

HOST: Final = "127.0.0.1"
CONFIG_NAME: Final = "node.toml"
CLIENT_FOLDER: Final = "client"
CLIENT_URI: Final = "holdfast://client/local"
"""The principal of this machine's commands and programs, the administrator of the cluster."""
AUTHORITY_FOLDER: Final = "authority"
FORMED_NAME: Final = "formed"
LOCK_NAME: Final = "cluster.lock"
UNFINISHED_NAME: Final = "unfinished"
_LAID_OUT: Final = {CONFIG_NAME, "ca.pem", "certificate.pem", "key.pem"}
"""The files that a layout writes into its folders; it never removes other files."""


class Placed(NamedTuple):
    """One node of the layout."""

    name: str
    client_address: Address
    peer_address: Address
    http_address: Address


@dataclass(frozen=True, slots=True)
class Plan:
    """A cluster that is not laid out yet: its nodes, and their configurations by name."""

    cluster_id: str
    placed: tuple[Placed, ...]
    configurations: Mapping[str, str]
    insecure: bool


def existing(directory: Path) -> list[Path]:
    """List the configurations of a cluster that was laid out here before, by name."""
    return sorted(directory.glob(f"*/{CONFIG_NAME}"))


def is_new(directory: Path) -> bool:
    """Return whether a cluster has to be laid out here; False if there is one.

    Raises ConfigError if the directory is foreign, or if an interrupted layout cannot be made again
    without a loss. Changes nothing.
    """
    present = {path.name for path in directory.iterdir()} if directory.exists() else set()
    if not present - {LOCK_NAME}:
        return True
    files, cut_off = existing(directory), UNFINISHED_NAME in present
    if files and not cut_off and (FORMED_NAME in present or not _absent(files)):
        return False
    if not files and not cut_off:
        raise ConfigError(
            f"{directory} is neither empty nor a cluster made by `holdfast cluster start`; give "
            "another --dir"
        )
    kept = sorted(_not_laid_out(directory))
    if not cut_off or kept:
        raise ConfigError(_half(directory, _absent(files), kept))
    return True


def _absent(files: Iterable[Path]) -> list[str]:
    """Return the nodes that a configuration names and that have none, by name."""
    configs = [load(file, {}, ()) for file in files]
    named = {peer.name for config in configs for peer in config.peers}
    return sorted(named - {config.name for config in configs})


def _not_laid_out(directory: Path) -> Iterator[Path]:
    """Yield the paths that are not files of a layout."""
    for path in directory.iterdir():
        if not path.is_dir():
            if path.name not in {LOCK_NAME, UNFINISHED_NAME}:
                yield path
        else:
            yield from (each for each in path.iterdir() if each.name not in _LAID_OUT)


def _half(directory: Path, absent: Sequence[str], kept: Sequence[Path]) -> str:
    lacks = f"{', '.join(absent)} has no {CONFIG_NAME}" if absent else "it was cut off"
    beside = f", and {kept[0]} was not made by it" if kept else ""
    return (
        f"the cluster in {directory} was not laid out to its end ({lacks}{beside}). If nothing in "
        f"it is needed, remove {directory}, or give another --dir; else put back what is missing"
    )


def plan(nodes: int, port_base: int | None, overrides: Sequence[str], *, insecure: bool) -> Plan:
    """Choose a new cluster's id, ports and configurations; writes nothing.

    Raises ConfigError if a port is in use, or an override is no key=value.
    """
    placed = tuple(_placed(nodes, port_base))
    _refuse_taken(placed)
    cluster_id = f"local-{uuid.uuid4().hex[:12]}"
    texts = {n.name: _toml(cluster_id, n, placed, overrides, insecure=insecure) for n in placed}
    return Plan(cluster_id, placed, texts, insecure)


def lay_out(directory: Path, made: Plan) -> list[Path]:
    """Write a new cluster's files, all or none, if `is_new` and the caller holds the lock.

    Returns the configurations. Raises ConfigError if a node could not start with its own.
    """
    directory.mkdir(parents=True, exist_ok=True)
    mark = directory / UNFINISHED_NAME
    mark.touch()
    sync_path(directory)
    _clear(directory)
    if not made.insecure:
        _issue(directory, made.cluster_id, made.placed)
    for name, text in made.configurations.items():
        (directory / name).mkdir(exist_ok=True)
        (directory / name / CONFIG_NAME).write_text(text)
        load(directory / name / CONFIG_NAME, {}, ())
    _sync_tree(directory)
    mark.unlink()
    sync_path(directory)
    return existing(directory)


def _clear(directory: Path) -> None:
    """Remove what an interrupted layout has written, and nothing else."""
    for folder in [path for path in directory.iterdir() if path.is_dir()]:
        for name in _LAID_OUT:
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()


def _sync_tree(directory: Path) -> None:
    """Sync a tree, so that after a power cut the mark is gone only if all files are there."""
    for folder in [path for path in directory.iterdir() if path.is_dir()]:
        for file in folder.iterdir():
            sync_path(file)
        sync_path(folder)
    sync_path(directory)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of a start about the cluster; None: not given."""

    nodes: int | None
    port_base: int | None
    overrides: Sequence[str]
    insecure: bool


def differing(files: Sequence[Path], wanted: Wanted) -> list[str]:
    """Return the options that differ from the cluster that is laid out.

    Raises ConfigError if a file cannot be used.
    """
    configs = {file: load(file, {}, ()) for file in files}
    here = {(c.name, c.client_address, c.peer_address) for c in configs.values()}
    differs = []
    if wanted.nodes not in {None, len(files)}:
        differs.append("--nodes")
    if wanted.port_base is not None:  # a layout of 0.1 has no ports for HTTP
        asked = {node[:3] for node in _placed(len(files), wanted.port_base)}
        differs += ["--port-base"] if here != asked else []
    if wanted.insecure and any(config.tls for config in configs.values()):
        differs.append("--insecure-loopback")
    return differs + [f"--set {text}" for text in wanted.overrides if not _in_force(text, configs)]


def _in_force(override: str, configs: Mapping[Path, NodeConfig]) -> bool:
    """Return whether an override changes no node's configuration; an invalid one differs."""
    with suppress(ConfigError):
        return all(load(file, {}, (override,)) == config for file, config in configs.items())
    return False


def _placed(nodes: int, port_base: int | None) -> list[Placed]:
    ports = free_ports(3 * nodes) if port_base is None else range(port_base, port_base + 3 * nodes)
    addresses = [Address(HOST, port) for port in ports]
    kinds = (addresses[start : start + nodes] for start in range(0, len(addresses), nodes))
    return [Placed(f"node-{number}", *of) for number, of in enumerate(zip(*kinds, strict=True), 1)]


def _refuse_taken(placed: Iterable[Placed]) -> None:
    """Refuse ports in use before anything is written, so that a retry may name others."""
    for node in placed:
        for address in (node.client_address, node.peer_address, node.http_address):
            if is_taken(address):
                raise ConfigError(
                    f"another process listens on {address}. Stop it, or give another --port-base"
                )


def free_ports(count: int) -> Sequence[int]:
    """Choose different ports on which nobody listens now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((HOST, 0))
        return [each.getsockname()[1] for each in sockets]


def _issue(directory: Path, cluster_id: str, placed: Iterable[Placed]) -> None:
    authority = certificates.make_authority(cluster_id)
    certificates.keep(authority, directory / AUTHORITY_FOLDER)
    hosts = [HOST, "localhost"]
    for node in placed:
        uri = node_uri(cluster_id, node.name)
        names = [*hosts, node.name]
        certificates.issue(authority, directory / node.name, node.name, uri, names)
    certificates.issue(authority, directory / CLIENT_FOLDER, "local", CLIENT_URI, [])


def _toml(
    cluster_id: str,
    node: Placed,
    placed: Iterable[Placed],
    overrides: Iterable[str],
    *,
    insecure: bool,
) -> str:
    tables: dict[str, dict[str, str]] = {
        "node": {
            "name": _quoted(node.name),
            "data_dir": _quoted("data"),
            "client_address": _quoted(str(node.client_address)),
            "peer_address": _quoted(str(node.peer_address)),
        },
        "http": {"address": _quoted(str(node.http_address))},
        "cluster": {"id": _quoted(cluster_id)},
        "tls": {"insecure_loopback": "true"}
        if insecure
        else {
            **{n: _quoted(f"{n}.pem") for n in ("ca", "certificate", "key")},
            "accept_old_node_names": "false",
        },
    }
    tables["access"] = {"administrators": f"[{_quoted(ANONYMOUS if insecure else CLIENT_URI)}]"}
    for peer in placed:
        tables[f"cluster.peers.{peer.name}"] = {
            "client_address": _quoted(str(peer.client_address)),
            "peer_address": _quoted(str(peer.peer_address)),
        }
    for override in overrides:
        _override(tables, override)
    return "\n".join(_table(name, values) for name, values in tables.items())


def _override(tables: dict[str, dict[str, str]], override: str) -> None:
    """Write a --set into the tables for the files, so that a restarted node has it, too."""
    name, equals, value = override.partition("=")
    table, dot, key = name.strip().rpartition(".")
    if not equals or not dot:
        raise ConfigError(f"--set {override}: write --set table.key=value")
    known = BY_NAME.get(name.strip())
    text = value.strip()
    if known and known.kind == "texts":
        written = json.dumps([each.strip() for each in text.split(",")])
    else:
        plain = known.kind in {"integer", "boolean"} if known else text.isdigit()
        written = text if plain else _quoted(text)
    tables.setdefault(table, {})[key] = written


def _table(name: str, values: dict[str, str]) -> str:
    lines = [f"[{name}]", *(f"{key} = {value}" for key, value in values.items())]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return json.dumps(text)  # a JSON string is a TOML basic string
