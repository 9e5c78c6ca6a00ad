"""`holdfast log`: the event log, of a running cluster or of the directories of stopped nodes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.commands.log_reader import read, watch
from holdfast.cli.connect import Cluster
from holdfast.cli.ending import fail, print_json, spoken
from holdfast.cli.names import group_or_cluster
from holdfast.cli.options import INT64_MAX, as_json, asks_cluster
from holdfast.cli.render.log_lines import as_line
from holdfast.cli.render.speaking import say, say_lines
from holdfast.runtime.event_log.offline import Unsealed, unsealed
from holdfast.storage.codec.event_codec import CodecError
from holdfast.storage.directory.check import STATE_FOLDER
from holdfast.storage.directory.data_directory import SEGMENTS_FOLDER
from holdfast.storage.errors import StorageError
from holdfast.storage.segments.log_check import NodeLog, check_node, compare
from holdfast.storage.segments.segments import segment_name, segments_in, write_segment
from holdfast.v1.extras_pb2 import Position

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.v1.events_pb2 import EventRecord

FLAWS_MAX = 50
"""Flaws that are shown of each node; one damaged place can have many consequences."""


@click.group()
def log() -> None:
    """Read the event log; export it from a stopped node; verify it."""


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
        for records in watch(cluster, start, group):
            _show(records, as_json=as_json)
    except KeyboardInterrupt:
        return


def _read_all(
    cluster: Cluster, start: Position | None, group: str | None, *, as_json: bool
) -> None:
    """Everything up to the end; ends the command if there is nothing, and says why."""
    count = end = 0
    for records, applied_index in read(cluster, start, group):
        count, end = count + len(records), applied_index
        _show(records, as_json=as_json)
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


_node_dir = click.Path(exists=True, file_okay=False, path_type=Path)


@log.command()
@click.option("--node-dir", required=True, type=_node_dir, help="Its node.data_dir.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="For the segment.")
def export(node_dir: Path, out: Path) -> None:
    """Write what a stopped node has not sealed yet, in the form of a sealed segment.

    `holdfast replay` and `holdfast log verify` find it in the folder `tail` beside `segments`.
    """
    found = _unsealed(node_dir)
    if not found.rows:
        say("nothing to export: every record is in a sealed segment")
        return
    try:
        write_segment(out, found.rows, found.cluster_id, found.node_id)
    except OSError as error:
        fail(f"cannot write to {out}: {error.strerror or error}")
    first, last = found.rows[0].position, found.rows[-1].position
    say(f"exported {len(found.rows)} records to {out / segment_name(first, last)}")


@log.command()
@click.option("--node-dir", "folders", required=True, multiple=True, type=_node_dir)
@as_json
def verify(folders: tuple[Path, ...], *, as_json: bool) -> None:
    """Check the logs of stopped nodes: digests, hash chains, gaps; compare several nodes.

    A directory may also be a copy of a node's segments alone. What the events mean is checked by
    `holdfast replay verify`.
    """
    logs = [_checked(folder) for folder in folders]
    flaws = [flaw for each in logs for flaw in each.flaws[:FLAWS_MAX]]
    flaws += compare([each for each in logs if not each.flaws])
    if as_json:
        print_json({"nodes": [_plain(each) for each in logs], "flaws": [str(f) for f in flaws]})
    else:
        say_lines([*map(_summary, logs), *(f"  - {flaw}" for flaw in flaws)])
    if flaws:
        fail(f"the log is NOT as it was written: {len(flaws)} flaws, listed above")
    if not any(each.hashes for each in logs):
        fail("there is no record to verify in any of these directories")


def _checked(folder: Path) -> NodeLog:
    """A data directory with all that it holds, or a folder of segments."""
    whole = (folder / STATE_FOLDER).is_dir()
    segments = folder / SEGMENTS_FOLDER if (folder / SEGMENTS_FOLDER).is_dir() else folder
    rest = _unsealed(folder).rows if whole else []
    tail = [] if whole else segments_in(segments.parent / "tail")
    return check_node(str(folder), [*segments_in(segments), *tail], rest)


def _unsealed(folder: Path) -> Unsealed:
    try:
        return unsealed(folder)
    except (StorageError, CodecError, ValueError) as error:
        fail(str(error))


def _plain(each: NodeLog) -> dict[str, Any]:
    ends = [min(each.hashes), max(each.hashes)] if each.hashes else []
    places = [{"index": at.index, "ordinal": at.ordinal} for at in ends]
    return {
        "node": each.node,
        "records": len(each.hashes),
        "first": places[0] if places else None,
        "last": places[1] if places else None,
        "whole": each.whole,
        "flaws": len(each.flaws),
    }


def _summary(each: NodeLog) -> str:
    if not each.hashes:
        return f"{each.node}: no records"
    first, last = min(each.hashes), max(each.hashes)
    kind = "the whole log" if each.whole else "not from the first record on"
    return (
        f"{each.node}: {len(each.hashes)} records from {first.index}.{first.ordinal} to "
        f"{last.index}.{last.ordinal} ({kind}), {len(each.flaws)} flaws"
    )
