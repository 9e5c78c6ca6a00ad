"""What `holdfast backup restore` does. Loaded when it is run: it needs the [server] extra."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.ending import fail, print_json
from holdfast.cli.render.speaking import say, say_lines
from holdfast.cli.render.times import instant
from holdfast.runtime.backup import restore as restoring
from holdfast.runtime.backup.manifest import BackupFlawed, load_manifest
from holdfast.runtime.backup.recovery_numbers import Wanted
from holdfast.storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.runtime.backup.manifest import BackupManifest


def restore(
    directory: Path,
    targets: Sequence[str],
    number: int | None,
    above_token: int | None,
    *,
    as_json: bool,
) -> None:
    """Restore a backup, and say what may be lost."""
    wanted = number_wanted(number, above_token)
    nodes = nodes_and_directories("--to", targets)
    try:
        manifest = load_manifest(directory)
        done = restoring.restore(directory, manifest, nodes, wanted)
    except (BackupFlawed, StorageError) as error:
        fail(str(error))
    except OSError as error:
        where = error.filename or "a data directory"
        fail(
            f"cannot write to {where}: {error.strerror or error}. No node starts from what was "
            "made; run the same command again once this is mended"
        )
    if as_json:
        print_json(_plain(manifest, nodes, done))
    else:
        say_lines(_told(manifest, nodes, done))
    if not done.noted:
        say(
            f"the recovery number {done.recovery_number} could not be noted in {directory}: keep "
            "it, for the next restore needs a higher one",
            err=True,
        )


def number_wanted(number: int | None, above_token: int | None) -> Wanted:
    """Read what the two options say. Raises UsageError for both."""
    if number is not None and above_token is not None:
        raise click.UsageError(
            "--recovery-number and --above-token say the same: the number of a token is above the "
            "token's. Give one of them"
        )
    return Wanted(number, above_token)


def nodes_and_directories(option: str, targets: Sequence[str]) -> dict[str, Path]:
    """Read NODE=DIR, as often as the option was given. Raises UsageError."""
    found: dict[str, Path] = {}
    for each in targets:
        node, equals, path = each.partition("=")
        if not (node and equals and path):
            raise click.UsageError(f"{option} {each!r} is not NODE=DIR, as n1=/var/lib/n1")
        if node in found:
            raise click.UsageError(f"{option} names node {node!r} twice")
        found[node] = Path(path)
    return found


def _plain(
    manifest: BackupManifest, nodes: Mapping[str, Path], done: restoring.Restored
) -> dict[str, Any]:
    return {
        "cluster_id": manifest.cluster_id,
        "index": manifest.index,
        "term": manifest.term,
        "digest": manifest.digest,
        "chain": manifest.chain,
        "wall_time_ms": manifest.wall_time_ms,
        "recovery_number": done.recovery_number,
        "noted": done.noted,
        "records": done.records,
        "nodes": {node: str(path) for node, path in nodes.items()},
    }


def _told(
    manifest: BackupManifest, nodes: Mapping[str, Path], done: restoring.Restored
) -> list[str]:
    taken, number = instant(manifest.wall_time_ms), done.recovery_number
    return [
        f"restored cluster {manifest.cluster_id} to index {manifest.index}",
        f"digest of state:  {manifest.digest}",
        f"recovery number:  {number}, which the first leader raises",
        *(f"  {node}: {path}" for node, path in nodes.items()),
        f"LOST: all that was acknowledged after index {manifest.index}, since {taken}",
        "Every member joins anew, and gets a token above all that were ever given out.",
        f"Each node's file has the cluster.id {manifest.cluster_id}, and all of them name the same",
        "nodes in [cluster.peers]: the backup names none, so bring files up to date from before",
        "nodes came or went. Then start these nodes together, without --bootstrap. Start any other",
        "node with --rebuild, on an empty directory, once these serve.",
    ]
