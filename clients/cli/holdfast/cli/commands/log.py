"""`holdfast log`: the event log, of a running cluster or of the directories of stopped nodes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from holdfast.cli.connect import Cluster
from holdfast.cli.ending import UNREACHED, fail, spoken
from holdfast.cli.names import group_or_cluster
from holdfast.cli.nodes.every_node import WITH_ANCHOR, seen_by
from holdfast.cli.nodes.sealing import await_sealed, place
from holdfast.cli.options import (
    INT64_MAX,
    as_json,
    asks_cluster,
    refuse,
    show_json,
    table,
    timeout,
)
from holdfast.cli.render.log_lines import as_line
from holdfast.cli.render.plain import plain
from holdfast.cli.render.speaking import say
from holdfast.coordinator.model.text import readable_json
from holdfast.v1.extras_pb2 import Position
from holdfast.v1.log_pb2 import SealLogRequest, SealLogResponse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.v1.admin_pb2 import LogAnchor
    from holdfast.v1.events_pb2 import EventRecord


@click.group()
def log() -> None:
    """Read the event log; anchor and seal it; export, publish and verify what nodes hold."""


@log.command()
@click.option(
    "--from", "index", type=click.IntRange(0, INT64_MAX), help="First index; default: see above."
)
@click.option(
    "--group",
    callback=group_or_cluster,
    help="Only this group's events; '': only the cluster's own.",
)
@click.option("--follow", "-f", is_flag=True, help="Go on with what is applied, until Ctrl-C.")
@as_json
@asks_cluster
def tail(
    cluster: Cluster, index: int | None, group: str | None, *, follow: bool, as_json: bool
) -> None:
    """Print events, a line each, in order.

    From the first that a node holds; with --follow from now on. Any node is asked. --json prints
    one object a line.
    """
    start = None if index is None else Position(index=index)
    if not follow:
        _read_all(cluster, start, group, as_json=as_json)
        return
    if group and not cluster.knows_group(group):
        say(f"holdfast: there is no group {group!r} now; waiting for it", err=True)
    try:
        for message in cluster.watch(start, group):
            _show(message.records, as_json=as_json)
    except KeyboardInterrupt:
        return


def _read_all(
    cluster: Cluster, start: Position | None, group: str | None, *, as_json: bool
) -> None:
    """Print all events up to the end; ends the command with a reason if there are none."""
    count = end = 0
    for page in cluster.read(start, group):
        count, end = count + len(page.records), page.holdfast.applied_index
        _show(page.records, as_json=as_json)
    if count:
        return
    if start is not None and start.index > end:
        fail(f"nothing is at index {start.index} yet: the log ends at {end} on the node asked")
    if group and not cluster.knows_group(group):
        fail(
            f"there is no group {group!r} now, and no event of it in what is held from there on. "
            "Check the name with `holdfast group list`"
        )


def _show(records: Iterable[EventRecord], *, as_json: bool) -> None:
    for record in records:
        click.echo(as_line(record, as_json=as_json))  # noqa: TID251 - escaped, also as JSON
        spoken()


@log.command()
@click.option("--node", help="Only what this node tells; default: what each does.")
@as_json
@asks_cluster
def anchor(cluster: Cluster, node: str | None, *, as_json: bool) -> None:
    """Print what each node tells of its log now: an index, and chain and digest there.

    Keep it where nobody can rewrite it together with the logs: `holdfast replay verify --anchor`
    compares it. --json prints one object a line, which may be appended to a file.
    """
    seen = [one for one in seen_by(cluster, WITH_ANCHOR) if node in {None, one.name}]
    told = [one.answer.anchor for one in seen if one.answer and one.answer.HasField("anchor")]
    if as_json:
        for each in told:
            click.echo(readable_json(plain(each)))  # noqa: TID251 - JSON is escaped already
            spoken()
    elif told:
        table(_ANCHOR_COLUMNS, map(_anchored, told))
    for one in seen:
        if one.answer is None and told:
            say(f"holdfast: {one.name} did not answer, so there is no anchor of its log", err=True)
        elif one.answer and not one.answer.HasField("anchor"):
            say(f"holdfast: {one.name} told no anchor. {_NO_ANCHOR}", err=True)
    if node is not None and not seen:
        fail(f"there is no node {node!r}; `holdfast cluster status` shows those that there are")
    if not any(one.answer for one in seen):
        fail(f"no node answered; last: {cluster.last_failure}", UNREACHED)
    if not told:
        fail("no node told an anchor")


_NO_ANCHOR: Final = (
    "An older version cannot, and one tells it to readers of the cluster alone (`holdfast acl`)"
)


_ANCHOR_COLUMNS: Final = ("NODE", "INDEX", "RECOVERY", "LOG TIME MS", "CHAIN", "DIGEST")


def _anchored(told: LogAnchor) -> tuple[object, ...]:
    place = (told.node, told.index, told.recovery_number, told.log_time_ms)
    return (*place, told.chain.hex(), told.digest.hex())


@log.command()
@timeout(60.0, "Seconds to wait until each node has sealed; 0: do not wait.")
@as_json
@asks_cluster
def seal(cluster: Cluster, *, seconds: float, as_json: bool) -> None:
    """Have every node seal what is in the log now, so that it can be verified and published.

    By themselves nodes seal once a day, or as soon as the log is long enough. Where nothing came
    since the last time, nothing is done. Ends with 3 if not every node has sealed in time; the
    boundary is set all the same.
    """
    ends_at = time.monotonic() + seconds
    response = cluster.change(SealLogRequest(), SealLogResponse)
    refuse(response, "the log")
    names = await_sealed(cluster, response.sealed, ends_at) if seconds else []
    if as_json:
        show_json(response)
        return
    found = "nothing came since the last boundary" if response.already else "a boundary is set"
    say(f"{found}: all up to {place(response.sealed)} {_is_sealed(names)}")


def _is_sealed(names: list[str]) -> str:
    if not names:
        return "is being sealed, on one node after another"
    return f"is sealed on {', '.join(names)}"


_node_dir = click.Path(exists=True, file_okay=False, path_type=Path)


@log.command()
@click.option("--node-dir", required=True, type=_node_dir, help="Its node.data_dir.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="For the segment.")
def export(node_dir: Path, out: Path) -> None:
    """Write what a stopped node has not sealed yet, in the form of a sealed segment.

    `holdfast replay` and `holdfast log verify` find it in the folder `tail` beside `segments`.
    """
    from holdfast.cli.offline import stopped_log  # noqa: PLC0415 - needs the [server] extra

    stopped_log.export(node_dir, out)


@log.command()
@click.option(
    "--node-dir", required=True, type=_node_dir, help="Its node.data_dir, or a folder of segments."
)
@click.option("--to", required=True, metavar="DIR|URL", help="A folder for this node alone.")
@click.option(
    "--by-size",
    is_flag=True,
    help="Compare data files that are there by their size alone: they are not read again.",
)
@as_json
def publish(node_dir: Path, to: str, *, by_size: bool, as_json: bool) -> None:
    """Copy the sealed segments to a folder or an object store, for `holdfast replay`.

    The node may run. What is there is compared, and never overwritten; what is lacking is added, so
    that readers never see half a segment. URLs are those of fsspec, as s3://BUCKET/PATH.
    """
    from holdfast.cli.offline import publishing  # noqa: PLC0415 - needs the [publish] extra

    publishing.publish_log(node_dir, to, by_size=by_size, as_json=as_json)


@log.command()
@click.option("--node-dir", "folders", required=True, multiple=True, type=_node_dir)
@as_json
def verify(folders: tuple[Path, ...], *, as_json: bool) -> None:
    """Check the logs of stopped nodes: digests, hash chains, gaps; compare several nodes.

    A directory may also be a copy of a node's segments alone. What the events mean is checked by
    `holdfast replay verify`.
    """
    from holdfast.cli.offline import stopped_log  # noqa: PLC0415 - needs the [server] extra

    stopped_log.verify(folders, as_json=as_json)
