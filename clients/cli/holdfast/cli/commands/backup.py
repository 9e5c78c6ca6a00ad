"""`holdfast backup`: a backup of a running cluster, what it holds, and a cluster from it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from holdfast.cli.options import as_json, asks_cluster, finds_cluster
from holdfast.cli.recovery_option import recovery_number

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.cli.connect import Cluster
    from holdfast.cli.target import Target

_new = click.Path(file_okay=False, path_type=Path)
_present = click.Path(exists=True, file_okay=False, path_type=Path)


@click.group()
def backup() -> None:
    """Back a cluster up while it serves; inspect, verify and restore backups."""


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
@click.option(
    "--report",
    is_flag=True,
    help="Then tell the cluster; retention may wait for it (log.retention_require_backup).",
)
@as_json
@finds_cluster
def verify(find: Callable[[], Target], directory: Path, *, report: bool, as_json: bool) -> None:
    """Read every byte of a backup: sums, records, hash chains, and the digest of the state.

    Ends with 0 if all is as it was written, with 1 and each flaw if not. Only --report asks a
    cluster.
    """
    from holdfast.cli.commands import backup_files  # noqa: PLC0415 - needs the [server] extra

    found = backup_files.verify(directory, as_json=as_json)
    if report:
        backup_files.report(find, directory, found, as_json=as_json)


@backup.command()
@click.argument("directory", metavar="DIR", type=_present)
@click.option(
    "--to",
    "targets",
    required=True,
    multiple=True,
    metavar="NODE=DIR",
    help="A node and its empty data directory (node.data_dir); once for each node.",
)
@recovery_number
@as_json
def restore(
    directory: Path,
    targets: tuple[str, ...],
    number: int | None,
    above_token: int | None,
    *,
    as_json: bool,
) -> None:
    """Make the data directories of a cluster's nodes from a backup, while none of them runs.

    The cluster keeps its id and goes on from the backup's position: what happened after it is lost.
    The first leader raises the recovery number, so that fencing tokens are above all that were ever
    given out, and every member joins anew. Only you can know of other restores, so the number has
    to be given; without it the command says what the backup knows. Name all nodes, or at least a
    majority of them; others start with `holdfast node --rebuild` once the majority serves. Nodes
    whose data is from before the restore are refused by the restored ones.
    """
    from holdfast.cli.offline import backup_restore  # noqa: PLC0415 - needs the [server] extra

    backup_restore.restore(directory, targets, number, above_token, as_json=as_json)
