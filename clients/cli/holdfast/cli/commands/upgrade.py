"""`holdfast cluster upgrade`: whether all nodes can run at a newer level, and the raise of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.ending import UNREACHED, fail, print_json
from holdfast.cli.nodes.every_node import seen_by
from holdfast.cli.options import as_json, asks_cluster, refuse, show_json, table
from holdfast.cli.render.plain import plain
from holdfast.cli.render.speaking import say
from holdfast.v1 import admin_pb2 as a

if TYPE_CHECKING:
    from holdfast.cli.connect import Cluster


@click.group()
def upgrade() -> None:
    """Show which versions the nodes run; end an upgrade."""


@upgrade.command()
@as_json
@asks_cluster
def status(cluster: Cluster, *, as_json: bool) -> None:
    """Show what each node runs, and what `finish` would do. Changes nothing."""
    seen = _as_the_leader_sees(cluster)
    if as_json:
        print_json(plain(seen))
        return
    table(("NODE", "VERSION", "LEVELS", "CONNECTED"), (_line(node) for node in seen.nodes))
    say(f"level {seen.level} is in force")
    if seen.upgrade_problem:
        say(f"NOTE: `finish` would be refused: {seen.upgrade_problem}")
    elif seen.upgrade_to > seen.level:
        say(
            f"`finish` would raise it to level {seen.upgrade_to}. After that no node can go back "
            "to a version that cannot run at that level"
        )
    else:
        say("there is nothing to finish: no node can run at a newer level")


def _as_the_leader_sees(cluster: Cluster) -> a.DescribeClusterResponse:
    """Return the leader's view; it alone is connected with all nodes. Ends the command if none.

    One that was replaced may still believe that it leads; the newest term tells.
    """
    answers = [one.answer for one in seen_by(cluster) if one.answer is not None]
    leading = [one for one in answers if one.HasField("upgrade_to")]
    if leading:
        return max(leading, key=lambda one: one.term)
    if answers:
        fail("no node leads now, or it is older than upgrades without a stop; try again", UNREACHED)
    return fail(f"no node answered; last: {cluster.last_failure}", UNREACHED)


def _line(node: a.DescribedNode) -> tuple[object, ...]:
    levels = f"{node.level_min} to {node.level_max}"
    if not node.level_max:
        levels = "-"
    elif node.level_min == node.level_max:
        levels = str(node.level_max)
    return node.name, node.version or "-", levels, "yes" if node.connected else "no"


@upgrade.command()
@as_json
@asks_cluster
def finish(cluster: Cluster, *, as_json: bool) -> None:
    """Raise the level to the newest at which all nodes can run; no node can go back after it."""
    response = cluster.change(a.FinishUpgradeRequest(), a.FinishUpgradeResponse)
    if as_json:
        show_json(response)
    refuse(response, "the upgrade")
    if not as_json:
        say(f"level {response.level} is in force")
