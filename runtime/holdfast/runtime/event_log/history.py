"""The event log as a whole, page by page: sealed segments, the event log in `state/`, the tail.

A record moves from the tail to the store and from the store to a segment, and leaves a place only
when it is durable in the next. So places are read in that order, newest first: a record that moves
meanwhile is found twice and merged, never missed. A read of records that this node does not hold is
refused: after the install of a snapshot, segments that were sealed elsewhere may be missing here
(S22), and what the log says is cut off is history no more, even while it is on the disk (S24).
Knows positions and bytes; neither events' meaning nor gRPC.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from holdfast.coordinator.model.events import ClusterFormed, HistoryCut
from holdfast.coordinator.model.ids import Position
from holdfast.runtime.event_log.tail import Captured, Tail
from holdfast.storage.codec.event_codec import decode_record
from holdfast.storage.segments.adopt import Gap
from holdfast.storage.segments.segment_reader import SegmentReader, boundary_in, just_before
from holdfast.storage.segments.segments import Manifest, naming
from holdfast.storage.state.state_store import EventRecord

SCAN: Final = 2_000
"""Records that are read at once in the search for a boundary."""


class Page(NamedTuple):
    """Records in order."""

    records: list[tuple[Position, bytes]]
    next: Position  # where the next page begins
    end: bool  # whether there are no records after this page yet
    first: Position | None = None  # the first position held; None: none, or it was not looked up


class NotHeld(Exception):
    """A read begins at `start`, but this node holds records only from `first` on."""

    def __init__(self, start: Position, first: Position) -> None:
        self.start, self.first = start, first
        super().__init__(
            f"this node does not hold the log from {start.index}.{start.ordinal} on: its history "
            f"begins at {first.index}.{first.ordinal}. Read what lies before it from another node, "
            "or from a copy of the sealed segments"
        )


class CutOff(NotHeld):
    """A read begins before the place at which the history was cut off, on all nodes alike."""

    def __init__(self, start: Position, first: Position, cut: HistoryCut) -> None:
        super().__init__(start, first)
        told = datetime.fromtimestamp(cut.log_time_ms / 1000, UTC).isoformat("T", "seconds")
        said = (
            f"the history from {start.index}.{start.ordinal} on is not kept any more: retention "
            f"has cut off all up to {cut.last.index}.{cut.last.ordinal}, written before {told}. It "
            f"begins at {first.index}.{first.ordinal}: read from there on (--from {first.index}), "
            "or read what lies before it from a backup"
        )
        self.args = (said,)


class EventLog(Protocol):
    """The part of a `StateStore` that the history needs."""

    def events(self, start: tuple[int, int], limit: int) -> list[EventRecord]:
        """Return at most `limit` records of the event log from position `start` on, in order."""


class Stretch(NamedTuple):
    """The unbroken history up to now: reads may begin at `least`, its first record is `first`."""

    first: Position | None
    least: Position


BEGINNING: Final = Position(0, 0)


class History:
    """Reads one node's event log. `read` belongs to the loop; the rest runs in its threads."""

    def __init__(
        self,
        tail: Tail,
        store: EventLog,
        segments: Path,
        applied: Callable[[], int],
        cut: Callable[[], HistoryCut | None] = lambda: None,
    ) -> None:
        """`segments`: the folder of sealed segments. `applied`: returns the applied index.

        `cut`: returns where the history was cut off last; any thread may call it.
        """
        self._tail, self._store, self._applied, self._cut = tail, store, applied, cut
        self._sealed = SegmentReader(segments)
        self._live_begins: tuple[Position, Position | None] | None = None
        self._first_behind: tuple[Position, Position] | None = None

    async def read(self, start: Position | None, limit: int) -> Page:
        """Return at most `limit` records from `start` (None: the first held) on.

        Recent records are answered from memory, without a thread. Raises `NotHeld`,
        `StorageError`, OSError, ValueError for a segment that cannot be read.
        """
        applied = self._applied()
        recent = self._tail.since(start or BEGINNING, limit)
        if start is not None and start.index > recent.floor and start > self._cut_at():
            return _page(start, dict(map(_placed, recent.records)), applied, limit, None)
        recent = self._tail.since(BEGINNING)
        try:
            return await asyncio.to_thread(self._read, start, limit, recent, applied)
        except FileNotFoundError:  # it was cut off while it was being read
            return await asyncio.to_thread(self._read, start, limit, recent, applied)

    async def live(self, start: Position, limit: int) -> Page:
        """Return at most `limit` records from `start` on, where nothing is sealed yet.

        No segment is opened, so it costs little wherever `start` is. Raises `StorageError`.
        """
        applied = self._applied()
        recent = self._tail.since(start, limit)
        found = dict(map(_placed, recent.records))
        if start.index <= recent.floor:
            stored = await asyncio.to_thread(self._store.events, start, limit)
            found.update(map(_placed, stored))
        return _page(start, found, applied, limit, None)

    def _read(self, start: Position | None, limit: int, recent: Captured, applied: int) -> Page:
        """Read all places; their order makes the result complete, as the module says."""
        found = dict(map(_placed, recent.records))
        cut = self._cut()
        least = BEGINNING if cut is None else _behind(cut.last)
        found.update(map(_placed, self._store.events(max(start or BEGINNING, least), limit)))
        live = self._live_first(recent)
        stretch = self._stretch(live, recent)
        if cut is not None and stretch.least <= least:
            stretch = Stretch(self._first_after(cut.last, live), least)
        if cut is not None and start is not None and start < least and stretch.first is not None:
            raise CutOff(start, stretch.first, cut)
        begin = _begin(start, stretch)
        if live is None or begin < live:
            found.update(self._from_segments(begin, limit))
        else:
            self._sealed.release()
        return _page(begin, found, applied, limit, stretch.first)

    def _from_segments(self, begin: Position, limit: int) -> dict[Position, bytes]:
        found: dict[Position, bytes] = {}
        for path, manifest in self._held():
            if len(found) >= limit:
                break
            if Position(*manifest.last) >= begin:
                found.update(self._sealed.page(path, begin, limit))
        return found

    # --- what is held, and what is not ---

    def missing(self) -> list[Gap]:
        """Find the gaps in what this node should hold. Reads the disk; not for the loop's thread.

        Raises `SegmentUnreadable` for a segment that cannot be read, `StorageError`, OSError.
        """
        recent = self._tail.since(BEGINNING)
        live = self._live_first(recent)
        begins = [(live, self._boundary_before(live, recent))] if live is not None else []
        sealed = self._held()  # after the event log, as in `_read`
        gaps, reached = [], self._cut_at()
        for path, manifest in sealed:
            with naming(path):
                before = self._sealed.boundary_before(path)
            if before is not None and before > reached:
                gaps.append(Gap(reached, before))
            reached = max(reached, Position(*manifest.last))
        gaps += [Gap(reached, before) for _, before in begins if before and before > reached]
        return gaps

    def _cut_at(self) -> Position:
        cut = self._cut()
        return BEGINNING if cut is None else cut.last

    def _held(self) -> list[tuple[Path, Manifest]]:
        """List the segments with records that are not cut off."""
        cut = self._cut_at()
        return [each for each in self._sealed.segments() if Position(*each[1].last) > cut]

    def _first_after(self, cut: Position, live: Position | None) -> Position | None:
        """Find the first record behind a cut; None: there is none yet."""
        known = self._first_behind
        if known is not None and known[0] == cut:
            return known[1]
        held = self._held()
        if not held:
            return live
        found = self._sealed.page(held[0][0], _behind(cut), 1)[0].position
        self._first_behind = (cut, found)
        return found

    def _live_first(self, recent: Captured) -> Position | None:
        """Find the first record that is in the store or the tail, and not cut off."""
        cut = self._cut()
        least = BEGINNING if cut is None else _behind(cut.last)
        newest = (each for each in recent.records if (each.index, each.ordinal) >= least)
        for event in chain(self._store.events(least, 1), newest):
            return Position(event.index, event.ordinal)
        return None

    def _stretch(self, live: Position | None, recent: Captured) -> Stretch:
        """Find the longest history that ends now and has no gap."""
        sealed = self._held()
        if live is not None and not _reaches(sealed, live):
            before = self._boundary_before(live, recent)
            sealed = self._held()  # again: one may have been finished meanwhile
            if not sealed:
                return Stretch(live, _behind(before))
            if not _reaches(sealed, before or live):
                return Stretch(live, _behind(before) if before else live)
        return self._sealed_stretch(sealed) if sealed else Stretch(None, BEGINNING)

    def _sealed_stretch(self, sealed: list[tuple[Path, Manifest]]) -> Stretch:
        """Find how far back the segments reach without a gap."""
        for number in range(len(sealed) - 1, -1, -1):
            (path, manifest), older = sealed[number], sealed[:number]
            first = Position(*manifest.first)
            if _reaches(older, first):
                continue  # they overlap, after a crash while the event log was being shortened
            before = self._sealed.boundary_before(path)
            if before is None or not _reaches(older, before):
                return Stretch(first, _behind(before))
        raise AssertionError("the oldest segment has none before it, so the loop has returned")

    def _boundary_before(self, live: Position, recent: Captured) -> Position | None:
        """Find where the segment before `live` ends; None: `live` begins the log."""
        known = self._live_begins
        if known is None or known[0] != live:
            known = self._live_begins = (live, self._scan(live, recent))
        return known[1]

    def _scan(self, live: Position, recent: Captured) -> Position | None:
        first = True
        for records in self._batches_from(live, recent):
            payloads = [record.payload for record in records]
            if first and isinstance(decode_record(payloads[0]).event, ClusterFormed):
                return None
            if (found := boundary_in(payloads, live)) is not None:
                return found
            first = False
        return just_before(live)

    def _batches_from(self, start: Position, recent: Captured) -> Iterator[list[EventRecord]]:
        """Yield the records from `start` on: those of the store, then those of the tail."""
        begin = (start.index, start.ordinal)
        while records := self._store.events(begin, SCAN):
            yield records
            begin = (records[-1].index, records[-1].ordinal + 1)
        if recent.records:
            yield recent.records


def _placed(record: EventRecord) -> tuple[Position, bytes]:
    return Position(record.index, record.ordinal), record.payload


def _begin(start: Position | None, stretch: Stretch) -> Position:
    """Return where to read from. Raises `NotHeld`."""
    if start is None:
        return stretch.first or BEGINNING
    if start < stretch.least and stretch.first is not None:
        raise NotHeld(start, stretch.first)
    return start


def _reaches(sealed: list[tuple[Path, Manifest]], position: Position) -> bool:
    return any(Position(*manifest.last) >= position for _, manifest in sealed)


def _behind(position: Position | None) -> Position:
    return Position(position.index, position.ordinal + 1) if position else BEGINNING


def _page(
    start: Position,
    found: dict[Position, bytes],
    applied: int,
    limit: int,
    first: Position | None,
) -> Page:
    """Make a page of the first `limit` records that were found, in order."""
    records = sorted((at, content) for at, content in found.items() if at >= start)[:limit]
    after = _behind(records[-1][0]) if records else start
    end = len(records) < limit
    following = max(after, Position(applied + 1, 0)) if end else after
    return Page(records, following, end, first)
