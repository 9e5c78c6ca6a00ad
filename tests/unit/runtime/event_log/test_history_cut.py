"""S24: where the log says that the history is cut off, reads begin, on all nodes alike."""

from __future__ import annotations

import asyncio
from pathlib import Path
from shutil import rmtree

import pytest

from holdfast.coordinator.model.events import HistoryCut
from holdfast.coordinator.model.ids import Position
from holdfast.runtime.event_log.history import CutOff, History, Page
from holdfast.runtime.event_log.tail import Tail
from holdfast.storage.segments.cut import make_checkpoint, remove_cut
from holdfast.storage.segments.segment_writer import write_segment
from holdfast.storage.segments.segments import segments_in
from holdfast.storage.state.state_store import EventRecord
from unit.storage.segments.sealed_history import History as Sealed
from unit.storage.segments.sealed_history import history

WRITTEN_MS = 1_700_000_000_000
"""14 November 2023, 22:13:20 UTC."""


class Node:
    """Sealed segments, and the records behind them in the event log."""

    def __init__(self, path: Path, *, sealed: int = 3) -> None:
        self.disk: Sealed = history(path)
        self.cut: HistoryCut | None = None
        for unsealed in segments_in(self.disk.segments)[sealed:]:
            rmtree(unsealed)
        self._live = [
            row
            for row in self.disk.log.rows
            if not sealed or row.position > self.disk.boundaries[sealed - 1]
        ]
        tail = Tail()
        tail.begin_at(self.disk.log.index)
        applied = self.disk.log.index
        self.history = History(tail, self, self.disk.segments, lambda: applied, lambda: self.cut)

    def events(self, start: tuple[int, int], limit: int) -> list[EventRecord]:
        rows = [row for row in self._live if row.position >= start]
        return [EventRecord(*row.position, row.content) for row in rows[:limit]]

    def cut_at(self, number: int) -> Position:
        """Apply a cut at that boundary; nothing is deleted yet."""
        last = self.disk.boundaries[number]
        self.cut = HistoryCut(last, WRITTEN_MS, b"")
        return last

    def read(self, start: Position | None, limit: int = 10_000) -> Page:
        return asyncio.run(self.history.read(start, limit))

    def positions(self, start: Position | None, limit: int = 10_000) -> list[Position]:
        return [position for position, _ in self.read(start, limit).records]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def behind(last: Position) -> Position:
    return Position(last.index, last.ordinal + 1)


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("removed", [False, True])
def test_s24_the_history_begins_behind_the_cut_removed_or_not(
    node: Node, number: int, *, removed: bool
) -> None:
    last = node.cut_at(number)
    if removed:
        make_checkpoint(node.disk.segments, last, node.disk.digest_at(last), iter(()))
        remove_cut(node.disk.segments, last)
    kept = [row.position for row in node.disk.rows_behind(last)]

    assert node.positions(None) == kept
    assert node.read(None, 1).first == kept[0]
    assert node.positions(behind(last)) == kept
    assert node.history.missing() == []


@pytest.mark.parametrize("start", [Position(0, 0), Position(1, 0), Position(20, 0)])
def test_s24_a_read_from_before_the_cut_is_told_where_and_when_it_begins(
    node: Node, start: Position
) -> None:
    last = node.cut_at(1)
    first = node.disk.rows_behind(last)[0].position

    with pytest.raises(CutOff) as refused:
        node.read(start)

    said = str(refused.value)
    assert f"begins at {first.index}.{first.ordinal}" in said
    assert "2023-11-14T22:13:20+00:00" in said
    assert f"--from {first.index}" in said
    assert refused.value.first == first


def test_s24_the_last_record_that_was_cut_off_is_refused_and_the_first_behind_it_is_not(
    node: Node,
) -> None:
    last = node.cut_at(0)

    with pytest.raises(CutOff):
        node.read(last)
    assert node.positions(behind(last), 1) == [node.disk.rows_behind(last)[0].position]


@pytest.mark.parametrize("limit", [1, 3, 7])
def test_s24_no_record_behind_the_cut_is_stepped_over_page_by_page(node: Node, limit: int) -> None:
    last = node.cut_at(1)
    at, read = None, []
    while True:
        page = node.read(at, limit)
        read += [position for position, _ in page.records]
        at = page.next
        if page.end:
            break

    assert read == [row.position for row in node.disk.rows_behind(last)]


@pytest.mark.parametrize("sealed", [0, 1, 2])
def test_s24_a_node_that_has_not_sealed_so_far_begins_at_the_same_record(
    tmp_path: Path, sealed: int
) -> None:
    node = Node(tmp_path, sealed=sealed)
    last = node.cut_at(1)
    kept = [row.position for row in node.disk.rows_behind(last)]

    assert node.positions(None, 5) == kept[:5]
    assert node.positions(None) == kept
    assert node.history.missing() == []
    with pytest.raises(CutOff):
        node.read(last)


def test_s24_a_cut_inside_a_segment_begins_inside_it(tmp_path: Path) -> None:
    """A node that was away has sealed two boundaries at once; the cut is at the first of them."""
    node = Node(tmp_path)
    disk = node.disk
    rmtree(disk.segments)
    write_segment(disk.segments, disk.rows_through(disk.boundaries[2]), "c", "n1")
    last = node.cut_at(1)
    kept = [row.position for row in disk.rows_behind(last)]

    assert node.positions(None) == kept
    assert node.read(None, 1).first == kept[0]
    assert node.history.missing() == []


def test_s22_records_that_are_missing_behind_the_cut_are_fetched_and_none_before_it(
    node: Node,
) -> None:
    """A node that rebuilds gets the history from the cut on."""
    last = node.cut_at(0)
    for segment in segments_in(node.disk.segments)[:2]:
        rmtree(segment)

    (gap,) = node.history.missing()
    assert gap.after == last
    assert gap.through == node.disk.boundaries[1]
