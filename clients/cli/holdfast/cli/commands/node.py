"""`holdfast node`: a node in the foreground, its disk when it is stopped, or which nodes there are.

What a subcommand needs is loaded when it is called: a node that starts has no use for what asks a
cluster, and who asks a cluster need not have the packages of a node.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Final

import click

from holdfast.cli.recovery_option import recovery_number

_CHANGES: Final = ("add", "promote", "remove", "replace")
"""The commands of `nodes.changes`."""
_file = click.Path(path_type=Path)


class _Commands(click.Group):
    """Loads the commands that ask a cluster when one of them is looked up."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the names, in the order of the help."""
        return [*_CHANGES, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Find a command by its name."""
        if cmd_name not in _CHANGES:
            return super().get_command(ctx, cmd_name)
        found: click.Command = getattr(import_module("holdfast.cli.nodes.changes"), cmd_name)
        return found


@click.group(cls=_Commands, invoke_without_command=True, subcommand_metavar="[COMMAND [ARGS]...]")
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
    """Run one node; add, promote, remove and replace nodes.

    Without a command it runs the node of --config until SIGTERM or SIGINT.
    """
    if context.invoked_subcommand is not None:
        return
    if file is None:
        raise click.UsageError("Missing option '--config'.", context)
    from holdfast.cli.commands import node_process  # noqa: PLC0415 - needs the [server] extra

    node_process.run(
        node_process.Asked(file, overrides, grant_admin, failpoints, bootstrap, rebuild)
    )


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
@recovery_number
@click.option(
    "--yes-i-lost-the-majority",
    "confirmed",
    metavar="CLUSTER_ID",
    help="Confirm with the cluster's id; else it is asked for.",
)
def recover(
    file: Path,
    seeds: tuple[str, ...],
    number: int | None,
    above_token: int | None,
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
    from holdfast.cli.commands import node_recover  # noqa: PLC0415 - needs the [server] extra

    node_recover.recover(file, seeds, number, above_token, confirmed)
