"""Fold sealed segments into a checkpoint, which is to stand for them (S24).

Each record is checked as `holdfast log verify` does: by its segment's digests, by its place, its
count, and the hash chains. Then it is folded with the rules by which nodes apply it. Nothing is
left out: a log with any flaw, or with a record that the rules refuse, is not folded. Knows
segments and the rules; writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from holdfast.coordinator.kernel.apply import replay
from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.events import Record
from holdfast.coordinator.model.ids import Position
from holdfast.storage.codec.event_codec import chain_hash, decode_record, split_chain
from holdfast.storage.segments.checkpoint import Checkpoint
from holdfast.storage.segments.log_check import Chains, Flaw, read_piece
from holdfast.storage.segments.segments import Row

BATCH: Final = 5_000
_NODE: Final = "the history"


class CannotFold(ValueError):
    """These segments cannot become a checkpoint. The text says why."""


class RecordsMissing(CannotFold):
    """Some of the records are not here."""


def fold(base: Checkpoint, segments: Sequence[Path], last: Position) -> Checkpoint:
    """Fold the records behind `base`, up to and including `last`.

    `segments`: those that hold them, in the order of the log. Raises CannotFold, OSError.
    """
    flaws: list[Flaw] = []
    folding = _Folding(base)
    chains = Chains(_NODE, flaws, base.begin(), folding.add)
    for path in segments:
        rows = read_piece(_NODE, path, flaws)
        chains.piece([row for row in rows if row.position <= last])
        if not chains.whole:
            raise RecordsMissing(f"records before segment {path.name} are missing")
        if flaws:
            raise CannotFold(str(flaws[0]))
    if chains.last != last or chains.head is None:
        raise RecordsMissing(f"records up to {last.index}.{last.ordinal} are missing")
    folding.flush()
    return Checkpoint(last, folding.state, {**chains.heads, "": chains.head})


class _Folding:
    """The state while checked records are folded into it, some thousand at a time."""

    def __init__(self, base: Checkpoint) -> None:
        self.state = base.state
        self._waiting: list[Record] = []

    def add(self, record: Record) -> None:
        self._waiting.append(record)
        if len(self._waiting) >= BATCH:
            self.flush()

    def flush(self) -> None:
        """Fold what waits. Raises CannotFold for a record that the rules refuse."""
        try:
            self.state = replay(self.state, self._waiting)
        except InvariantBroken as error:
            raise CannotFold(
                f"the rules refuse a record of the history ({error}), as where version 0.1.0 has "
                "deleted a quarantined group: nothing is deleted that no checkpoint can tell"
            ) from error
        self._waiting.clear()


def goes_on(checkpoint: Checkpoint, rows: Iterable[Row]) -> bool:
    """Return whether the rows behind a checkpoint continue the chain over all records.

    The first record of the cluster's own tells its head, as the live node had it; a boundary is
    such a record and stands behind each segment. False if there is none.
    """
    total = checkpoint.heads[""]
    for row in rows:
        payload, chain = split_chain(row.content)
        total = chain_hash(total, payload)
        if not decode_record(payload).group_id:
            return total == chain
    return False
