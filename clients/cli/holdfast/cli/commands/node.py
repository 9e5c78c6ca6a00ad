"""`holdfast node`: one node in the foreground; or what is done with a stopped node's disk.

Most of a node is loaded in `_serve`, while its data directory is checked. What stands at the head
of this file is what the check needs.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from holdfast.cli.ending import STOPPED, fail
from holdfast.server.config.node_config import CannotStart, ConfigError, NodeConfig, granting, load
from holdfast.server.process import gc_tuning, logs
from holdfast.server.process.open_files import raise_limit
from holdfast.server.process.opening import begin_to_open

if TYPE_CHECKING:
    from holdfast.server.process.opening import Opening

LOADED_LATER: Final = (
    *("aiohttp", "cryptography", "grpc_health", "grpc_reflection"),
    *("prometheus_client", "pysyncobj", "uvloop"),
)
"""Packages of the [server] extra that `_serve` loads; aiohttp and prometheus_client only where
there is an HTTP port. One that is missing is told before anything else, as is lmdb, which is loaded
above."""

for _package in LOADED_LATER:
    if find_spec(_package) is None:
        raise ModuleNotFoundError(f"No module named {_package!r}", name=_package)


_file = click.Path(path_type=Path)


@click.group(invoke_without_command=True, subcommand_metavar="[COMMAND [ARGS]...]")
@click.option("--config", "file", type=_file, help="The node's TOML file.  [required]")
@click.option(
    "--bootstrap", is_flag=True, help="This cluster is new: an empty directory may begin."
)
@click.option("--rebuild", is_flag=True, help="This disk is new: fetch everything from the peers.")
@click.option(
    "--grant-admin",
    metavar="PRINCIPAL",
    default="",
    help="Make a principal an administrator as soon as this node leads: the way back in.",
)
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a key.")
@click.option(
    "--test-failpoints",
    "failpoints",
    hidden=True,
    type=click.Path(path_type=Path),
    help="A file that can make this node's disk slow or fail (storage.journal.failpoints).",
)
@click.pass_context
def node(
    context: click.Context,
    file: Path | None,
    overrides: tuple[str, ...],
    grant_admin: str,
    failpoints: Path | None,
    *,
    bootstrap: bool,
    rebuild: bool,
) -> None:
    """Run one node until SIGTERM or SIGINT."""
    if context.invoked_subcommand is not None:
        return
    if file is None:
        raise click.UsageError("Missing option '--config'.", context)
    gc_tuning.begin_start()
    try:
        config = granting(load(file, os.environ, overrides), grant_admin)
        logs.configure(config.name, config.logger_level, config.logger_format)
        raise_limit()
        opening = begin_to_open(config, bootstrap=bootstrap, rebuild=rebuild)
        _serve(config, file, opening, failpoints)
    except (ConfigError, CannotStart) as error:
        fail(str(error))


def _serve(config: NodeConfig, file: Path, opening: Opening, failpoints: Path | None) -> None:
    """Load the rest of a node, while its directory is checked, and serve."""
    import uvloop  # noqa: PLC0415 - as said above

    from holdfast.raft.api import EngineStopped  # noqa: PLC0415 - as said above
    from holdfast.server.config import cluster_file  # noqa: PLC0415 - as said above
    from holdfast.server.process.serve import serve  # noqa: PLC0415 - as said above

    shared = file.resolve().parent.parent / cluster_file.NAME
    try:
        uvloop.run(serve(config, shared, opening, failpoints))
    except EngineStopped as error:
        fail(f"the node stopped, because going on could lose or fork data: {error}", STOPPED)


@node.command()
@click.option("--from-survivor", is_flag=True, required=True, help="The majority is lost for good.")
@click.option("--config", "file", required=True, type=_file, help="The survivor's TOML file.")
@click.option(
    "--seed",
    "seeds",
    multiple=True,
    metavar="NODE=DIR",
    help="Another node and its empty data directory; so many that they are a majority together.",
)
@click.option(
    "--recovery-number",
    type=click.IntRange(1),
    help="Above every one that the cluster ever had; default: the next one.",
)
@click.option(
    "--yes-i-lost-the-majority",
    "confirmed",
    metavar="CLUSTER_ID",
    help="Confirm with the cluster's id; else it is asked for.",
)
def recover(
    file: Path,
    seeds: tuple[str, ...],
    recovery_number: int | None,
    confirmed: str | None,
    *,
    from_survivor: bool,
) -> None:
    """Let the cluster go on from this stopped node, whose peers' disks are lost.

    Its log is kept to the last entry; what it had not received is lost. The directories of the
    other nodes are made here, to be copied to their machines. The first leader raises the recovery
    number, every member joins anew, and disks from before are refused.
    """
    del from_survivor  # it is required: nobody recovers by accident
    from holdfast.cli.commands import node_recover  # noqa: PLC0415 - a node that runs needs it not

    node_recover.recover(file, seeds, recovery_number, confirmed)
