"""The parts of checkpoints that a fold leaves behind, at ends of segments that it passes.

A checkpoint of a run has a file for each bucket of groups, and one for what belongs to no group, so
that each worker of a later run reads its own alone. Each is of the form that retention leaves
behind (`segments.checkpoint`), made by the task that has the state: a part comes as chunks of its
bytes. Runs in Spark's workers, and imports no Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from holdfast.coordinator.model.ids import Position
from holdfast.replay.read.log_rows import Bucket, ResultRow
from holdfast.replay.read.node_logs import NodeLog
from holdfast.storage.codec.event_codec import CHAIN_START
from holdfast.storage.codec.state_image import DIGEST_SPAN
from holdfast.storage.segments.checkpoint import Checkpoint, encode_checkpoint
from holdfast.storage.state.state_stream import StreamedRecord

STOOD: Final = "stood"
"""Tag of a row: key = which stand, content = a part of the digest there; of the part that has the
chain, text = its head in hexadecimal, kind = log time and recovery number, idx and ordinal = the
last record."""

PART: Final = "part"
"""Tag of a row: key = the name of the bucket, "" for what belongs to no group; content = a chunk of
the part's bytes; idx = which chunk."""


class Stand(NamedTuple):
    """The end of a segment at which a fold is to tell where it stands."""

    last: Position
    keep: bool
    """Whether its state is wanted, beside chain and digest."""


class Stop(NamedTuple):
    """A stand as a task knows it: when it has read so many of its files."""

    number: int
    last: Position
    files: int
    keep: bool


class Stood(NamedTuple):
    """Where a fold stood at a stand."""

    last: Position
    """The last record up to there, which the segment should end with."""
    chain: bytes
    digest: int
    log_time_ms: int
    recovery_number: int


def stops_of(log: NodeLog, stands: Sequence[Stand]) -> tuple[Stop, ...]:
    """Return behind how many segments of a log each stand is."""
    filled = [segment for segment in log.segments if segment.files]
    return tuple(
        Stop(number, stand.last, sum(s.ends.last <= stand.last for s in filled), stand.keep)
        for number, stand in enumerate(stands)
    )


def stops_in(log: NodeLog, stands: Sequence[Stand], bucket: Bucket) -> tuple[Stop, ...]:
    """Return behind how many files of a bucket each stand is."""
    return tuple(
        Stop(number, stand.last, _files_before(log, stand.last, bucket), stand.keep)
        for number, stand in enumerate(stands)
    )


def _files_before(log: NodeLog, last: Position, bucket: Bucket) -> int:
    before = {path for s in log.segments if s.ends.last <= last for path in s.files}
    return sum(source.path in before for source in bucket.sources)


def part_rows(
    stop: Stop,
    bucket: str,
    part: Checkpoint,
    digest: int,
    others: Callable[[], Iterable[StreamedRecord]] = tuple,
) -> Iterator[ResultRow]:
    """Make the rows of a task's part. `digest`: what it adds to that of the whole state.

    `others`: reads what the task has not taken up of groups, as the last checkpoint has it.
    """
    content = (digest % DIGEST_SPAN).to_bytes(8, "big")
    number, head, told = str(stop.number), "", ""
    if not bucket:
        head = part.heads.get("", CHAIN_START).hex()
        told = f"{part.state.log_time_ms} {part.state.recovery_number}"
    yield ResultRow(STOOD, "", told, number, head, content, *part.last)
    if stop.keep:
        for nth, chunk in enumerate(encode_checkpoint(part, others())):
            yield ResultRow(PART, key=bucket, content=chunk, idx=nth)


def stood(rows: Sequence[ResultRow], stands: Sequence[Stand]) -> list[Stood]:
    """Put the parts of all tasks together: where the fold stood at each stand."""
    found = []
    for number in range(len(stands)):
        mine = [row for row in rows if row.key == str(number)]
        (whole,) = (row for row in mine if row.text)
        digest = sum(int.from_bytes(row.content, "big") for row in mine) % DIGEST_SPAN
        place, chain = Position(whole.idx, whole.ordinal), bytes.fromhex(whole.text)
        found.append(Stood(place, chain, digest, *map(int, whole.kind.split())))
    return found
