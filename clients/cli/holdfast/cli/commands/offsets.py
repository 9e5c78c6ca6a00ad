"""`holdfast offsets`: committed offsets of a group, for those who know `kafka-consumer-groups`.

What changes them can be tried with `--dry-run`, which shows what would be done and does nothing.
A group that has members lets only them commit, so setting and resetting want it stopped (K-J5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.commands.offset_calls import (
    Place,
    commit_all,
    conclude,
    delete_all,
    fetch,
    lacking,
    parse_change,
    select,
    show_plan,
    warn_of_members,
)
from holdfast.cli.connect import Cluster
from holdfast.cli.ending import fail
from holdfast.cli.names import group_name
from holdfast.cli.options import (
    INT64_MAX,
    as_json,
    asks_cluster,
    refuse,
    require_group,
    show_json,
    table,
)
from holdfast.cli.render.speaking import say
from holdfast.cli.render.times import ago_log

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from holdfast.v1 import offset_pb2 as o


@click.group()
def offsets() -> None:
    """List, set, reset and delete committed offsets."""


_dry_run = click.option("--dry-run", is_flag=True, help="Show what would be done; change nothing.")
_topics = click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC[:N,N]",
    help="A topic, or partitions of it; repeatable. Default: all that the group has.",
)


@offsets.command("list")
@click.argument("group_id", metavar="GROUP", callback=group_name)
@_topics
@as_json
@asks_cluster
def list_offsets(
    cluster: Cluster, group_id: str, topics: tuple[str, ...], *, as_json: bool
) -> None:
    """Show the offsets that a group has committed.

    A topic that is named and has none is told, with exit code 1; `--json` just leaves it out.
    """
    response, found = fetch(cluster, group_id)
    chosen = select(found, topics)
    if as_json:
        _keep(response, chosen)
        show_json(response)
    if not found:
        require_group(cluster, group_id)
    if as_json:
        return
    _show(chosen, response.holdfast.log_time_ms)
    missing = lacking(found, topics)
    if missing:
        fail(f"{_has_none(group_id, missing)}; see `holdfast offsets list {group_id}`")
    if not found:
        say(_has_none(group_id))


def _show(chosen: Mapping[Place, o.OffsetFetchResponsePartition], now_ms: int) -> None:
    """Print one line an offset; print no table if there are none."""
    if chosen:
        table(
            ("TOPIC", "PARTITION", "OFFSET", "COMMITTED", "METADATA"),
            (
                (topic, number, p.committed_offset, _age(p, now_ms), p.metadata or "-")
                for (topic, number), p in chosen.items()
            ),
        )


def _has_none(group_id: str, missing: Sequence[str] = ()) -> str:
    of = f" of {', '.join(missing)}" if missing else ""
    return f"group {group_id} has no committed offset{of}"


def _keep(response: o.OffsetFetchResponse, chosen: Container[Place]) -> None:
    """Remove from the answer what was not asked for."""
    for topic in response.groups[0].topics:
        kept = [p for p in topic.partitions if Place(topic.name, p.partition_index) in chosen]
        del topic.partitions[:]
        topic.partitions.extend(kept)


def _age(partition: o.OffsetFetchResponsePartition, now_ms: int) -> str:
    extra = partition.holdfast
    return ago_log(extra.committed_ms, now_ms) if extra.HasField("committed_ms") else "-"


@offsets.command()
@click.argument("group_id", metavar="GROUP", callback=group_name)
@click.argument("changes", nargs=-1, required=True, metavar="TOPIC:PARTITION=OFFSET...")
@click.option("--metadata", default="", help="Kept beside each offset.")
@_dry_run
@as_json
@asks_cluster
def commit(
    cluster: Cluster,
    group_id: str,
    changes: tuple[str, ...],
    metadata: str,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Set offsets; the group is made if it does not exist."""
    wanted = dict(map(parse_change, changes))
    _, found = fetch(cluster, group_id)
    commit_all(cluster, group_id, found, wanted, metadata, dry_run=dry_run, as_json=as_json)


def _chosen(
    cluster: Cluster,
    group_id: str,
    found: Mapping[Place, o.OffsetFetchResponsePartition],
    topics: tuple[str, ...],
) -> dict[Place, o.OffsetFetchResponsePartition]:
    """Select the offsets to change; ends the command if a named one does not exist."""
    if not found:
        require_group(cluster, group_id)
    chosen, missing = select(found, topics), lacking(found, topics)
    if missing or not chosen:
        fail(
            f"{_has_none(group_id, missing)}, so nothing was done; see `holdfast offsets list "
            f"{group_id}`"
        )
    return chosen


@offsets.command()
@click.argument("group_id", metavar="GROUP", callback=group_name)
@_topics
@click.option("--to-offset", type=click.IntRange(0, INT64_MAX), help="Set them to this.")
@click.option(
    "--shift-by",
    type=click.IntRange(-INT64_MAX, INT64_MAX),
    help="Move them by so much; never below 0.",
)
@_dry_run
@as_json
@asks_cluster
def reset(
    cluster: Cluster,
    group_id: str,
    topics: tuple[str, ...],
    to_offset: int | None,
    shift_by: int | None,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Set or move the offsets that a group has; metadata beside them goes."""
    if (to_offset is None) == (shift_by is None):
        raise click.UsageError("say one of --to-offset and --shift-by")
    _, found = fetch(cluster, group_id)
    chosen = _chosen(cluster, group_id, found, topics)
    wanted = {
        place: _shifted(p.committed_offset, shift_by or 0) if to_offset is None else to_offset
        for place, p in chosen.items()
    }
    commit_all(cluster, group_id, found, wanted, "", dry_run=dry_run, as_json=as_json)


def _shifted(offset: int, by: int) -> int:
    return min(INT64_MAX, max(0, offset + by))


@offsets.command()
@click.argument("group_id", metavar="GROUP", callback=group_name)
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC[:N,N]...")
@_dry_run
@as_json
@asks_cluster
def delete(
    cluster: Cluster, group_id: str, topics: tuple[str, ...], *, dry_run: bool, as_json: bool
) -> None:
    """Forget offsets; refused for topics that a member subscribes to."""
    _, found = fetch(cluster, group_id)
    chosen = _chosen(cluster, group_id, found, topics)
    if dry_run:
        plan = [(place, p.committed_offset, None) for place, p in chosen.items()]
        show_plan(plan, as_json=as_json)
        warn_of_members(cluster, group_id, as_json=as_json)
        return

    response = delete_all(cluster, group_id, chosen)
    if as_json:
        show_json(response)
    refuse(response, "group", group_id)
    conclude(response, "deleted", as_json=as_json)
