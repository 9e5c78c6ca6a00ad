"""Generated logs for the tests of the generator: played into memory, or read from their folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.replay.generate.history import History
from holdfast.replay.generate.plan import Plan
from holdfast.replay.generate.witness import Witness
from holdfast.storage.codec.event_codec import decode_record
from holdfast.storage.segments.segments import Row, read_rows, segments_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.coordinator.model.events import Record
    from holdfast.replay.generate.leader import Written


class Kept:
    """Takes the records of a history, and remembers how they came."""

    def __init__(self) -> None:
        self.sealed: list[list[Row]] = []
        self.tail: list[Row] = []

    def seal(self, written: Sequence[Written]) -> None:
        self.sealed.append([each.row for each in written])

    def export(self, written: Sequence[Written]) -> None:
        self.tail = [each.row for each in written]

    @property
    def records(self) -> list[Record]:
        rows = [*(row for part in self.sealed for row in part), *self.tail]
        return [decode_record(row.content) for row in rows]


def played(plan: Plan, told: Callable[[History], None] = lambda _: None) -> tuple[History, Kept]:
    """Play a history; `told` looks at it after each entry."""
    kept = Kept()
    history = History(plan, kept, Witness(None))
    history.play(lambda _: told(history))
    return history, kept


def rows_of(node: Path) -> list[Row]:
    """All records of a node's directory, in the order of the log."""
    parts = [*segments_in(node / "segments"), *segments_in(node / "tail")]
    return [row for part in parts for row in read_rows(part)]


def files_of(folder: Path) -> dict[str, bytes]:
    """All files below a folder, by their names."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}
