"""What a node seals at a boundary: a segment for each that it has not sealed up to yet (S22)."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

import pytest

from holdfast.coordinator.model.events import SegmentSealed
from holdfast.coordinator.model.ids import Position
from holdfast.storage.segments import seal
from holdfast.storage.segments.checkpoint import checkpoint_name
from holdfast.storage.state.state_store import EventRecord
from spark.event_logs import busy_log, committed

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.storage.segments.segments import Row

NOWHERE: Final = Position(0, 0)


class Log:
    """A log with three boundaries, each told by a record some way behind it; as in `state/`."""

    def __init__(self) -> None:
        log = busy_log(groups=2, commits=9)
        self.ends = [NOWHERE]
        for nth in range(3):
            self.ends.append(log.records[-1].position)
            if nth:  # a call and a decision of the leader may be under way together
                log.entry("g1", committed(0, nth))
            log.entry("", SegmentSealed(self.ends[-1]))
            log.entry("g0", committed(0, 100 + nth))
        self.rows: list[Row] = log.rows

    def events(self, start: tuple[int, int], limit: int) -> list[EventRecord]:
        behind = [row for row in self.rows if row.position >= start]
        return [EventRecord(*row.position, row.content) for row in behind[:limit]]

    def between(self, after: Position, last: Position) -> list[Row]:
        return [row for row in self.rows if after < row.position <= last]


@pytest.fixture(scope="module")
def log() -> Log:
    return Log()


def due(log: Log, done: Position, last: Position) -> list[list[Row]]:
    return [list(rows) for rows in seal.segments_due(log, done, last)]


@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_s22_segments_are_the_same_however_many_boundaries_a_node_finds(
    log: Log, at_once: int
) -> None:
    """S22: one that seals later finds several where the first node found one after another."""
    found, done = [], NOWHERE
    for last in [*log.ends[at_once::at_once], log.ends[-1]]:
        found += due(log, done, last)
        done = last

    assert found == [log.between(*each) for each in pairwise(log.ends)]


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_where_the_reading_of_the_log_pauses_changes_nothing(
    log: Log, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log is read in short transactions, and a segment may begin within one."""
    monkeypatch.setattr(seal, "BATCH", batch)

    assert due(log, NOWHERE, log.ends[-1]) == [log.between(*each) for each in pairwise(log.ends)]


def test_what_is_sealed_is_not_sealed_again(log: Log) -> None:
    """A crash may leave it in the log: by its segments a node knows how far it has come."""
    assert due(log, log.ends[2], log.ends[2]) == []
    assert due(log, log.ends[2], log.ends[1]) == []
    assert due(log, log.ends[2], log.ends[3]) == [log.between(log.ends[2], log.ends[3])]


def test_s22_a_log_that_begins_within_a_segment_gives_the_rest_of_it() -> None:
    """S22: a snapshot was installed that was copied while its maker dropped what it had sealed."""
    rest = Log()
    cut = next(row.position for row in rest.rows if row.position > rest.ends[1])
    rest.rows = [row for row in rest.rows if row.position > cut]

    assert due(rest, NOWHERE, rest.ends[3]) == [
        rest.between(cut, rest.ends[2]),
        rest.between(rest.ends[2], rest.ends[3]),
    ]


def test_s22_what_a_sealing_process_printed_is_read_as_far_as_it_came() -> None:
    """S22: its parent drops what it names; a process may be killed within a line."""
    first, second = seal.Made("1-5", Position(5, 3)), seal.Made("6-8", Position(8, 0))

    assert seal.told(f"{first}\n{second}\n") == [first, second]
    assert seal.told(f"{first}\n{second}"[:-3]) == [first]
    assert seal.told("") == []


def test_s24_what_was_cut_off_is_not_sealed_again(tmp_path: Path) -> None:
    """S24: after a crash the log may hold records whose segment went; the checkpoint tells."""
    assert seal.sealed_up_to(tmp_path) == NOWHERE
    (tmp_path / checkpoint_name(Position(7, 2))).touch()

    assert seal.sealed_up_to(tmp_path) == Position(7, 2)
