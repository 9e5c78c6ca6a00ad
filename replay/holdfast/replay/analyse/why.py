"""Why one group has one generation, or epoch: what `holdfast group explain` tells, of any time.

A node keeps the last few rebalances of a group; the log has all of them. The group's records are
folded beside the projection that the nodes use, so both tell the same. One group lies in one file
of each segment: these are read here, one after the other. No Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from holdfast.coordinator.kernel.apply import replay
from holdfast.coordinator.kernel.group_types import TYPES
from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.events import Record
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.state import Group, State
from holdfast.coordinator.model.text import truncate
from holdfast.coordinator.projections.history import Histories, History, Rebalance
from holdfast.coordinator.projections.rebalances import followed
from holdfast.coordinator.structures.pmap import PMap
from holdfast.replay.read.log_rows import START, Cut, read_rows
from holdfast.replay.read.node_logs import NodeLog, buckets_of
from holdfast.storage.codec.event_codec import CodecError, decode_record
from holdfast.storage.codec.state_image import group_of
from holdfast.storage.segments.checkpoint import CheckpointFlawed
from holdfast.storage.segments.segments import bucket_file, bucket_of


class Explained(NamedTuple):
    """A rebalance, or the raise of an epoch."""

    rebalance: Rebalance
    is_epoch: bool
    """Of the heartbeat protocol."""
    newest: int
    """The group's last generation or epoch in the log."""


def rebalance_to(log: NodeLog, group_id: str, generation: int) -> Explained:
    """Return the rebalance that led to a generation of a group, or the raise of an epoch.

    Of a group that was deleted and made again, that of its last life. Raises ValueError if the log
    does not tell of it, or is damaged there.
    """
    told = dict[int, tuple[Rebalance, bool]]()
    for history, is_epoch in _histories(log, group_id):
        told |= {each.generation: (each, is_epoch) for each in history if each.generation}
    if generation in told:
        return Explained(*told[generation], next(reversed(told)))
    known = f"it tells of {min(told)} to {max(told)}" if told else "it tells of none"
    raise ValueError(
        f"the log, from {log.begins} on, tells of no generation or epoch {generation} of the group "
        f"{truncate(group_id)!r}: {known}"
    )


def _histories(log: NodeLog, group_id: str) -> Iterator[tuple[History, bool]]:
    """Yield what is remembered of a group after each of its records, and whether it has epochs."""
    state = State(groups=PMap(_beginning(log, group_id)))
    histories: Histories = PMap()
    is_known = group_id in state.groups
    for record in _records(log, group_id):
        is_known = True
        before = state.groups.get(group_id)
        try:
            state = replay(state, (record,))
        except InvariantBroken as error:
            raise ValueError(_damaged(record.position, str(error))) from error
        after = state.groups.get(group_id)
        histories = followed(histories, TYPES, ((before, record, after),))
        has_epochs = after is not None and TYPES[after.group_type].has_epochs
        yield histories.get(group_id, ()), has_epochs
    if not is_known:
        raise ValueError(f"there is no group {truncate(group_id)!r} in the log of {log.node}")


def _beginning(log: NodeLog, group_id: str) -> list[tuple[str, Group[Any]]]:
    """Return the group as it was where the log begins, if it was there."""
    try:
        groups = log.begins.read(lambda key: group_of(key) == group_id).state.groups
    except CheckpointFlawed as error:
        raise ValueError(str(error)) from error
    return [(group_id, groups[group_id])] if group_id in groups else []


def _records(log: NodeLog, group_id: str) -> Iterator[Record]:
    last = START
    bucket = buckets_of(log).get(bucket_file(bucket_of(group_id)))
    for source in bucket.sources if bucket else ():
        for row in read_rows(source, Cut()):
            place = Position(row["idx"], row["ordinal"])
            if row["grp"] != group_id or place <= last:
                continue
            last = place
            try:
                yield decode_record(row["payload"])
            except CodecError as error:
                raise ValueError(_damaged(place, error.what)) from error


def _damaged(place: Position, why: str) -> str:
    return (
        f"the record at {place.index}.{place.ordinal} cannot be followed: {why}. See what is wrong "
        "with `holdfast replay verify`"
    )
