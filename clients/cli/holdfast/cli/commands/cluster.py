"""`holdfast cluster`: a local cluster in the foreground, and how a cluster stands."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from click.core import ParameterSource

from holdfast.cli.commands.upgrade import upgrade
from holdfast.cli.connect import Cluster
from holdfast.cli.ending import UNREACHED, fail, print_json
from holdfast.cli.nodes.every_node import VOTER, WITH_ANCHOR, WITH_FACTS, named_by, seen_by
from holdfast.cli.options import (
    as_json,
    asks_cluster,
    finds_cluster,
    refuse,
    show_json,
    table,
    timeout,
)
from holdfast.cli.render.disk_outlook import outlooks
from holdfast.cli.render.plain import plain
from holdfast.cli.render.readiness import Readiness
from holdfast.cli.render.speaking import say, say_lines
from holdfast.cli.target import NotRunning
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import errors_pb2 as e

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.cli.nodes.every_node import Seen
    from holdfast.cli.target import Target

_folder = click.Path(file_okay=False, path_type=Path)


@click.group()
def cluster() -> None:
    """Start a local cluster; show or await one; change its leader; end an upgrade."""


cluster.add_command(upgrade)


@cluster.command()
@click.option("--nodes", type=click.Choice(["1", "3", "5"]), default="3", show_default=True)
@click.option("--dir", "directory", required=True, type=_folder)
@click.option("--port-base", type=click.IntRange(1, 65_520), help="First port; default: free ones.")
@click.option("--insecure-loopback", is_flag=True, help="No TLS, on 127.0.0.1 only.")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="For every node.")
@click.option(
    "--rebuild",
    multiple=True,
    metavar="NODE",
    help="A node whose disk was lost: it fetches everything from the others.",
)
def start(
    nodes: str,
    directory: Path,
    port_base: int | None,
    overrides: tuple[str, ...],
    rebuild: tuple[str, ...],
    *,
    insecure_loopback: bool,
) -> None:
    """Run a cluster of local nodes until Ctrl-C; an empty DIR is bootstrapped.

    A cluster that has served before starts with a majority of its nodes: one that cannot start is
    reported, with the command that brings it back. Ends with 0 when it was asked to stop, whatever
    became of single nodes meanwhile: a death is reported when it happens. Ends with 1 if the
    cluster could not start, with 130 if it was asked to stop before it served.
    """
    from holdfast.cli.local_cluster import start as local  # noqa: PLC0415 - needs the [server] extra

    source = click.get_current_context().get_parameter_source("nodes")
    local.run(
        directory,
        local.Asked(
            int(nodes),
            source is ParameterSource.COMMANDLINE,
            port_base,
            overrides,
            insecure_loopback,
            rebuild,
        ),
    )


@cluster.command("add-node")
@click.option("--dir", "directory", required=True, type=_folder)
@click.option("--name", help="Its name; default: node- and the next number.")
@click.option("--port-base", type=click.IntRange(1, 65_532), help="First port; default: free ones.")
def add_node(directory: Path, name: str | None, port_base: int | None) -> None:
    """Lay one more node out for a local cluster, whether that runs or not.

    Makes its folder in DIR, with configuration and certificate, and starts nothing. Its ports are
    for clients, for peers and for HTTP, in this order; a fourth one is for clients with tokens, if
    the cluster takes tokens.
    """
    from holdfast.cli.local_cluster import one_more  # noqa: PLC0415 - needs the [server] extra

    one_more.run(directory, name, port_base)


@cluster.command()
@as_json
@asks_cluster
def status(cluster: Cluster, *, as_json: bool) -> None:
    """Show every node, as it sees itself; --json tells an anchor of each node's log, too."""
    seen = seen_by(cluster, WITH_ANCHOR if as_json else WITH_FACTS)
    if as_json:
        print_json(
            [
                {
                    "name": one.name,
                    "address": one.address,
                    "standing": one.standing,
                    "answer": plain(one.answer) if one.answer else None,
                }
                for one in seen
            ]
        )
    else:
        table(_HEAD, map(_line, seen))
        answers = [one.answer for one in seen if one.answer]
        say_lines(outlooks(answers))
        for answer in answers:
            for trouble in answer.holdfast.message.splitlines():
                say(f"NOTE: {answer.node}: {trouble}")
        for note in filter(None, (_open_to_all(seen), _lacking(seen))):
            say(f"NOTE: {note}")
    if not any(one.answer for one in seen):
        fail(f"no node answered; last: {cluster.last_failure}", UNREACHED)


_HEAD: Final = (
    *("NODE", "ADDRESS", "STANDING", "ROLE", "TERM", "APPLIED", "COMMITTED", "VERSION", "LEVEL"),
)


def _open_to_all(seen: Sequence[Seen]) -> str:
    """Say that nothing is refused, as in a cluster of an older version; empty: it is."""
    if not any(one.answer and one.answer.access_mode == "open" for one in seen):
        return ""
    return "everybody with a certificate may do everything (access mode open); see `holdfast acl`"


def _lacking(seen: Sequence[Seen]) -> str:
    """Say that no majority is left of the voters, as far as somebody tells of them."""
    voters = [one for one in seen if one.standing == VOTER]
    silent, needed = sum(one.answer is None for one in voters), len(voters) // 2 + 1
    if not any(one.answer for one in seen) or len(voters) - silent >= needed:
        return ""
    return (
        f"{silent} of {len(voters)} nodes do not answer. Nothing is served until a majority, "
        f"{needed} nodes, runs"
    )


def _line(seen: Seen) -> tuple[object, ...]:
    one = seen.answer
    if one is None:
        return (seen.name, seen.address, seen.standing, "silent", *"-----")
    role = next((node.role for node in one.nodes if node.name == one.node), "unknown")
    place = one.term, one.applied_index, one.commit_index
    return (one.node, seen.address, seen.standing, role, *place, one.version, one.level or "-")


@cluster.command()
@timeout(60.0, "Seconds after which to give up.")
@finds_cluster
def wait(find: Callable[[], Target], *, seconds: float) -> None:
    """Wait until the cluster is whole: between the restarts of two nodes, and in scripts.

    Every node that is named answers and follows one leader, none rebuilds, and each has applied
    what was committed when a leader was first seen; one that was removed is passed over. Ends with
    3 if that does not come about in time, and says what is missing. A local cluster that is just
    being started counts as well: it has no cluster.json yet.
    """
    ends_at = time.monotonic() + seconds
    readiness = Readiness()
    with Cluster(_awaited(find, ends_at)) as cluster:
        while missing := readiness.missing(named_by(cluster)):
            _rest(ends_at, f"the cluster is not whole after {seconds:g} s: {missing}")


def _awaited(find: Callable[[], Target], ends_at: float) -> Target:
    while True:
        try:
            return find()
        except NotRunning as error:
            _rest(ends_at, str(error))


def _rest(ends_at: float, sentence: str) -> None:
    """Rest before the next look; when the time is over, end the command with the sentence."""
    if time.monotonic() >= ends_at:
        fail(sentence, UNREACHED)
    time.sleep(_LOOK_SECONDS)


_LOOK_SECONDS: Final = 0.25
"""Between two looks at the nodes."""


@cluster.command("transfer-leadership")
@click.option("--to", "node", default="", help="The node; default: the best of the others.")
@timeout(10.0, "Seconds to wait until it leads; 0: do not wait.")
@as_json
@asks_cluster
def transfer_leadership(cluster: Cluster, node: str, *, seconds: float, as_json: bool) -> None:
    """Hand the leadership to another node, and wait until it leads.

    A hand-over may come to nothing, as when the node dies or is not elected; it is not repeated.
    Ends with 3 if the node does not lead in time.
    """
    ends_at = time.monotonic() + seconds
    response = cluster.order(a.TransferLeadershipRequest(node=node), a.TransferLeadershipResponse)
    if response.error_code == e.ERROR_CODE_NONE and seconds:
        _await_leader(cluster, response.node, ends_at)
    if as_json:
        show_json(response)
    refuse(response, "the leadership")
    if not as_json:
        say(f"{response.node} {'leads' if seconds else 'was told to lead'}")


def _await_leader(cluster: Cluster, name: str, ends_at: float) -> None:
    """Wait until a node says of itself that it leads."""
    while True:
        told = {seen.name: seen.answer for seen in seen_by(cluster)}
        one = told.get(name)
        if one is not None and one.leader == name:
            return
        leads = [other for other, it in told.items() if it is not None and it.leader == other]
        claims = [f"{other} says that it leads" for other in leads]
        _rest(
            ends_at,
            f"{name} was told to lead, and does not lead yet; of the nodes that answer, "
            f"{' and '.join(claims) or 'none says that it leads'}. "
            "Look at `holdfast cluster status`, and hand over again if need be",
        )
