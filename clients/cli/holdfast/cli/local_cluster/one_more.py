"""`holdfast cluster add-node`: lays out one more node for a local cluster, and starts nothing.

The new node's file is made of another node's, so what was set for all of them holds for it as well.
Its configuration is written last, by a rename: a folder without one is what an interrupted command
has left, and is made again. The cluster takes the node in when it is told to (`holdfast node add`).
"""

from __future__ import annotations

import json
import re
import shlex
import tempfile
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from holdfast.cli.ending import fail
from holdfast.cli.local_cluster import layout, standing
from holdfast.cli.render.speaking import say
from holdfast.raft.transport.peer_names import node_uri
from holdfast.server.config.address import Address, is_taken
from holdfast.server.config.node_config import ConfigError, load
from holdfast.server.security.authority_folder import AuthorityFolder, CertificatesRefused
from holdfast.server.security.certificates import CERTIFICATE_DAYS, Party

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.server.config.node_config import NodeConfig

_DRAFT: Final = f".{layout.CONFIG_NAME}"
_PEMS: Final = ("ca.pem", "certificate.pem", "key.pem")
_INTERRUPTED: Final = {_DRAFT, *_PEMS}
"""What an interrupted command leaves in the folder."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_NUMBERED: Final = re.compile(r"node-(\d+)")


def run(directory: Path, name: str | None, port_base: int | None) -> None:
    """Lay a node out, and say how it becomes one of the cluster; ends the command if it cannot."""
    try:
        made = lay_out(directory, name, port_base)
    except (ConfigError, CertificatesRefused) as error:
        fail(str(error))
    file = shlex.quote(str(directory / made.name / layout.CONFIG_NAME))
    peer, client = made.peer_address, made.client_address
    say(f"{made.name} is laid out. Start it, and have the cluster take it in:")
    say(f"    holdfast node --config {file} --rebuild")
    say(
        f"    holdfast node add {made.name} --peer {peer} --client {client} --cluster "
        f"{shlex.quote(str(directory))}"
    )
    if made.tokens is not None:
        say(
            f"Clients with tokens are served at {made.tokens.address}. To be led there when it "
            f"leads, they need [cluster.peers.{made.name}] of its file in those of all nodes, and "
            "each of these started again"
        )


def lay_out(directory: Path, name: str | None, port_base: int | None) -> NodeConfig:
    """Write the files of one more node, the first free number if `name` is None.

    Raises ConfigError or CertificatesRefused, with nothing that a node would start from.
    """
    files = layout.existing(directory)
    if not files or not (directory / layout.FORMED_NAME).exists():
        raise ConfigError(
            f"there is no cluster in {directory} that has served, to which a node could be added. "
            "`holdfast cluster start` begins one, with as many nodes as it is to have"
        )
    removed = _removed(directory)
    configs = {file: load(file, {}, ()) for file in files}
    chosen = name or _next_name(removed, configs.values())
    _refuse_name(directory, chosen, removed)
    there = {file: config for file, config in configs.items() if config.name not in removed}
    template = next(iter(there or configs))
    like = configs[template]
    addresses = _addresses(port_base, 3 if like.tokens is None else 4)
    text = _configuration(template, there.values(), chosen, removed, addresses)
    _refuse_unusable(text)
    return _written(directory / chosen, text, like)


def _next_name(removed: Iterable[str], configs: Iterable[NodeConfig]) -> str:
    """Return the name with the next number: one that was used is never used again."""
    names = {*removed, *(peer.name for config in configs for peer in config.peers)}
    numbers = [int(found[1]) for each in names if (found := _NUMBERED.fullmatch(each))]
    return f"node-{max(numbers, default=0) + 1}"


def _removed(directory: Path) -> tuple[str, ...]:
    known = standing.read(directory)
    return known.removed if known else ()


def _refuse_name(directory: Path, name: str, removed: Iterable[str]) -> None:
    if not _PLAIN.fullmatch(name):
        raise ConfigError(f"{name!r} does not do as a node's name here: it names a folder, too")
    if name in removed:
        raise ConfigError(
            f"node {name!r} was removed from this cluster, and its name is never used again. "
            "Choose another one"
        )
    folder = directory / name
    has_more = folder.exists() and {p.name for p in folder.iterdir()} - _INTERRUPTED
    if has_more or name in {layout.AUTHORITY_FOLDER, layout.CLIENT_FOLDER}:
        raise ConfigError(f"{folder} is there already. Choose another name")


def _addresses(port_base: int | None, count: int) -> tuple[Address, ...]:
    """Return where clients, peers, HTTP and perhaps clients with tokens reach the node.

    Raises ConfigError for a port in use.
    """
    ports = layout.free_ports(count) if port_base is None else range(port_base, port_base + count)
    addresses = tuple(Address(layout.HOST, port) for port in ports)
    for address in addresses:
        if is_taken(address):
            raise ConfigError(
                f"another process listens on {address}. Stop it, or give another --port-base"
            )
    return addresses


def _configuration(
    template: Path,
    configs: Iterable[NodeConfig],
    name: str,
    removed: Iterable[str],
    addresses: tuple[Address, ...],
) -> str:
    """Make the node's file of another one's: its own name and places, and all nodes as peers."""
    client, peer, http, *tokens = map(str, addresses)
    tables = dict(_tables("", tomllib.loads(template.read_text())))
    for each in removed:
        tables.pop(f"cluster.peers.{each}", None)
    tables["node"] |= {"name": name, "client_address": client, "peer_address": peer}
    tables["http"] = {"address": http}
    for config in configs:
        tables[f"cluster.peers.{config.name}"] = _places(config)
    own = tables[f"cluster.peers.{name}"] = {"client_address": client, "peer_address": peer}
    for address in tokens:
        own["token_address"] = address
        tables["tokens"] = _tokens(tables["tokens"], template)
    return "\n".join(_text(table, values) for table, values in tables.items())


def _places(config: NodeConfig) -> dict[str, str]:
    """Return where a node is reached, as its own file says it."""
    at = {"client_address": config.client_address, "peer_address": config.peer_address}
    own = next((peer for peer in config.peers if peer.name == config.name), None)
    if own is not None and own.token_address is not None:
        at["token_address"] = own.token_address
    return {key: str(place) for key, place in at.items()}


def _tokens(table: dict[str, Any], template: Path) -> dict[str, Any]:
    """Return [tokens] for the new node: another node's listening address is not its own."""
    kept = {key: value for key, value in table.items() if key != "address"}
    return kept | {"keys": str(template.resolve().parent / table["keys"])}


def _refuse_unusable(text: str) -> None:
    """Check a configuration before there is anything of its node; raises ConfigError."""
    with tempfile.TemporaryDirectory() as scratch:
        draft = Path(scratch) / layout.CONFIG_NAME
        draft.write_text(text)
        load(draft, {}, ())


def _tables(prefix: str, table: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each table that has values of its own, by its dotted name."""
    own = {key: value for key, value in table.items() if not isinstance(value, dict)}
    if own:
        yield prefix, own
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _tables(f"{prefix}.{key}" if prefix else key, value)


def _text(table: str, values: dict[str, Any]) -> str:
    # A JSON value of text, number, truth or list is one of TOML.
    lines = [f"[{table}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())]
    return "\n".join(lines) + "\n"


def _written(folder: Path, text: str, like: NodeConfig) -> NodeConfig:
    """Write certificate and configuration, which comes last; return it as the node will read it."""
    folder.mkdir(exist_ok=True)
    for name in _PEMS:
        (folder / name).unlink(missing_ok=True)
    if like.tls is not None:
        uri = node_uri(like.cluster_id, folder.name)
        party = Party(folder.name, uri, (layout.HOST, "localhost", folder.name))
        AuthorityFolder(folder.parent).issue(folder, party, CERTIFICATE_DAYS)
    draft = folder / _DRAFT
    draft.write_text(text)
    made = load(draft, {}, ())
    draft.replace(folder / layout.CONFIG_NAME)
    return made
