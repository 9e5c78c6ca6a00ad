"""Find the cluster that a command is for: its nodes' addresses, and the TLS files for them.

Knows options, the environment and cluster.json; asks no node.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from holdfast.cli.ending import fail
from holdfast.client import Tls
from holdfast.client._rpc.endpoints import problem_of
from holdfast.coordinator.model.text import truncate


@dataclass(frozen=True, slots=True)
class Target:
    """The nodes to ask, and the TLS files; `tls` None: an insecure loopback."""

    addresses: tuple[str, ...]
    tls: Tls | None
    names: tuple[str, ...] = ()
    """The nodes' names in the same order, if cluster.json has them."""

    def name_of(self, address: str) -> str:
        """Return a node's name, "-" if it is unknown."""
        return dict(zip(self.addresses, self.names, strict=False)).get(address, "-")


class NotRunning(Exception):
    """There is no cluster.json where it was looked for; the sentence says where, and why there."""


def find_target(
    cluster: str | None,
    addresses: tuple[str, ...],
    tls: str | None,
    token_file: str | None = None,
) -> Target:
    """Find the cluster that a command is for; ends the command if that is impossible.

    `addresses` and `tls` have priority over cluster.json; `token_file` takes the place of a
    certificate. Raises NotRunning if that is not there.
    """
    given = _tls_of(Path(tls), token_file) if tls else None
    if addresses:
        check_addresses("--address", addresses)
        return Target(addresses, given)
    from holdfast.server.config import cluster_file  # noqa: PLC0415 - addresses need no server

    path = Path(cluster or ".").absolute()
    path = path / cluster_file.NAME if path.is_dir() else path
    try:
        content = cluster_file.read(path)
    except FileNotFoundError as error:
        raise NotRunning(_no_cluster(path, error, named=cluster is not None)) from None
    except OSError as error:
        fail(_no_cluster(path, error, named=cluster is not None))
    except ValueError as error:
        fail(str(error))
    for node in content.nodes:
        if problem := problem_of(node.client_address):
            fail(f"{path}: the address of {node.name}, {node.client_address!r}, {problem}")
    entry = content.tls
    found = Tls(Path(entry.ca), Path(entry.certificate), Path(entry.key)) if entry else None
    names = tuple(node.name for node in content.nodes)
    return Target(tuple(node.client_address for node in content.nodes), given or found, names)


def check_addresses(source: str, addresses: tuple[str, ...]) -> None:
    """Raise UsageError for an invalid address: it is a typo, not a node that is down."""
    for address in addresses:
        if problem := problem_of(address):
            raise click.UsageError(f"{source} {truncate(address)!r} {problem}")


def _no_cluster(path: Path, error: OSError, *, named: bool) -> str:
    """Write where cluster.json was looked for, why there, and how to name another place."""
    why = "" if named else " (the present directory, because none was named)"
    seen = "it is not there" if isinstance(error, FileNotFoundError) else error.strerror
    return (
        f"no running cluster: looked for {path}{why}, and {seen}. A local cluster has this file "
        "while it serves. Name its directory with --cluster DIR or HOLDFAST_CLUSTER, or its nodes "
        "with --address HOST:PORT or HOLDFAST_ADDRESS (and --tls DIR or HOLDFAST_TLS unless they "
        "run without TLS)"
    )


def _tls_of(directory: Path, token_file: str | None) -> Tls:
    if token_file:
        return Tls(directory / "ca.pem", token=token_file)
    return Tls(directory / "ca.pem", directory / "certificate.pem", directory / "key.pem")
