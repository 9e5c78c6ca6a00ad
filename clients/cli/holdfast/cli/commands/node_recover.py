"""What `holdfast node recover` does: the cluster goes on from the one node that is left."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from holdfast.cli.ending import fail
from holdfast.cli.offline.backup_restore import nodes_and_directories, number_wanted
from holdfast.cli.render.speaking import say, say_lines
from holdfast.runtime.backup.survivor import Owner, Recovered, known_number
from holdfast.runtime.backup.survivor import recover as recover_from
from holdfast.server.config.node_config import ConfigError, NodeConfig, load
from holdfast.storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def recover(
    file: Path,
    seeds: Sequence[str],
    number: int | None,
    above_token: int | None,
    confirmed: str | None,
) -> None:
    """Recover, and say what may be lost."""
    wanted = number_wanted(number, above_token)
    try:
        config = load(file, os.environ, ())
    except ConfigError as error:
        fail(str(error))
    targets = nodes_and_directories("--seed", seeds)
    _check_majority(config, targets)
    if not wanted.said:
        _warn_of_the_number(config.data_dir)
    _confirm(config, confirmed)
    try:
        done = recover_from(config.data_dir, Owner(config.cluster_id, config.name), targets, wanted)
    except StorageError as error:
        fail(str(error))
    except OSError as error:
        where = error.filename or config.data_dir
        fail(
            f"cannot write to {where}: {error.strerror or error}. Run the same command again once "
            "this is mended"
        )
    say_lines(_told(config, targets, done))


def _check_majority(config: NodeConfig, targets: Mapping[str, Path]) -> None:
    """Refuse too few nodes: without a majority of the same data nothing would be served."""
    names = [peer.name for peer in config.peers]
    if unknown := sorted({*targets} - ({*names} - {config.name})):
        others = ", ".join(name for name in names if name != config.name)
        fail(f"--seed names {unknown[0]!r}, and the other nodes of this cluster are: {others}")
    needed = len(names) // 2 + 1
    if len(targets) + 1 < needed:
        fail(
            f"{needed} of {len(names)} nodes have to go on together, and {len(targets) + 1} would: "
            "name the empty data directories of others with --seed NODE=DIR. Nothing was changed"
        )


def _warn_of_the_number(data: Path) -> None:
    """Say which recovery number is taken, and when it is the wrong one (S13, ADR 45)."""
    try:
        known = known_number(data)
    except (OSError, StorageError):
        return  # that it cannot be read is told when it is opened
    say(
        f"This disk knows recovery number {known}, so the cluster goes on with {known + 1}. If it "
        "was ever restored, or recovered from another disk, that number may have been used: end "
        "here, and give --recovery-number, one above all that there were, or --above-token, the "
        "highest fencing token that a store has seen."
    )


def _confirm(config: NodeConfig, confirmed: str | None) -> None:
    """End the command unless the operator types the cluster's id."""
    if confirmed is None:
        say(
            "This gives up everything that the other nodes had and this one had not received. If "
            "any of their disks can be brought back, do that instead."
        )
        if not sys.stdin.isatty():
            fail(
                "nobody confirms it: give --yes-i-lost-the-majority and the cluster's id. Nothing "
                "was changed"
            )
        confirmed = click.prompt("Type the cluster's id to go on", default="", show_default=False)
    if confirmed != config.cluster_id:
        fail(f"that is not the id of this cluster, {config.cluster_id!r}. Nothing was changed")


def _told(config: NodeConfig, targets: Mapping[str, Path], done: Recovered) -> list[str]:
    return [
        f"cluster {config.cluster_id} goes on from {config.name}",
        f"last entry kept:  index {done.last_index} of term {done.last_term}",
        f"recovery number:  {done.recovery_number}, which the first leader raises",
        f"  {config.name}: {config.data_dir}",
        *(f"  {node}: {path}" for node, path in targets.items()),
        f"LOST: all that was acknowledged after index {done.last_index}, without this node",
        "Every member joins anew, and gets a token above all that were ever given out.",
        "Start these nodes together, without --bootstrap. Start any other node with --rebuild, on",
        "an empty directory, once these serve. Disks from before are refused: keep them away.",
    ]
