"""`holdfast cluster`: a local cluster in the foreground, and how a cluster stands."""

from __future__ import annotations

from pathlib import Path

import click

from holdfast.server import layout
from holdfast.server.cli.connect import UNREACHED, Cluster, fail
from holdfast.server.cli.options import as_json, asks_cluster, refuse, table
from holdfast.server.cli.plain import plain
from holdfast.server.config import CannotStart, ConfigError
from holdfast.server.local_cluster import LocalCluster
from holdfast.v1 import admin_pb2 as a


@click.group()
def cluster() -> None:
    """Start a local cluster; show a cluster; hand its leadership over."""


@cluster.command()
@click.option("--nodes", type=click.Choice(["1", "3", "5"]), default="3", show_default=True)
@click.option("--dir", "directory", required=True, type=click.Path(path_type=Path))
@click.option("--port-base", type=click.IntRange(1, 65_525), help="First port; default: free ones.")
@click.option("--insecure-loopback", is_flag=True, help="No TLS, on 127.0.0.1 only.")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="For every node.")
def start(
    nodes: str,
    directory: Path,
    port_base: int | None,
    overrides: tuple[str, ...],
    *,
    insecure_loopback: bool,
) -> None:
    """Run a cluster of local nodes until Ctrl-C; an empty DIR is bootstrapped.

    Ends with 0 when it was asked to stop, whatever became of single nodes meanwhile: a death is
    reported when it happens. Ends with 1 if the cluster could not start.
    """
    try:
        files = layout.existing(directory)
        new = not files
        if new:
            files = layout.lay_out(
                directory, int(nodes), port_base, overrides, insecure=insecure_loopback
            )
        elif overrides:
            click.echo(
                "holdfast: --set counts for a new cluster only; edit node.toml, or use `holdfast "
                "settings set`",
                err=True,
            )
        LocalCluster(directory, files, click.echo).run(bootstrap=new)
    except (ConfigError, CannotStart) as error:
        fail(str(error))


@cluster.command()
@as_json
@asks_cluster
def status(cluster: Cluster, *, as_json: bool) -> None:
    """Show every node, as it sees itself."""
    seen = cluster.on_every_node("DescribeCluster", a.DescribeClusterRequest())
    if as_json:
        import json  # noqa: PLC0415 - this branch alone prints a list

        click.echo(
            json.dumps(
                [{"address": at, "answer": plain(one) if one else None} for at, one in seen],
                indent=2,
            )
        )
    else:
        table(("NODE", "ADDRESS", "ROLE", "TERM", "APPLIED", "COMMITTED"), map(_line, seen))
    if not any(one for _, one in seen):
        fail("no node answered; is the cluster running?", UNREACHED)


def _line(seen: tuple[str, a.DescribeClusterResponse | None]) -> tuple[object, ...]:
    address, one = seen
    if one is None:
        return ("-", address, "silent", "-", "-", "-")
    role = next((node.role for node in one.nodes if node.name == one.node), "unknown")
    return (one.node, address, role, one.term, one.applied_index, one.commit_index)


@cluster.command("transfer-leadership")
@click.option("--to", "node", default="", help="The node; default: the best of the others.")
@asks_cluster
def transfer_leadership(cluster: Cluster, node: str) -> None:
    """Hand the leadership to another node."""
    response = cluster.call("TransferLeadership", a.TransferLeadershipRequest(node=node))
    refuse(response, "the leadership")
    click.echo(f"{response.node} was told to lead")
