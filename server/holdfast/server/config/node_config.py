"""A node's configuration: one TOML file, overridden by HOLDFAST_... variables, then by --set.

Everything is checked before anything is opened: a wrong key, type or combination is a `ConfigError`
with one sentence. Only local matters are here; the tables of S23 are collected as text for the
bootstrap. Reads files and the environment it is given, and nothing else.
"""

from __future__ import annotations

import difflib
import math
import tomllib
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.cluster.settings_catalogue import REGISTRY
from holdfast.coordinator.model.access import OPEN, administrator, problem_of
from holdfast.coordinator.model.events import SettingChange
from holdfast.coordinator.model.state import Settings
from holdfast.server.config.address import Address, parse_address
from holdfast.server.config.keys import (
    BY_NAME,
    CONNECTION_AGE_MS,
    KEYS,
    PEER_KEYS,
    Key,
    Value,
)
from holdfast.server.config.token_settings import TokenSettings, token_settings
from holdfast.server.config.trace_settings import TraceSettings, trace_settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

ANONYMOUS: Final = "anonymous"
"""The principal of every caller on an insecure loopback."""
PEERS: Final = "cluster.peers."
AUDIT_BYTES_MIN: Final = 64 << 10
NAME_MAX: Final = 256
"""Characters of a name that peers read (`raft.wire.bounds`, which nothing above raft imports)."""
_PEER_FIELDS: Final = {key.name: key for key in PEER_KEYS}
NOT_A_NODES: Final = frozenset(
    {"HOLDFAST_CLUSTER", "HOLDFAST_ADDRESS", "HOLDFAST_TLS", "HOLDFAST_TOKEN_FILE"}
)
"""Variables of the command line that resemble a key."""
_TRUTH: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class ConfigError(Exception):
    """The configuration cannot be used; the text says where, why, and what would be right."""


class CannotStart(Exception):
    """The node cannot start; the text says why and what to do."""


class ExtraMissing(CannotStart):
    """The configuration needs an extra that is not installed; the text says which command does."""


@dataclass(frozen=True, slots=True)
class Peer:
    """One node of the cluster, as every node's file names it."""

    name: str
    client_address: Address
    peer_address: Address
    token_address: Address | None = None  # where clients with tokens reach it


@dataclass(frozen=True, slots=True)
class Tls:
    """Paths of PEM files, and which names in certificates count. A client needs the first three."""

    ca: Path  # signs clients, and nodes unless `peer_ca` is given
    certificate: Path
    key: Path
    peer_ca: Path | None = None  # signs nodes, where `ca` signs clients only
    accept_old_node_names: bool = False  # let nodes in that have only the name of Holdfast 0.1
    connection_age_ms: int = CONNECTION_AGE_MS  # how old a connection may become, at most


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """All configuration that is local to one node, checked."""

    name: str
    data_dir: Path
    client_address: Address
    peer_address: Address
    cluster_id: str
    peers: tuple[Peer, ...]  # every node of the cluster in the order of names, this one included
    tls: Tls | None  # None: no TLS, on the loopback interface only
    election_min_ms: int
    election_max_ms: int
    heartbeat_ms: int
    shutdown_ms: int
    disk_reserve_bytes: int | None  # None: computed from the size of the file system
    logger_level: str
    logger_format: str
    settings: tuple[SettingChange, ...]  # first values; they count at the bootstrap only (S23)
    http_address: Address | None = None  # None: it answers no HTTP
    administrators: tuple[str, ...] = ()  # of a new cluster
    access_mode: str = OPEN  # of a new cluster
    audit_bytes_max: int = 0  # of all files of the audit; 0: none is kept
    grant_admin: str = ""  # of this start alone: whom to make an administrator, once it leads
    tokens: TokenSettings | None = None  # None: no port for clients with tokens
    traces: TraceSettings | None = None  # None: no call is traced

    def peer(self, name: str) -> Peer | None:
        """Return the node of that name; None if the cluster has none."""
        return next((peer for peer in self.peers if peer.name == name), None)


def load(
    path: Path,
    environment: Mapping[str, str],
    overrides: Iterable[str],
) -> NodeConfig:
    """Read and check a node's file; `overrides` (`table.key=value`, from --set) have the last word.

    Raises ConfigError.
    """
    logged = frozenset(REGISTRY)
    values = dict(_flatten("", _read(path)))
    values.update(_from_environment(environment, logged))
    values.update(_from_overrides(overrides))
    _refuse_unknown(values, logged)
    return _build(values, logged, path.resolve().parent)


def granting(config: NodeConfig, principal: str) -> NodeConfig:
    """Add whom this start makes an administrator, "" for nobody; raises ConfigError."""
    if principal and (problem := problem_of(administrator(principal))):
        raise ConfigError(f"--grant-admin {principal!r}: {problem}")
    return replace(config, grant_admin=principal)


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise ConfigError(
            f"cannot read the configuration {path}: {error.strerror}. Give the node's file with "
            "--config"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}. Correct that line") from error


def _flatten(prefix: str, table: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flatten(f"{prefix}{name}.", value)
        else:
            yield f"{prefix}{name}", value


def _from_environment(
    environment: Mapping[str, str], logged: Iterable[str]
) -> Iterator[tuple[str, object]]:
    """Yield the keys that the environment sets: HOLDFAST_RAFT_ELECTION_MIN_MS, for example.

    A misspelt variable of one of our tables is an error as well; any other HOLDFAST_ variable is
    ignored (Kubernetes makes such variables for a service of this name).
    """
    names = {key.variable: key.dotted for key in KEYS}
    names |= {"HOLDFAST_" + s.replace(".", "_").upper(): s for s in logged}
    for variable, value in environment.items():
        if variable in names:
            yield names[variable], value
        elif (
            variable.startswith("HOLDFAST_")
            and variable not in NOT_A_NODES
            and (near := _nearest(variable, names, 0.85))
        ):
            raise ConfigError(f"unknown environment variable {variable}; was {near} meant?")


def _from_overrides(overrides: Iterable[str]) -> Iterator[tuple[str, object]]:
    for override in overrides:
        name, equals, value = override.partition("=")
        if not equals:
            raise ConfigError(f"--set {override}: write --set table.key=value")
        yield name.strip(), value.strip()


def _nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    return next(iter(difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)), None)


def _refuse_unknown(values: Iterable[str], logged: frozenset[str]) -> None:
    known = {*BY_NAME, *logged}
    for name in values:
        node, _, field = name.removeprefix(PEERS).rpartition(".")
        if name in known or (name.startswith(PEERS) and node and field in _PEER_FIELDS):
            continue
        near = _nearest(name, known | {f"{PEERS}{node}.{f}" for f in _PEER_FIELDS})
        hint = f"; was {near} meant?" if near else ". docs/operations/config.md lists all keys"
        raise ConfigError(f"unknown configuration key {name}{hint}")


def _build(values: Mapping[str, object], logged: frozenset[str], base: Path) -> NodeConfig:
    got = {key.dotted: _value_of(key, key.dotted, values) for key in KEYS}
    http, peers = cast("str | None", got["http.address"]), tuple(_peers(values))
    told = (peer.token_address for peer in peers if peer.name == got["node.name"])
    with _refusing():
        tokens, traces = token_settings(got, base, next(told, None)), trace_settings(got, base)
    config = NodeConfig(
        name=cast("str", got["node.name"]),
        data_dir=base / cast("str", got["node.data_dir"]),
        client_address=parse_address(cast("str", got["node.client_address"])),
        peer_address=parse_address(cast("str", got["node.peer_address"])),
        cluster_id=cast("str", got["cluster.id"]),
        peers=peers,
        tls=_tls(got, base),
        election_min_ms=cast("int", got["raft.election_min_ms"]),
        election_max_ms=cast("int", got["raft.election_max_ms"]),
        heartbeat_ms=cast("int", got["raft.heartbeat_ms"]),
        shutdown_ms=cast("int", got["node.shutdown_ms"]),
        disk_reserve_bytes=cast("int | None", got["node.disk_reserve_bytes"]),
        logger_level=cast("str", got["logger.level"]),
        logger_format=cast("str", got["logger.format"]),
        settings=tuple(_settings(values, logged)),
        http_address=parse_address(http) if http else None,
        administrators=_administrators(got),
        access_mode=cast("str", got["access.mode"]),
        tokens=tokens,
        audit_bytes_max=cast("int", got["audit.bytes_max"]),
        traces=traces,
    )
    return _checked(config)


def _value_of(key: Key, dotted: str, values: Mapping[str, object]) -> Value | None:
    raw = values.get(dotted)
    if raw is not None:
        return _typed(key, dotted, raw)
    if key.default is None and not key.optional:
        raise ConfigError(f"{dotted} is missing. {key.text}")
    return key.default


def _typed(key: Key, dotted: str, raw: object) -> Value:
    """Convert a value to the key's kind; it is text if the environment or --set gave it."""
    if key.kind == "integer":
        return _integer(key, dotted, raw)
    if key.kind == "fraction":
        return _fraction(dotted, raw)
    if key.kind == "texts":
        return _texts(dotted, raw)
    if key.kind == "boolean":
        truth = _TRUTH.get(raw.lower()) if isinstance(raw, str) else raw
        if not isinstance(truth, bool):
            raise ConfigError(f"{dotted} = {raw!r}: write true or false")
        return truth
    if not isinstance(raw, str) or not raw:
        raise ConfigError(f"{dotted} = {raw!r}: a text in quotes is needed. {key.text}")
    if key.kind == "choice" and raw not in key.choices:
        raise ConfigError(f"{dotted} = {raw!r}: choose one of {', '.join(key.choices)}")
    if key.kind == "address":
        _address(dotted, raw)
    return raw


def _texts(dotted: str, raw: object) -> tuple[str, ...]:
    """Convert a list of texts; the environment and --set separate them by commas."""
    texts = [each.strip() for each in raw.split(",")] if isinstance(raw, str) else raw
    if not isinstance(texts, list) or not all(isinstance(each, str) and each for each in texts):
        raise ConfigError(f'{dotted} = {raw!r}: a list of texts in quotes is needed: ["a"]')
    return tuple(texts)


def _integer(key: Key, dotted: str, raw: object) -> int:
    try:
        number = int(raw) if isinstance(raw, str) else raw
    except ValueError:
        number = None
    if not isinstance(number, int) or isinstance(number, bool):
        raise ConfigError(f"{dotted} = {raw!r}: a whole number of {key.unit} is needed")
    if not key.least <= number <= key.most:
        raise ConfigError(f"{dotted} = {number}: must lie in {key.least} to {key.most} {key.unit}")
    return number


def _fraction(dotted: str, raw: object) -> float:
    try:
        number = float(raw) if isinstance(raw, str | int | float) else math.nan
    except ValueError:
        number = math.nan
    if isinstance(raw, bool) or not 0 <= number <= 1:
        raise ConfigError(f"{dotted} = {raw!r}: a number from 0 to 1 is needed, such as 0.01")
    return number


def _address(dotted: str, raw: str) -> Address:
    try:
        return parse_address(raw)
    except ValueError as error:
        raise ConfigError(f"{dotted}: {error}") from error


def _peers(values: Mapping[str, object]) -> Iterator[Peer]:
    """Yield a peer for every table `[cluster.peers.NAME]`, in the order of names."""
    names = {n.removeprefix(PEERS).rpartition(".")[0] for n in values if n.startswith(PEERS)}
    for name in sorted(names):
        given = {key.name: _value_of(key, f"{PEERS}{name}.{key.name}", values) for key in PEER_KEYS}
        addresses = {
            field: parse_address(cast("str", text))
            for field, text in given.items()
            if text is not None
        }
        yield Peer(name, **addresses)


def _tls(got: Mapping[str, Value | None], base: Path) -> Tls | None:
    paths = {name: got[f"tls.{name}"] for name in ("ca", "certificate", "key")}
    missing = [f"tls.{name}" for name, path in paths.items() if not path]
    if got["tls.insecure_loopback"]:
        if len(missing) < len(paths) or got["tls.peer_ca"]:
            raise ConfigError("tls.insecure_loopback is true beside certificates; remove one")
        return None
    if missing:
        raise ConfigError(
            f"{', '.join(missing)} missing: give certificates, or set tls.insecure_loopback = true "
            "for a cluster on one machine's loopback interface"
        )
    ca, certificate, key = (base / cast("str", path) for path in paths.values())
    peer_ca = cast("str | None", got["tls.peer_ca"])
    old_names = cast("bool", got["tls.accept_old_node_names"])
    age_ms = cast("int", got["tls.connection_age_ms"])
    return Tls(ca, certificate, key, base / peer_ca if peer_ca else None, old_names, age_ms)


@contextmanager
def _refusing() -> Iterator[None]:
    """Raise ConfigError for the ValueError of a table's own file."""
    try:
        yield
    except ValueError as error:
        raise ConfigError(str(error)) from error


def _administrators(got: Mapping[str, Value | None]) -> tuple[str, ...]:
    """Return who administrates a new cluster; without TLS all callers are one, and it does."""
    named = cast("tuple[str, ...] | None", got["access.administrators"])
    if named is None:
        return (ANONYMOUS,) if got["tls.insecure_loopback"] else ()
    for principal in named:
        if problem := problem_of(administrator(principal)):
            raise ConfigError(f"access.administrators: {principal!r}: {problem}")
    return named


def _settings(values: Mapping[str, object], known: frozenset[str]) -> Iterator[SettingChange]:
    for name in sorted(known & values.keys()):
        value = values[name]
        text = str(value).lower() if isinstance(value, bool) else str(value)
        yield SettingChange(name, text)


def _checked(config: NodeConfig) -> NodeConfig:
    """Refuse combinations that cannot work; a file without peers is a cluster of one."""
    if not config.peers:
        tokens = config.tokens.address if config.tokens else None
        alone = Peer(config.name, config.client_address, config.peer_address, tokens)
        config = replace(config, peers=(alone,))
    if config.peer(config.name) is None:
        names = ", ".join(peer.name for peer in config.peers)
        raise ConfigError(
            f"node.name is {config.name!r}, but [cluster.peers] has only {names}: add "
            f"[cluster.peers.{config.name}] or correct the name"
        )
    _refuse_long_names(config)
    _refuse_raft_times(config.heartbeat_ms, config.election_min_ms, config.election_max_ms)
    _refuse_open_insecure(config)
    _refuse_unknown_token_ports(config)
    _refuse_little_audit(config.audit_bytes_max)
    _refuse_settings(config.settings)
    return config


def _refuse_long_names(config: NodeConfig) -> None:
    """Refuse names that no peer would read: such nodes would never find each other."""
    named = [("cluster.id", config.cluster_id), ("node.name", config.name)]
    named += [("a name in [cluster.peers]", peer.name) for peer in config.peers]
    for what, name in named:
        if len(name) > NAME_MAX:
            raise ConfigError(
                f"{what} has {len(name)} characters ({name[:20]!r}...): nodes tell each other at "
                f"most {NAME_MAX}. Choose a shorter one"
            )


def _refuse_raft_times(heartbeat: int, least: int, most: int) -> None:
    if not 3 * heartbeat < least < most:
        raise ConfigError(
            f"raft.heartbeat_ms = {heartbeat}, raft.election_min_ms = {least} and "
            f"raft.election_max_ms = {most} do not go together: 3 * raft.heartbeat_ms < "
            "raft.election_min_ms < raft.election_max_ms must hold. Change one of them"
        )


def _refuse_little_audit(most: int) -> None:
    if 0 < most < AUDIT_BYTES_MIN:
        raise ConfigError(
            f"audit.bytes_max = {most}: give at least {AUDIT_BYTES_MIN}, or 0 to keep no audit"
        )


def _refuse_settings(changes: tuple[SettingChange, ...]) -> None:
    """Refuse values out of bounds: a bootstrap with them would begin no cluster at all (S23)."""
    for problem in settings.check(Settings(), "", changes):
        if problem is not None:
            raise ConfigError(f"{problem.key}: {problem.problem}")


def _refuse_unknown_token_ports(config: NodeConfig) -> None:
    """Refuse nodes whose port for tokens is not told: a client could not follow the leader."""
    unknown = [peer.name for peer in config.peers if peer.token_address is None]
    if config.tokens and unknown:
        raise ConfigError(
            "[tokens] is given, and [cluster.peers] has no token_address for "
            f"{', '.join(unknown)}: give each node's, the same on all nodes, so that clients with "
            "tokens find the node that leads"
        )


def _refuse_open_insecure(config: NodeConfig) -> None:
    if config.tls is not None:
        return
    addresses = [config.client_address, config.peer_address]
    addresses += [config.http_address] if config.http_address else []
    addresses += [a for p in config.peers for a in (p.client_address, p.peer_address)]
    for address in addresses:
        if not address.loopback:
            raise ConfigError(
                f"tls.insecure_loopback is true, but {address} is not on the loopback interface: "
                "use 127.0.0.1, or give certificates in [tls]"
            )
