"""How `holdfast cluster start` lays out a local cluster: a directory a node, ports, certificates.

DIR/authority/           what signed everything; not needed to run
DIR/client/              certificate for commands and programs of this machine
DIR/<name>/node.toml     the node's configuration;  DIR/<name>/data its data
DIR/cluster.json         where the nodes are, while they serve (`cluster_file`)
DIR/formed               there from the moment when all nodes of the new cluster first served
DIR/cluster.lock         held by the command that runs the cluster (`claim`)
"""

from __future__ import annotations

import json
import socket
import uuid
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holdfast.raft.peer_names import node_dns_name, node_uri
from holdfast.server import certificates
from holdfast.server.address import Address, is_taken
from holdfast.server.config import ConfigError, load
from holdfast.server.config_keys import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from holdfast.server.config import NodeConfig

HOST: Final = "127.0.0.1"
CONFIG_NAME: Final = "node.toml"
CLIENT_FOLDER: Final = "client"
FORMED_NAME: Final = "formed"


@dataclass(frozen=True, slots=True)
class Placed:
    """One node of the layout."""

    name: str
    client_address: Address
    peer_address: Address


def existing(directory: Path) -> list[Path]:
    """The configurations of a cluster that was laid out here before, by name."""
    return sorted(directory.glob(f"*/{CONFIG_NAME}"))


def lay_out(
    directory: Path, nodes: int, port_base: int | None, overrides: Sequence[str], *, insecure: bool
) -> list[Path]:
    """Write a new cluster's files into an empty directory; returns the configurations.

    Raises ConfigError if the directory holds something else, or a port is in use.
    """
    if directory.exists() and any(directory.iterdir()):
        raise ConfigError(
            f"{directory} is neither empty nor a cluster made by `holdfast cluster start`; give "
            "another --dir"
        )
    placed = _placed(nodes, port_base)
    _refuse_taken(placed)
    directory.mkdir(parents=True, exist_ok=True)
    cluster_id = f"local-{uuid.uuid4().hex[:12]}"
    if not insecure:
        _issue(directory, cluster_id, placed)
    for node in placed:
        folder = directory / node.name
        folder.mkdir(exist_ok=True)
        text = _toml(cluster_id, node, placed, overrides, insecure=insecure)
        (folder / CONFIG_NAME).write_text(text)
    return existing(directory)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a start was told of the cluster; None: nothing."""

    nodes: int | None
    port_base: int | None
    overrides: Sequence[str]
    insecure: bool


def differing(files: Sequence[Path], wanted: Wanted) -> list[str]:
    """The options that say what is not in force in a cluster that is laid out.

    Raises ConfigError if a file cannot be used.
    """
    configs = {file: load(file, {}, ()) for file in files}
    here = {Placed(c.name, c.client_address, c.peer_address) for c in configs.values()}
    differs = []
    if wanted.nodes not in {None, len(files)}:
        differs.append("--nodes")
    if wanted.port_base is not None and here != set(_placed(len(files), wanted.port_base)):
        differs.append("--port-base")
    if wanted.insecure and any(config.tls for config in configs.values()):
        differs.append("--insecure-loopback")
    return differs + [f"--set {text}" for text in wanted.overrides if not _in_force(text, configs)]


def _in_force(override: str, configs: Mapping[Path, NodeConfig]) -> bool:
    """Whether no node's configuration would be another with it; what is refused differs."""
    with suppress(ConfigError):
        return all(load(file, {}, (override,)) == config for file, config in configs.items())
    return False


def _placed(nodes: int, port_base: int | None) -> list[Placed]:
    ports = free_ports(2 * nodes) if port_base is None else range(port_base, port_base + 2 * nodes)
    pairs = zip(ports[:nodes], ports[nodes:], strict=True)
    return [
        Placed(f"node-{number}", Address(HOST, client), Address(HOST, peer))
        for number, (client, peer) in enumerate(pairs, 1)
    ]


def _refuse_taken(placed: Iterable[Placed]) -> None:
    """Before anything is written, so that the next try may name other ports."""
    for node in placed:
        for address in (node.client_address, node.peer_address):
            if is_taken(address):
                raise ConfigError(
                    f"another process listens on {address}. Stop it, or give another --port-base"
                )


def free_ports(count: int) -> Sequence[int]:
    """Ports that nobody listens on now, all different."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((HOST, 0))
        return [each.getsockname()[1] for each in sockets]


def _issue(directory: Path, cluster_id: str, placed: Iterable[Placed]) -> None:
    authority = certificates.make_authority(cluster_id)
    hosts = [HOST, "localhost"]
    for node in placed:
        uri = node_uri(cluster_id, node.name)
        names = [*hosts, node.name, node_dns_name(cluster_id, node.name)]
        certificates.issue(authority, directory / node.name, node.name, uri, names)
    uri = "holdfast://client/local"
    certificates.issue(authority, directory / CLIENT_FOLDER, "local", uri, [])


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
        "cluster": {"id": _quoted(cluster_id)},
        "tls": {"insecure_loopback": "true"}
        if insecure
        else {
            **{n: _quoted(f"{n}.pem") for n in ("ca", "certificate", "key")},
            "accept_old_node_names": "false",
        },
    }
    for peer in placed:
        tables[f"cluster.peers.{peer.name}"] = {
            "client_address": _quoted(str(peer.client_address)),
            "peer_address": _quoted(str(peer.peer_address)),
        }
    for override in overrides:
        _override(tables, override)
    return "\n".join(_table(name, values) for name, values in tables.items())


def _override(tables: dict[str, dict[str, str]], override: str) -> None:
    """--set goes into the files, so that a node that is brought back has it too."""
    name, equals, value = override.partition("=")
    table, dot, key = name.strip().rpartition(".")
    if not equals or not dot:
        raise ConfigError(f"--set {override}: write --set table.key=value")
    known = BY_NAME.get(name.strip())
    plain = known.kind in {"integer", "boolean"} if known else value.strip().isdigit()
    tables.setdefault(table, {})[key] = value.strip() if plain else _quoted(value.strip())


def _table(name: str, values: dict[str, str]) -> str:
    lines = [f"[{name}]", *(f"{key} = {value}" for key, value in values.items())]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return json.dumps(text)  # a JSON string is a TOML basic string
