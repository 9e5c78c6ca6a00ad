"""Who owned one partition at one place of the log, since when, by which event, and who before.

The records of the groups that may have had it are followed up to that place, by the timelines that
the report is made of. One file of each segment is read if the group is known, else all of them.
Reads files one after the other; no Spark. Times are log time in milliseconds (S8).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from holdfast.coordinator.model.events import (
    AssignmentStored,
    Event,
    OffsetsCommitted,
    OffsetsDeleted,
    Record,
    RecoveryNumberRaised,
    RequestRecorded,
)
from holdfast.coordinator.model.ids import MemberId, Position, TopicPartition, fencing_token
from holdfast.coordinator.model.membership import line_of
from holdfast.coordinator.model.text import truncate
from holdfast.replay.analyse.beginnings import owned_by
from holdfast.replay.analyse.intervals import Interval
from holdfast.replay.analyse.ownership import OwnershipTimeline
from holdfast.replay.read.log_rows import Bucket, Cut, Source
from holdfast.replay.read.node_logs import NodeLog, buckets_of
from holdfast.storage.codec.event_codec import CodecError, decode_record
from holdfast.storage.segments.checkpoint import CheckpointFlawed
from holdfast.storage.segments.segments import bucket_file, bucket_of

BEFORE_MAX: Final = 5
"""Owners of the past that are told, the last ones."""
NAMED_MAX: Final = 10
"""Groups that a refusal names."""

_SILENT: Final = pa.array(
    kind.__name__ for kind in (OffsetsCommitted, OffsetsDeleted, RequestRecorded)
)
_COLUMNS: Final = ("idx", "ordinal", "grp", "type", "log_time_ms", "payload")


class Step(NamedTuple):
    """A record that began or ended somebody's time with the partition."""

    position: Position
    log_time_ms: int
    wall_time_ms: int
    event: str
    rule: str
    command: str
    principal: str
    generation: int | None
    """The generation or epoch that the event names."""


class Owner(NamedTuple):
    """One owner's time with the partition, from one grant or restart on."""

    member_id: str
    instance_id: str | None  # None: a dynamic member
    token: int  # S13
    since_ms: int
    begun: Step | None
    """None: it is older than the log, which begins at a checkpoint; `since_ms` is where that is."""
    until_ms: int | None = None  # None: it had not ended
    how: str = ""
    """How it ended: as `Interval.ended`."""
    ended: Step | None = None


class Owned(NamedTuple):
    """The answer. Usually one owner at most; two of a damaged or forged history are both told."""

    group: str
    topic: str
    partition: int
    at: Position
    """The last record of the group that counts."""
    log_time_ms: int
    is_heartbeat: bool
    """The group was of the heartbeat protocol then, and has epochs."""
    owners: tuple[Owner, ...]
    before: tuple[Owner, ...]  # the newest first


def owner_of(log: NodeLog, place: TopicPartition, cut: Cut, group: str | None = None) -> Owned:
    """Return who owned a partition at a place of the log.

    `group`: whose owners are meant; needed if several groups owned it then. Raises ValueError if
    that is not known, if the log tells of no such group, topic or partition up to there, or is
    damaged there.
    """
    buckets = buckets_of(log)
    number = _recovery_number(log, buckets.get(bucket_file(bucket_of(""))), cut)
    wanted = buckets.keys() if group is None else {bucket_file(bucket_of(group))}
    follows = list[_Follow]()
    for name in sorted(wanted & buckets.keys()):
        follows += _followed(buckets[name], cut, group, place)
    if group is not None and not follows:
        raise ValueError(
            f"there is no group {truncate(group)!r} up to there in the log of {log.node}, which "
            f"begins at {log.begins}"
        )
    return _chosen(follows, place, group).told(place, number)


@dataclass(slots=True)
class _Follow:
    """One group's timeline, and what became of one partition in it."""

    timeline: OwnershipTimeline
    at: Position
    begun: dict[MemberId, Step | None] = field(default_factory=dict)
    """The members that own it, with the records by which their time began."""
    had: set[TopicPartition] = field(default_factory=set)
    """All partitions that a member had, and has not any more."""
    before: deque[tuple[Interval, Step | None, Step]] = field(
        default_factory=lambda: deque(maxlen=BEFORE_MAX)
    )

    def step(self, record: Record, place: TopicPartition) -> None:
        """Take in a record."""
        self.at = record.position
        held, told = self.timeline.ledger.held, _step(record)
        for each in self.timeline.step(record):
            self.had.add(TopicPartition(each.topic, each.partition))
            if (each.topic, each.partition) == place:
                self.before.append((each, self.begun.pop(each.member_id, None), told))
        for member_id in _granted(record.event):
            if (place, member_id) in held:
                self.begun.setdefault(member_id, told)

    def told(self, place: TopicPartition, recovery_number: int) -> Owned:
        """Return the answer; tokens are of the recovery number that counted then."""
        held = self.timeline.ledger.held
        current = [
            _owner(whose, grant.owner, grant.token, grant.start_ms, begun)
            for whose, begun in sorted(self.begun.items(), key=itemgetter(0))
            for grant in (held[place, whose],)
        ]
        past = [
            _owner(each.member_id, each.owner, each.token, each.start_ms, begun)._replace(
                until_ms=each.end_ms, how=each.ended, ended=ended
            )
            for each, begun, ended in reversed(self.before)
        ]
        return Owned(
            self.timeline.group,
            *place,
            self.at,
            self.timeline.now_ms,
            self.timeline.stepwise is not None,
            tuple(_numbered(each, recovery_number) for each in current),
            tuple(_numbered(each, recovery_number) for each in past),
        )


def _granted(event: Event) -> Collection[MemberId]:
    """Return the members that an event may have granted something."""
    line = line_of(event)
    if isinstance(event, AssignmentStored):
        return [member_id for member_id, _ in event.assignments]
    return (*line.came(event), *line.named(event))


def _owner(member_id: str, owner: str, token: int, since_ms: int, begun: Step | None) -> Owner:
    return Owner(member_id, None if owner == member_id else owner, token, since_ms, begun)


def _numbered(owner: Owner, recovery_number: int) -> Owner:
    return owner._replace(token=fencing_token(recovery_number, owner.token))


def _step(record: Record) -> Step:
    event, cause = record.event, record.cause
    number = getattr(event, "generation", None) or getattr(event, "epoch", None)
    return Step(
        record.position,
        record.log_time_ms,
        record.wall_time_ms,
        type(event).__name__,
        cause.rule,
        cause.command,
        record.principal,
        number,
    )


def _followed(
    bucket: Bucket, cut: Cut, group: str | None, place: TopicPartition
) -> Iterable[_Follow]:
    """Follow the groups of a bucket, or one of them, up to a place of the log."""
    try:
        groups = bucket.checkpoint().state.groups
    except CheckpointFlawed as error:
        raise ValueError(str(error)) from error
    follows = {
        name: _begun(owned_by(each, bucket.begins.log_time_ms), bucket.begins.last, place)
        for name, each in groups.items()
        if group in {None, name}
    }
    for record in _records(bucket, cut, group):
        name = record.group_id
        if name not in follows:
            follows[name] = _Follow(OwnershipTimeline(name), record.position)
        follows[name].step(record, place)
    return follows.values()


def _begun(timeline: OwnershipTimeline, at: Position, place: TopicPartition) -> _Follow:
    owners = [member_id for each, member_id in timeline.ledger.held if each == place]
    return _Follow(timeline, at, dict.fromkeys(owners))


def _chosen(follows: Sequence[_Follow], place: TopicPartition, group: str | None) -> _Follow:
    """Return the group that is meant. Raises ValueError if none had the partition, or several."""
    owning = [each for each in follows if each.begun]
    once = owning or [each for each in follows if each.before]
    if not once:
        raise ValueError(_unheard_of(follows, place, group))
    if len(once) == 1:
        return once[0]
    names = sorted(each.timeline.group for each in once)
    listed = ", ".join(repr(truncate(name)) for name in names[:NAMED_MAX])
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    raise ValueError(
        f"{len(names)} groups {'own' if owning else 'had'} {_shown(place)} there: {listed}{more}. "
        "Name the one that is meant"
    )


def _unheard_of(follows: Iterable[_Follow], place: TopicPartition, group: str | None) -> str:
    """Say that nobody ever had a partition; and which ones of its topic are known, if any are."""
    known = {place for each in follows for place in each.had}
    known |= {place for each in follows for place, _ in each.timeline.ledger.held}
    numbers = sorted(each.partition for each in known if each.topic == place.topic)
    whom = "any group" if group is None else f"the group {truncate(group)!r}"
    if not numbers:
        return (
            f"no partition of a topic {truncate(place.topic)!r} was granted to {whom} up to there"
        )
    return (
        f"{_shown(place)} was not granted to {whom} up to there; of that topic {numbers[0]} to "
        f"{numbers[-1]} were"
    )


def _shown(place: TopicPartition) -> str:
    return f"{truncate(place.topic)}/{place.partition}"


def _recovery_number(log: NodeLog, bucket: Bucket | None, cut: Cut) -> int:
    """Return the number of restores that the cluster had had then: the high part of tokens."""
    try:
        number = log.begins.read(lambda _: False).state.recovery_number
    except CheckpointFlawed as error:
        raise ValueError(str(error)) from error
    if bucket is None:
        return number
    for record in _records(bucket, cut, "", RecoveryNumberRaised.__name__):
        if isinstance(record.event, RecoveryNumberRaised):
            number = record.event.number
    return number


def _records(
    bucket: Bucket, cut: Cut, group: str | None, kind: str | None = None
) -> Iterator[Record]:
    """Yield records up to a place: those of groups that move partitions, or those of one kind."""
    for source in bucket.sources:
        try:
            with pq.ParquetFile(source.path) as file:
                for batch in file.iter_batches(columns=_COLUMNS):
                    yield from map(decode_record, _payloads(batch, source, cut, group, kind))
        except CodecError as error:
            raise ValueError(_unreadable(source, error.what)) from error
        except (OSError, pa.ArrowException, KeyError) as error:
            raise ValueError(_unreadable(source, str(error))) from error


def _payloads(
    batch: pa.RecordBatch, source: Source, cut: Cut, group: str | None, kind: str | None
) -> list[bytes]:
    """Return the payloads that count, and are not in an earlier segment."""
    kept = _behind(batch, source.after)
    if cut.last is not None:
        kept = pc.and_(kept, pc.invert(_behind(batch, cut.last)))
    if cut.log_time_ms is not None:
        kept = pc.and_(kept, pc.less_equal(batch.column("log_time_ms"), cut.log_time_ms))
    name, types = batch.column("grp"), batch.column("type")
    kept = pc.and_(kept, pc.not_equal(name, "") if group is None else pc.equal(name, group))
    silent = pc.is_in(types, value_set=_SILENT)
    kept = pc.and_(kept, pc.invert(silent) if kind is None else pc.equal(types, kind))
    payloads: list[bytes] = batch.filter(kept).column("payload").to_pylist()
    return payloads


def _behind(batch: pa.RecordBatch, place: Position) -> pa.BooleanArray:
    index, ordinal = batch.column("idx"), batch.column("ordinal")
    same = pc.and_(pc.equal(index, place.index), pc.greater(ordinal, place.ordinal))
    return pc.or_(pc.greater(index, place.index), same)


def _unreadable(source: Source, why: str) -> str:
    return (
        f"{source.path} cannot be followed: {truncate(why)}. See what is wrong with `holdfast "
        "replay verify`"
    )
