"""What a worker does with a bucket: fold the coordinator's own `evolve`, and check each record.

A bucket holds some groups, each over its whole life, so nothing is shuffled and one state is in
memory. The result are the records that `storage.state_image` takes its digest over, and the same
groups in words, for comparison with `sql_state`. Runs in Spark's workers, and imports no Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from holdfast.coordinator.broken import InvariantBroken
from holdfast.coordinator.events import Record, RequestRecorded
from holdfast.coordinator.ids import Position
from holdfast.coordinator.pmap import PMap
from holdfast.coordinator.replay import replay
from holdfast.coordinator.state import Group, State
from holdfast.replay.read.log_rows import (
    COUNT,
    ENTRY,
    RECORD,
    START,
    Cut,
    Line,
    Notes,
    Out,
    Source,
    contradictions,
    read_lines,
)
from holdfast.storage.codec import CHAIN_START, CodecError, chain_hash, decode_record
from holdfast.storage.state_image import GROUPS, changes


def fold_bucket(sources: Sequence[Source], cut: Cut) -> Iterator[Out]:
    """Fold the groups of some files, given in the order of the log."""
    bucket = _Bucket()
    for source in sources:
        for line in read_lines(source, cut):
            if line["grp"]:
                bucket.step(line)
    yield from bucket.notes.rows
    yield Out(COUNT, idx=bucket.count)
    for group in bucket.state.groups.values():
        yield from _records_of(group)
        if group.group_id not in bucket.broken:
            yield from entries_of(group)


def _records_of(group: Group) -> Iterator[Out]:
    """The state records of a group: what the digest of a state is the sum over."""
    alone = State(groups=PMap([(group.group_id, group)]))
    for change in changes(State(), alone):
        if change.database == GROUPS and change.content is not None:
            yield Out(RECORD, group.group_id, key=change.database, content=change.content)


def entries_of(group: Group) -> Iterator[Out]:
    """A group as keys and values in words, the same that `sql_state` finds in its own way."""
    name = group.group_id
    yield Out(ENTRY, name, "generation", "", str(group.generation))
    for member in group.members.values():
        yield Out(ENTRY, name, "member", member.member_id, member.instance_id or "")
        granted = f"{member.granted_index}:{member.assignment.hex()}"
        yield Out(ENTRY, name, "grant", member.member_id, granted)
    for instance_id, member_id in group.instances.items():
        yield Out(ENTRY, name, "instance", instance_id, member_id)
    for place, offset in group.offsets.items():
        yield Out(ENTRY, name, "offset", f"{place.topic}/{place.partition}", str(offset.offset))


@dataclass(slots=True)
class _Bucket:
    """Groups that are being folded. `broken`: those whose fold had to stop."""

    state: State = field(default_factory=State)
    heads: dict[str, bytes] = field(default_factory=dict)
    last: dict[str, Position] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    notes: Notes = field(default_factory=Notes)
    count: int = 0

    def step(self, line: Line) -> None:
        """Take in one record: its place, its chain, its bytes, its rule."""
        group_id, place = line["grp"], Position(line["idx"], line["ordinal"])
        if place <= self.last.get(group_id, START):
            self.notes.add("duplicated", line, "the record is there more than once")
            return
        self.count += 1
        self.last[group_id] = place
        head = self.heads.get(group_id, CHAIN_START)
        if chain_hash(head, line["payload"]) != line["chain"]:
            self.notes.add(
                "chain", line, "the hash chain of the group breaks between here and before"
            )
        self.heads[group_id] = line["chain"]
        record = self._decode(line)
        if record is not None and group_id not in self.broken:
            self._evolve(line, record)

    def _decode(self, line: Line) -> Record | None:
        try:
            record = decode_record(line["payload"])
        except CodecError as error:
            self.notes.add("payload", line, f"the payload cannot be read: {error.what}")
            self.broken.add(line["grp"])
            return None
        wrong = contradictions(line, record)
        if wrong:
            self.notes.add("payload", line, f"{', '.join(wrong)} contradict the payload")
        return record

    def _evolve(self, line: Line, record: Record) -> None:
        """A group that breaks a rule is left as it is, as every node leaves it (S6)."""
        try:
            state = replay(self.state, (record,))
        except InvariantBroken as error:
            self.notes.add("rules", line, f"evolve refuses the {line['type']}: {error}")
            self.broken.add(line["grp"])
            return
        if isinstance(record.event, RequestRecorded):  # `cluster_fold` keeps them: it sees them all
            state = _without_requests(state)
        self.state = state


def _without_requests(state: State) -> State:
    empty = State()
    return state._replace(
        requests=empty.requests,
        requests_by_number=empty.requests_by_number,
        requests_next=empty.requests_next,
        requests_floor_ms=empty.requests_floor_ms,
    )
