"""`holdfast backup`: a backup of a running cluster, and what a directory of backups holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from holdfast.cli.options import as_json, asks_cluster

if TYPE_CHECKING:
    from holdfast.cli.connect import Cluster

_new = click.Path(file_okay=False, path_type=Path)
_present = click.Path(exists=True, file_okay=False, path_type=Path)


@click.group()
def backup() -> None:
    """Back a cluster up while it serves; inspect and verify backups."""


@backup.command()
@click.option("--to", "directory", required=True, type=_new, help="Directory of the backup.")
@click.option("--node", default="", help="The node to read from; default: the best follower.")
@as_json
@asks_cluster
def create(cluster: Cluster, directory: Path, node: str, *, as_json: bool) -> None:
    """Copy the state and the history of a running cluster, from one node, at one position.

    In a directory that holds an earlier backup of the same cluster, only what is new is fetched,
    and that backup stays valid until this one is whole. If the command is interrupted, the same
    command goes on where it ended. What has arrived is verified before it counts.
    """
    from holdfast.cli.commands import backup_files  # noqa: PLC0415 - needs the [server] extra

    backup_files.create(cluster, directory, node, as_json=as_json)


@backup.command()
@click.argument("directory", metavar="DIR", type=_present)
@as_json
def inspect(directory: Path, *, as_json: bool) -> None:
    """Show what a backup holds, as its manifest says; `holdfast backup verify` reads its files."""
    from holdfast.cli.commands import backup_files  # noqa: PLC0415 - needs the [server] extra

    backup_files.inspect(directory, as_json=as_json)


@backup.command()
@click.argument("directory", metavar="DIR", type=_present)
@as_json
def verify(directory: Path, *, as_json: bool) -> None:
    """Read every byte of a backup: sums, records, hash chains, and the digest of the state.

    Ends with 0 if all is as it was written, with 1 and each flaw if not.
    """
    from holdfast.cli.commands import backup_files  # noqa: PLC0415 - needs the [server] extra

    backup_files.verify(directory, as_json=as_json)
