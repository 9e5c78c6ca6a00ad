"""`holdfast node add|promote|remove|replace`: which nodes a cluster has, changed while it serves.

Each command can be repeated after it was interrupted: what is done already is passed over. A
refusal that may pass by itself is waited out, and told once for each reason.
"""

from __future__ import annotations

import time
from shlex import quote
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import click

from holdfast.cli.ending import fail, print_json
from holdfast.cli.nodes.every_node import newest
from holdfast.cli.options import DAY_SECONDS, as_json, asks_cluster, refuse, show_json, timeout
from holdfast.cli.render.plain import plain
from holdfast.cli.render.speaking import say
from holdfast.v1 import admin_pb2 as a

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.cli.connect import Cluster

CHANGE_SECONDS: Final = 10.0
"""How long a change waits for another one, or for a leader that has just been elected."""
LOOK_SECONDS: Final = 1.0
"""Between two looks at a learner."""

_ResponseT = TypeVar("_ResponseT", a.AddNodeResponse, a.PromoteNodeResponse, a.RemoveNodeResponse)

_Answer: TypeAlias = a.AddNodeResponse | a.PromoteNodeResponse | a.RemoveNodeResponse

_name = click.argument("name")
_peer = click.option(
    "--peer", required=True, metavar="HOST:PORT", help="Where the other nodes reach it."
)
_client = click.option(
    "--client", required=True, metavar="HOST:PORT", help="Where clients reach it."
)
_timeout = timeout(600.0, "Seconds until the node has to have caught up.", 7 * DAY_SECONDS)


@click.command()
@_name
@_peer
@_client
@as_json
@asks_cluster
def add(cluster: Cluster, name: str, peer: str, client: str, *, as_json: bool) -> None:
    """Have a new node get the log. It counts for nothing before it is promoted.

    Until then the same command with other addresses corrects them.
    """
    done = _added(cluster, name, peer, client)
    _end(done, name, as_json=as_json)
    if not as_json:
        say(_told(done, _ADDED, name))
        who = "If it is a learner still, it" if done.already else "It"
        say(
            f"{who} gets the log as soon as it runs, on an empty disk with --rebuild; then: "
            f"holdfast node promote {quote(name)}"
        )


@click.command()
@_name
@_timeout
@as_json
@asks_cluster
def promote(cluster: Cluster, name: str, *, seconds: float, as_json: bool) -> None:
    """Make a learner a voter, as soon as it has caught up."""
    done = _promoted(cluster, name, seconds, _silent if as_json else say)
    _end(done, name, as_json=as_json)
    if not as_json:
        say(_told(done, _PROMOTED, name))


@click.command()
@_name
@as_json
@asks_cluster
def remove(cluster: Cluster, name: str, *, as_json: bool) -> None:
    """Let a node go for good: it stops, and its name is never used again.

    A node that leads hands the leadership over first. One that is away can be removed as well.
    """
    done = _removed(cluster, name)
    _end(done, name, as_json=as_json)
    if not as_json:
        say(_told(done, _REMOVED, name))


@click.command()
@click.argument("old")
@click.argument("new")
@_peer
@_client
@_timeout
@as_json
@asks_cluster
def replace(
    cluster: Cluster, old: str, new: str, peer: str, client: str, *, seconds: float, as_json: bool
) -> None:
    """Put a NEW node in the place of an OLD one: add, promote, remove.

    Three steps, of which each leaves a cluster that serves. The old node may be away; it goes last.
    """
    _refuse_unknown(cluster, old)
    tell = _silent if as_json else say
    steps: dict[str, _Answer] = {}
    for step, name, told, take in (
        ("added", new, _ADDED, lambda: _added(cluster, new, peer, client)),
        ("promoted", new, _PROMOTED, lambda: _promoted(cluster, new, seconds, tell)),
        ("removed", old, _REMOVED, lambda: _removed(cluster, old)),
    ):
        steps[step] = done = take()
        if as_json and (done.error_code or step == "removed"):
            print_json({step: plain(answer) for step, answer in steps.items()})
        refuse(done, "node", name)
        tell(_told(done, told, name))


_ADDED: Final = "{} is a learner now", "{} is a node of the cluster already"
_PROMOTED: Final = "{} is a voter now", "{} is a voter already"
_REMOVED: Final = "{} is removed", "{} was removed already"
"""What a step has done, and what it found done."""


def _end(done: _Answer, name: str, *, as_json: bool) -> None:
    """Print the answer for a program; end the command if it is a refusal."""
    if as_json:
        show_json(done)
    refuse(done, "node", name)


def _told(done: _Answer, words: tuple[str, str], name: str) -> str:
    return words[done.already].format(name)


def _silent(sentence: str) -> None:
    del sentence


def _added(cluster: Cluster, name: str, peer: str, client: str) -> a.AddNodeResponse:
    request = a.AddNodeRequest(name=name, peer_address=peer, client_address=client)
    return _changed(cluster, request, a.AddNodeResponse)


def _removed(cluster: Cluster, name: str) -> a.RemoveNodeResponse:
    return _changed(cluster, a.RemoveNodeRequest(name=name), a.RemoveNodeResponse)


def _promoted(
    cluster: Cluster, name: str, seconds: float, tell: Callable[[str], None]
) -> a.PromoteNodeResponse:
    """Promote a learner once it has caught up; tell how far it is, and why it is not promoted."""
    last = ""

    def progress(why: str) -> None:
        nonlocal last
        told = _how_far(cluster, name) or why
        if told != last:
            tell(told)
        last = told

    request = a.PromoteNodeRequest(name=name)
    return _changed(cluster, request, a.PromoteNodeResponse, seconds, progress)


def _changed(
    cluster: Cluster,
    request: a.AddNodeRequest | a.PromoteNodeRequest | a.RemoveNodeRequest,
    answer: type[_ResponseT],
    seconds: float = CHANGE_SECONDS,
    progress: Callable[[str], None] = _silent,
) -> _ResponseT:
    """Ask for a change until it is done, or refused for good, or its time is over."""
    ends_at = time.monotonic() + seconds
    while True:
        done = cluster.order(request, answer)
        if not done.may_pass_later or time.monotonic() >= ends_at:
            return done
        progress(done.holdfast.message)
        time.sleep(LOOK_SECONDS)


def _how_far(cluster: Cluster, name: str) -> str:
    """Say how far a learner is, as the leader sees it; "": not heard of, or it has everything."""
    one = cluster.call(a.DescribeClusterRequest(), a.DescribeClusterResponse)
    seen = next((node for node in one.nodes if node.name == name and node.connected), None)
    if seen is None or seen.caught_up or not seen.HasField("match_index"):
        return ""
    if seen.streaming:
        return f"{name} is being sent a snapshot of the state"
    if seen.match_index >= one.commit_index:
        return ""
    return f"{name} has {seen.match_index} of {one.commit_index} entries"


def _refuse_unknown(cluster: Cluster, name: str) -> None:
    """End the command if there never was a node of that name, before a new one is added."""
    answers = cluster.on_every_node(a.DescribeClusterRequest(), a.DescribeClusterResponse)
    told = newest(one for _, one in answers)
    if told is None:
        return  # the first change ends the command, and says why
    names = [node.name for node in told.nodes]
    if name not in names and name not in told.removed_nodes:
        fail(f"there is no node {name!r} to be replaced; the nodes are {', '.join(names)}")
