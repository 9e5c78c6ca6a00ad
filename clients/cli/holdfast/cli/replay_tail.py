"""`holdfast replay tail`: follows what a node has sealed, or what a running cluster serves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from holdfast.cli.connect import AT_A_TERMINAL, check_tls
from holdfast.cli.ending import fail
from holdfast.cli.options import finds_cluster
from holdfast.cli.render.speaking import say
from holdfast.cli.replay_app import run
from holdfast.cli.replay_options import on_spark
from holdfast.cli.target import NotRunning

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.cli.target import Target

_folder = click.Path(exists=True, file_okay=False, path_type=Path)
_OF_A_CLUSTER: Final = {
    "cluster": "--cluster",
    "addresses": "--address",
    "tls": "--tls",
    "token_file": "--token-file",
}
"""The options that name a cluster, by their parameters."""


@click.command()
@click.option("--node-dir", "folder", type=_folder, help="A node's node.data_dir.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="A folder for it.")
@click.option("--once", is_flag=True, help="End when all that is there now is done.")
@click.option(
    "--every",
    type=click.FloatRange(0.1, 3600),
    default=10,
    show_default=True,
    help="Seconds between two looks for what is new.",
)
@click.option(
    "--ownerless", type=click.FloatRange(0), default=60, show_default=True, help="Seconds."
)
@click.option("--restless", type=click.IntRange(1), default=3, show_default=True, help="Turns.")
@click.option("--storm", type=click.IntRange(1), default=10, show_default=True, help="Rebalances.")
@on_spark
@finds_cluster
def tail(  # noqa: PLR0913 - one for each option
    find: Callable[[], Target],
    /,
    folder: Path | None,
    out: Path,
    every: float,
    ownerless: float,
    restless: int,
    storm: int,
    spark: dict[str, Any],
    *,
    once: bool,
) -> None:
    """Follow a log: OUT/events gets each record once, OUT/alerts what is wrong.

    Either the sealed segments in a node's directory (--node-dir), or all that a running cluster has
    committed, asked of any of its nodes (--address, --cluster). Alerts: a partition without owner
    for longer; an instance with so many turns, or a group with so many rebalances, within ten
    minutes. After a crash, start it again.
    """
    if folder is not None:
        _refuse_cluster()
    target = _found(find) if folder is None else None
    run(
        lambda app: app.tail(
            app.Nodes(target.addresses, target.tls, AT_A_TERMINAL) if target else folder,
            out,
            limits=app.Limits(round(ownerless * 1000), restless, storm),
            once=once,
            every_s=every,
            told=lambda done: say(
                f"batch {done.number}: {done.events} events up to {done.last[0]}.{done.last[1]}, "
                f"{done.alerts} alerts"
            ),
            spark=app.SparkOptions.given(**spark),
        )
    )


def _refuse_cluster() -> None:
    """Refuse a cluster that was typed beside a directory; the environment's is passed over."""
    context = click.get_current_context()
    typed = [
        option
        for name, option in _OF_A_CLUSTER.items()
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    if typed:
        raise click.UsageError(
            f"--node-dir follows a directory, and {typed[0]} a running cluster. Give one of them"
        )


def _found(find: Callable[[], Target]) -> Target:
    """Find the cluster; ends the command if there is none, or it cannot be asked."""
    try:
        target = find()
    except NotRunning as error:
        fail(f"{error}; or give --node-dir DIR, to follow what a node has sealed")
    if target.tls:
        check_tls(target.tls)
    return target
