"""What lies behind the last boundary of sealed segments: its oldest record, and its newest (S22).

A boundary is told by a record that lies behind it. Alone, it is nothing to seal: a boundary behind
it would be told by a record again, and so on without end. A cut of the history is nothing to seal
either (S24): its segment would be cut off in turn, by such a record. Reads a few records of the
history; knows no settings and sets no boundary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.coordinator.model.events import HistoryCut, RequestRecorded, SegmentSealed
from holdfast.coordinator.model.ids import Position
from holdfast.storage.codec.event_codec import CodecError, decode_record
from holdfast.storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.coordinator.model.events import Record
    from holdfast.coordinator.model.state import State
    from holdfast.runtime.ports import HistoryLike

HEAD: Final = 3
"""Records to look at first for something to seal: the boundary itself has two at most."""
PAGE: Final = 500
"""Records that are read at once in the search for the last one."""
UNREADABLE: Final = (CodecError, StorageError, OSError)
"""The errors of a history that this node's disk does not show: damage, or a failing disk."""
FURTHER: Final = 16
"""By so much a search goes further if it found nothing: the one for something to seal behind the
boundary, and the one for the last record before the newest entries."""


class Boundary(NamedTuple):
    """Where a boundary may be set."""

    last: Position
    """The last record; the last boundary, if there is nothing to seal."""
    behind: Position
    """The last boundary at that moment: if there is another one by now, look again."""


async def oldest(history: HistoryLike, sealed: Position) -> Record | None:
    """Return the oldest record behind the boundary `sealed` that is something to seal, if any.

    Raises one of `UNREADABLE`.
    """
    limit = HEAD
    while True:
        page = await history.live(_behind(sealed), limit)
        found = next(others(decode_record(payload) for _, payload in page.records), None)
        if found is not None or page.end:
            return found
        limit *= FURTHER


async def boundary(history: HistoryLike, state: State) -> Boundary:
    """Return where a boundary may be set in this state, which is applied here.

    Raises as `oldest`.
    """
    if await oldest(history, state.sealed) is None:
        return Boundary(state.sealed, state.sealed)
    return Boundary(await _last(history, state), state.sealed)


async def _last(history: HistoryLike, state: State) -> Position:
    """Find the last record, of which there is one behind the boundary."""
    least, entries = _behind(state.sealed), 1
    while True:
        start = max(least, Position(state.applied_index + 1 - entries, 0))
        last = await _last_from(history, start)
        if last is not None:
            return last
        entries *= FURTHER  # those of a change of leaders or nodes have no record


async def _last_from(history: HistoryLike, start: Position) -> Position | None:
    last = None
    while True:
        page = await history.live(start, PAGE)
        if page.records:
            last = page.records[-1][0]
        if page.end:
            return last
        start = page.next


def others(records: Iterable[Record]) -> Iterator[Record]:
    """Yield the records that are something to seal: all but those of boundaries and of cuts.

    To a boundary belong what tells it, and the stored answer of the call that asked for it (S15),
    which is right behind that.
    """
    told = None
    for record in records:
        if isinstance(record.event, SegmentSealed):
            told = record.position
        elif not (
            isinstance(record.event, HistoryCut)
            or (isinstance(record.event, RequestRecorded) and record.position == _after(told))
        ):
            yield record


def _after(told: Position | None) -> Position | None:
    return None if told is None else _behind(told)


def _behind(position: Position) -> Position:
    return Position(position.index, position.ordinal + 1)
