"""Check records of one node without folding them: payloads, the columns beside them, and chains.

For what is not folded because another node's log is, or because records before it are missing: a
chain that is not known goes on with what the first record behind the gap says. Runs in Spark's
workers, and imports no Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from holdfast.coordinator.model.ids import Position
from holdfast.replay.read.log_rows import (
    Beginning,
    Bucket,
    Cut,
    FindingRows,
    LogRow,
    ResultRow,
    Source,
    contradictions,
    read_rows,
    read_rows_in_order,
)
from holdfast.replay.read.urls import folder_of
from holdfast.storage.codec.event_codec import CHAIN_START, CodecError, chain_hash, decode_record

_ALL = Cut()


class Piece(NamedTuple):
    """Files that follow on each other; `gap`: records before them are missing."""

    sources: tuple[Source, ...]
    gap: bool


def check_bucket(pieces: Sequence[Piece], bucket: Bucket) -> Iterator[ResultRow]:
    """Check a bucket's records, those of the cluster's own chain but for their chain."""
    check = _BucketCheck(dict(bucket.checkpoint().heads))
    for piece in pieces:
        if piece.gap:
            check.forget()
        for source in piece.sources:
            check.findings.file = source.path
            for row in read_rows(source, _ALL):
                check.step(row)
    yield from check.findings.rows


def check_whole_chain(pieces: Sequence[Piece], begins: Beginning) -> Iterator[ResultRow]:
    """Check the chain over all records; each piece holds the files of one segment."""
    findings = FindingRows()
    head: bytes | None = begins.read(lambda _: False).heads.get("", CHAIN_START)
    last = begins.last
    for piece in pieces:
        head = None if piece.gap else head
        findings.file = folder_of(piece.sources[0].path)
        for row in read_rows_in_order(piece.sources, _ALL):
            place = Position(row["idx"], row["ordinal"])
            if place <= last:
                continue  # there more than once: the form of the file tells
            last = place
            head = None if head is None else chain_hash(head, row["payload"])
            if not row["grp"]:
                if head not in {None, row["chain"]}:
                    text = "the hash chain over all records breaks before here"
                    findings.add("chain", row, text)
                head = row["chain"]
    yield from findings.rows


@dataclass(slots=True)
class _BucketCheck:
    """The head of each group's chain so far. `whole`: no record before is missing."""

    heads: dict[str, bytes]
    whole: bool = True
    last: dict[str, Position] = field(default_factory=dict)
    findings: FindingRows = field(default_factory=FindingRows)

    def forget(self) -> None:
        """Go on behind a gap."""
        self.heads.clear()
        self.whole = False

    def step(self, row: LogRow) -> None:
        """Check the next record of the bucket."""
        group, place = row["grp"], Position(row["idx"], row["ordinal"])
        if place > self.last.get(group, Position(-1, 0)):
            self.last[group] = place
            if group:
                self._link(row)
        self._payload(row)

    def _link(self, row: LogRow) -> None:
        group = row["grp"]
        before = self.heads.get(group, CHAIN_START if self.whole else None)
        if before is not None and chain_hash(before, row["payload"]) != row["chain"]:
            text = "the hash chain of the group breaks between here and before"
            self.findings.add("chain", row, text)
        self.heads[group] = row["chain"]

    def _payload(self, row: LogRow) -> None:
        try:
            wrong = contradictions(row, decode_record(row["payload"]))
        except CodecError as error:
            self.findings.add("payload", row, f"the payload cannot be read: {error.what}")
        except Exception as error:  # noqa: BLE001 - whatever a forged record leads to
            self.findings.add("payload", row, f"the payload cannot be read: {error!r}")
        else:
            if wrong:
                text = f"{', '.join(wrong)} contradict the payload"
                self.findings.add("payload", row, text)
