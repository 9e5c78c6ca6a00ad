"""Looks at a node's configuration, files and disk on this machine: facts for `installed_checks`.

Reads, and writes nothing but a nameless file with which it measures the disk. Judges nothing.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from holdfast.cli.doctor.machine_facts import Certificate, Installed, Machine
from holdfast.raft.transport.peer_names import node_uri
from holdfast.server.metrics import machine
from holdfast.server.security.certificate_facts import (
    certificates_in,
    facts_of,
    pair_problem,
    signed_by,
)

if TYPE_CHECKING:
    from holdfast.server.config.node_config import NodeConfig, Tls

SYNCS: Final = 100
SYNC_BYTES: Final = 4_096
_MOUNTS: Final = Path("/proc/self/mounts")


def installed(config: NodeConfig) -> Installed:
    """Look at a node as its configuration describes it."""
    place = _existing(config.data_dir)
    syncs, problem = _syncs(place)
    found = Installed(
        name=config.name,
        machine=_machine(place, syncs),
        data_dir=str(config.data_dir),
        data_dir_problem=problem,
        file_system=file_system_of(place),
        election_min_ms=config.election_min_ms,
    )
    return found if config.tls is None else _with_certificates(found, config, config.tls)


def _existing(directory: Path) -> Path:
    """Return a directory, or the nearest one above it that is there: the node makes the rest."""
    there = directory.absolute()
    while not there.exists() and there != there.parent:
        there = there.parent
    return there


def _machine(place: Path, syncs: list[float]) -> Machine:
    disk = machine.disk_of(place)
    return Machine(
        memory_bytes=machine.memory_bytes(),
        disk_free_bytes=disk.free,
        disk_total_bytes=disk.total,
        open_files_max=machine.open_files_most(),
        sync_p99_ms=sorted(syncs)[-1 - len(syncs) // 100] * 1000 if syncs else None,
    )


def _syncs(place: Path) -> tuple[list[float], str]:
    """Write and sync small blocks, as the journal does; return what each took, or the problem."""
    took: list[float] = []
    try:
        with tempfile.TemporaryFile(dir=place, buffering=0) as file:
            for _ in range(SYNCS):
                began = time.monotonic()
                file.write(bytes(SYNC_BYTES))
                os.fdatasync(file.fileno())
                took.append(time.monotonic() - began)
    except OSError as error:
        return [], error.strerror or str(error)
    return took, ""


def file_system_of(place: Path, mounts: Path = _MOUNTS) -> str:
    """Return the kind of a directory's file system; "" if the system does not tell."""
    try:
        lines = [line.split() for line in mounts.read_text().splitlines()]
    except OSError:
        return ""
    path = place.resolve()
    above = [(len(at), kind) for _, at, kind, *_ in lines if path.is_relative_to(at)]
    return max(above, default=(0, ""))[1]


def _with_certificates(found: Installed, config: NodeConfig, tls: Tls) -> Installed:
    files = {"ca": tls.ca, "certificate": tls.certificate}
    if tls.peer_ca is not None:
        files["peer_ca"] = tls.peer_ca
    read = {key: _read(path) for key, path in files.items()}
    told = tuple(_certificate(key, content, tls) for key, content in read.items())
    own, trusted = read["certificate"], read.get("peer_ca", read["ca"])
    if isinstance(own, str) or isinstance(trusted, str):
        return found._replace(certificates=told)
    certificate = certificates_in(own)[0]
    return found._replace(
        certificates=told,
        wanted_names=_wanted(config),
        names=facts_of(certificate).names,
        signed=signed_by(certificate, certificates_in(trusted)),
    )


def _read(path: Path) -> bytes | str:
    """Return the content of a file of certificates, or why there is none."""
    try:
        content = path.read_bytes()
        certificates_in(content)
    except OSError as error:
        return f"{path}: {error.strerror or error}"
    except ValueError as error:
        return f"{path}: {error}"
    return content


def _certificate(key: str, content: bytes | str, tls: Tls) -> Certificate:
    if isinstance(content, str):
        return Certificate(key, 0, content)
    ends = min(each.not_valid_after_utc for each in certificates_in(content))
    problem = _pair_problem(content, tls) if key == "certificate" else ""
    return Certificate(key, int(ends.timestamp() * 1000), problem)


def _pair_problem(certificate: bytes, tls: Tls) -> str:
    try:
        return pair_problem(certificate, tls.key.read_bytes())
    except OSError as error:
        return f"its key {tls.key}: {error.strerror or error}"


def _wanted(config: NodeConfig) -> tuple[str, ...]:
    """Return the names that a node's certificate must have."""
    own = config.peer(config.name)
    hosts = {own.client_address.host, own.peer_address.host} if own else set[str]()
    named = [f"IP:{host}" if _is_ip(host) else f"DNS:{host}" for host in sorted(hosts)]
    return (f"URI:{node_uri(config.cluster_id, config.name)}", *named)


def _is_ip(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdigit()
