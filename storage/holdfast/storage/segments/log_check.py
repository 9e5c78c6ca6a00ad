"""Check the event logs of nodes, each by itself and against each other, without Spark.

For each node: the bytes of its segments' files, their digests, the hash chains, positions and
counts without a gap (S3, S22). For several nodes: the same record at the same position.
`holdfast.replay` checks what events mean. Knows segments and records; no LMDB, no Raft.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from holdfast.coordinator.model.events import (
    GroupCreated,
    GroupDeleted,
    HistoryCut,
    Record,
    RequestRecorded,
)
from holdfast.coordinator.model.ids import Position
from holdfast.storage.codec.event_codec import (
    CHAIN_START,
    CodecError,
    chain_hash,
    decode_record,
    split_chain,
)
from holdfast.storage.segments.fast_hash import fast_hash
from holdfast.storage.segments.file_contents import other_contents, other_counts
from holdfast.storage.segments.segment_reader import boundary_in
from holdfast.storage.segments.segments import (
    FIRST_FORMAT,
    Manifest,
    Row,
    block_digests,
    read_manifest,
    read_rows,
    record_hash,
)

_START: Final = Position(0, 0)


class Flaw(NamedTuple):
    """A fault in a node's log, and where it is."""

    node: str
    position: Position | None
    text: str

    def __str__(self) -> str:
        """Format it as one line for people."""
        at = f" at {self.position.index}.{self.position.ordinal}" if self.position else ""
        return f"{self.node}{at}: {self.text}"


class LogStart(NamedTuple):
    """Where a log begins whose first records were cut off: what a checkpoint says of them (S24)."""

    last: Position
    total: bytes
    """Head of the chain over all records."""
    heads: Mapping[str, bytes]
    """Head of each group's chain."""
    counts: Mapping[str, int]
    """The number of the last record of each group, and of the cluster itself ("")."""
    digest: bytes = b""
    """That of the checkpoint, which the cut on the log tells, too; empty: there is none."""
    log_time_ms: int = 0
    """Of its last record."""


FROM_THE_FIRST: Final = LogStart(_START, CHAIN_START, {}, {})


class NodeLog(NamedTuple):
    """The content of a node's log."""

    node: str
    hashes: dict[Position, int]  # by position, in the order of the log
    whole: bool  # whether it starts at the beginning of the log, or where it was cut off
    flaws: list[Flaw]
    head: bytes | None  # of the chain over all records; None: the records at hand do not tell it
    cut: Position | None = None  # a checkpoint stands for the records up to it


def check_node(
    node: str, segments: Sequence[Path], rest: Sequence[Row], start: LogStart = FROM_THE_FIRST
) -> NodeLog:
    """Read a node's whole log: its segments in order, then the rows that are not sealed."""
    flaws: list[Flaw] = []
    chains = Chains(node, flaws, start)
    for path in segments:
        chains.piece(read_piece(node, path, flaws))
    chains.piece(rest)
    cut = start.last if start.last > _START else None
    return NodeLog(node, chains.hashes, chains.whole, flaws, chains.head, cut)


def compare(logs: Sequence[NodeLog]) -> Iterator[Flaw]:
    """Yield where each node first differs from the first node, over what both have (S3, S22)."""
    for other in logs[1:]:
        reference = logs[0]
        if not reference.hashes or not other.hashes:
            continue
        low = max(next(iter(reference.hashes)), next(iter(other.hashes)))
        high = min(max(reference.hashes), max(other.hashes))
        for position in sorted({*reference.hashes, *other.hashes}):
            mine, theirs = reference.hashes.get(position), other.hashes.get(position)
            if low <= position <= high and mine != theirs:
                yield Flaw(other.node, position, f"{_difference(mine, theirs)} {reference.node}")
                break


def _difference(mine: int | None, theirs: int | None) -> str:
    if mine is None:
        return "it holds a record that is not in the log of"
    if theirs is None:
        return "it lacks a record that is in the log of"
    return "its record is another one than that of"


def unreadable() -> tuple[type[Exception], ...]:
    """Return what reading a damaged segment may raise."""
    import pyarrow as pa  # noqa: PLC0415 - slow to load, and no start needs it

    return (OSError, ValueError, KeyError, TypeError, CodecError, pa.ArrowException)


def read_piece(node: str, segment: Path, flaws: list[Flaw]) -> list[Row]:
    """Read the rows of a segment, and compare its files and these rows with its manifest."""
    said: list[str] = []
    try:
        manifest = read_manifest(segment)
        said += other_contents(segment, manifest)
        rows = read_rows(segment)
        said += _other_records(segment, manifest, rows)
    except unreadable() as error:
        text = f"segment {segment.name} cannot be read: {error}; fetch it from another node"
        flaws += [*_flaws(node, segment, said), Flaw(node, None, text)]
        return []
    if len(rows) != manifest.count:
        text = f"segment {segment.name} has {len(rows)} records, its manifest {manifest.count}"
        flaws.append(Flaw(node, Position(*manifest.first), text))
    flaws += _flaws(node, segment, said)
    return rows


def _flaws(node: str, segment: Path, said: Sequence[str]) -> list[Flaw]:
    return [Flaw(node, None, f"segment {segment.name}: {text}") for text in said]


def _other_records(segment: Path, manifest: Manifest, rows: Sequence[Row]) -> Iterator[str]:
    """Yield in which blocks and files there are other records than the manifest says."""
    pairs = [(row.position, split_chain(row.content)[0]) for row in rows]
    blocks = {*block_digests(pairs)} ^ {*manifest.blocks}
    if manifest.format_version > FIRST_FORMAT:
        blocks |= {*block_digests(pairs, fast_hash)} ^ {*manifest.fast_blocks}
    for number in sorted({block.block for block in blocks}):
        yield f"the digest of block {number} is not the manifest's"
    yield from other_counts(segment, manifest)


class Chains:
    """Checks a log record by record. After a flaw it continues from the stored values."""

    def __init__(
        self,
        node: str,
        flaws: list[Flaw],
        start: LogStart = FROM_THE_FIRST,
        each: Callable[[Record], None] = lambda _: None,
    ) -> None:
        """`flaws`: takes what is found. `each`: called with each record that can be read."""
        self.hashes: dict[Position, int] = {}
        self.whole = True
        self._node, self._flaws, self._each = node, flaws, each
        self._start = start
        self._last = start.last
        self._total: bytes | None = start.total
        self._heads = dict(start.heads)
        self._counts = dict(start.counts)
        self._lost = False

    @property
    def last(self) -> Position:
        """The last record that was seen."""
        return self._last

    @property
    def heads(self) -> Mapping[str, bytes]:
        """The head of each group's chain."""
        return self._heads

    @property
    def head(self) -> bytes | None:
        """The head of the chain over all records; None where none of the cluster's own told it."""
        return self._total

    def piece(self, rows: Sequence[Row]) -> None:
        """Take in a segment, or the unsealed rows; rows that repeat earlier ones are skipped."""
        fresh = [row for row in rows if row.position > self._last]
        if not fresh:
            return
        before = self._before(rows)
        if before is not None and before > self._last:
            self._missing(before, fresh[0].position)
        for position, content in fresh:
            self._record(position, content)

    def _before(self, rows: Sequence[Row]) -> Position | None:
        try:
            return boundary_in([split_chain(row.content)[0] for row in rows], rows[0].position)
        except CodecError:
            return None  # `_record` reports it as a flaw

    def _missing(self, before: Position, first: Position) -> None:
        """Start over behind a gap: only the records themselves tell the chains there."""
        begins = self._last == _START
        self._total, self._lost = None, True
        self._heads.clear()
        self._counts.clear()
        self.whole = False
        if not begins:
            text = (
                f"records up to {before.index}.{before.ordinal} are missing; fetch the segments "
                "from another node"
            )
            self._flaw(first, text)

    def _record(self, position: Position, content: bytes) -> None:
        self._ordinal(position)
        try:
            payload, chain = split_chain(content)
            record = decode_record(payload)
        except CodecError as error:
            self._flaw(position, f"the record cannot be read: {error}")
            self._total, self._lost = None, True
            return
        if record.position != position:
            self._flaw(position, f"the record says that it stands at {record.position}")
        self.hashes[position] = record_hash(position, payload)
        self._link(record, payload, chain)
        self._count(record)
        self._cut(record)
        self._each(record)

    def _ordinal(self, position: Position) -> None:
        due = self._last.ordinal + 1 if position.index == self._last.index else 0
        if position.ordinal != due:
            self._flaw(position, f"record {due} of its entry is missing")
        self._last = position

    def _link(self, record: Record, payload: bytes, chain: bytes) -> None:
        if self._total is not None:
            self._total = chain_hash(self._total, payload)
        due = self._total
        if record.group_id:
            head = self._heads.get(record.group_id, None if self._lost else CHAIN_START)
            due = None if head is None else chain_hash(head, payload)
            self._heads[record.group_id] = chain
        else:
            self._total = chain
        if due is not None and due != chain:
            which = f"of group {record.group_id!r}" if record.group_id else "over all records"
            self._flaw(record.position, f"the hash chain {which} does not go on here")

    def _count(self, record: Record) -> None:
        """Check that the records of a group's life are counted without a gap (S3).

        Records for the dedupe table of a deleted group (S15) are not counted.
        """
        group, event = record.group_id, record.event
        known = group in self._counts or not self._lost
        before = 0 if isinstance(event, GroupCreated) else self._counts.get(group, 0)
        uncounted = isinstance(event, RequestRecorded) and group and group not in self._counts
        if known and not uncounted and record.group_seq != before + 1:
            self._flaw(record.position, f"record {record.group_seq} follows record {before}")
        if isinstance(event, GroupDeleted):
            self._counts.pop(group, None)
        elif not uncounted:
            self._counts[group] = record.group_seq

    def _cut(self, record: Record) -> None:
        """Compare the checkpoint that stands for what is gone with the cut that asked for it."""
        event, start = record.event, self._start
        if not isinstance(event, HistoryCut) or event.last != start.last:
            return
        if event.digest != start.digest:
            self._flaw(
                record.position,
                f"the checkpoint at {start.last.index}.{start.last.ordinal} has the digest "
                f"{start.digest.hex()[:16]}, and the log says {event.digest.hex()[:16]}",
            )

    def _flaw(self, position: Position, text: str) -> None:
        self._flaws.append(Flaw(self._node, position, text))
