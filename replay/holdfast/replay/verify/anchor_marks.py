"""The digest of the state at several indexes, in the one pass that folds the log anyway.

A digest is a sum over state records, so each bucket of groups adds its own part, and the state that
belongs to no group adds the rest. A bucket's rows are in order within a group alone: a group's part
is taken when its first record behind an index comes, or at the end. Runs in Spark's workers, and
imports no Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from holdfast.coordinator.model.events import Record
from holdfast.coordinator.model.ids import Position
from holdfast.replay.read.log_rows import ResultRow
from holdfast.storage.codec.state_image import DIGEST_SPAN

MARK: Final = "mark"
"""Tag of a row: key = which mark, content = a part of the digest there; of the part that has the
chain, text = its head in hexadecimal, idx and ordinal = the last record before the mark."""

RESTORE: Final = "restore"
"""Tag of a row: idx = the last entry that a restore kept, ordinal = its recovery number."""


class Mark(NamedTuple):
    """A place at which the digest is wanted: after entry `index`, at this log time (S8)."""

    index: int  # type: ignore[assignment]  # `tuple.index` is not missed
    log_time_ms: int


class Reached(NamedTuple):
    """To what the log leads at a mark."""

    last: Position
    """The last record up to there."""
    chain: bytes
    digest: int


class Restore(NamedTuple):
    """The log goes on from an earlier place: what followed it then is in no log any more (S13)."""

    number: int
    """The recovery number from here on."""
    kept: int
    """Index of the last entry that was kept."""


@dataclass(slots=True)
class GroupMarks:
    """What the groups of a bucket add to the digest at each mark.

    `weigh`: what a group, as the fold has it now, adds to a digest; 0 if there is none. `rest`:
    what all that the fold has not taken up adds, at each mark.
    """

    marks: Sequence[Mark]
    weigh: Callable[[str], int]
    rest: int = 0
    sums: list[int] = field(init=False)
    _passed: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin with what no record changes."""
        self.sums = [self.rest % DIGEST_SPAN] * len(self.marks)

    def before(self, group_id: str, index: int) -> None:
        """Take in a group as it is, if the record that comes next lies behind a mark."""
        done = passed = self._passed.get(group_id, 0)
        while passed < len(self.marks) and self.marks[passed].index < index:
            passed += 1
        if passed > done:
            self._take(group_id, done, passed)

    def between(self, group_id: str, records: Sequence[Record]) -> Iterator[Sequence[Record]]:
        """Yield the next records of a group in parts; marks are passed before the next is taken."""
        done = self._passed.get(group_id, 0)
        if done == len(self.marks) or self.marks[done].index >= records[-1].position.index:
            yield records
            return
        for record in records:
            self.before(group_id, record.position.index)
            yield [record]

    def end(self, groups: Sequence[str]) -> Iterator[ResultRow]:
        """Take in all groups that are there at the end, and yield the sums."""
        for group_id in groups:
            self._take(group_id, self._passed.get(group_id, 0), len(self.marks))
        for number, total in enumerate(self.sums):
            yield mark_row(number, total)

    def _take(self, group_id: str, done: int, passed: int) -> None:
        self._passed[group_id] = passed
        if done == passed:
            return
        adds = self.weigh(group_id)
        for number in range(done, passed):
            self.sums[number] = (self.sums[number] + adds) % DIGEST_SPAN


def mark_row(number: int, total: int, head: bytes = b"", at: tuple[int, int] = (0, 0)) -> ResultRow:
    """Make the row of a part of the digest at a mark."""
    content = (total % DIGEST_SPAN).to_bytes(8, "big")
    index, ordinal = at
    return ResultRow(MARK, "", "", str(number), head.hex(), content, index, ordinal)


def restore_row(restore: Restore) -> ResultRow:
    """Make the row of a restore that the log tells of."""
    return ResultRow(RESTORE, idx=restore.kept, ordinal=restore.number)


def restores_in(rows: Sequence[ResultRow]) -> list[Restore]:
    """Return the restores that rows tell of, in the order of their numbers."""
    return sorted(Restore(row.ordinal, row.idx) for row in rows if row.tag == RESTORE)


def summed(rows: Sequence[ResultRow], marks: Sequence[Mark]) -> dict[Mark, Reached]:
    """Put the parts of all tasks together: chain and digest at each mark."""
    found = {}
    for number, mark in enumerate(marks):
        mine = [row for row in rows if row.key == str(number)]
        (whole,) = (row for row in mine if row.text)
        digest = sum(int.from_bytes(row.content, "big") for row in mine) % DIGEST_SPAN
        found[mark] = Reached(Position(whole.idx, whole.ordinal), bytes.fromhex(whole.text), digest)
    return found
