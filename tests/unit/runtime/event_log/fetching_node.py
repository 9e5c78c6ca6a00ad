"""A node that lacks segments of its history, and a log of three segments and what follows them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

from holdfast.coordinator.model.events import (
    Cause,
    ClusterFormed,
    Event,
    Record,
    SegmentSealed,
    TopicsDeleted,
)
from holdfast.coordinator.model.ids import Position
from holdfast.runtime.event_log.child import Ended
from holdfast.runtime.event_log.fetch import Fetching, FetchingPlace
from holdfast.runtime.event_log.history import History
from holdfast.runtime.event_log.segment_calls import SegmentSource, encode_list
from holdfast.runtime.event_log.tail import Tail
from holdfast.storage.codec.event_codec import (
    CHAIN_START,
    append_chain,
    chain_hash,
    encode_record,
)
from holdfast.storage.segments import adopt
from holdfast.storage.segments.segments import Row
from holdfast.storage.state.state_store import EventRecord

BOUNDARIES = (10, 20, 30)
LAST = 40


def whole_log() -> list[Row]:
    """One record an entry, chained; behind each boundary stands the record that says so."""
    rows, chain = [], CHAIN_START
    for index in range(1, LAST + 1):
        event: Event = TopicsDeleted((f"topic-{index}",))
        if index == 1:
            event = ClusterFormed("c", ())
        if index - 1 in BOUNDARIES:
            event = SegmentSealed(Position(index - 1, 0))
        place = Position(index, 0)
        payload = encode_record(Record(place, "", index, 1, 1, Cause("S22", "Test"), "", "", event))
        chain = chain_hash(chain, payload)
        rows.append(Row(place, append_chain(payload, chain)))
    return rows


LOG = whole_log()


class Store:
    """The event log in `state/`."""

    def __init__(self, first: int) -> None:
        self.first = first

    def events(self, start: tuple[int, int], limit: int) -> list[EventRecord]:
        rows = [row for row in LOG[self.first - 1 :] if row.position >= start]
        return [EventRecord(*row.position, row.content) for row in rows[:limit]]


class Node:
    """A node that holds some segments and the event log from `live` on."""

    def __init__(self, path: Path, live: int) -> None:
        self.segments = path / "segments"
        self.segments.mkdir()
        tail = Tail()
        tail.begin_at(LAST)
        self.history = History(tail, Store(live), self.segments, lambda: LAST)
        self.sources: dict[str, SegmentSource] = {}
        self.breaks_off = False
        self.reserve: int | None = None
        self.asked: list[bytes] = []
        self.read_from: list[str] = []

    def looks(self, times: list[float]) -> Iterator[Fetching]:
        """The looks of one process at these times; what each one read lies in `read_from`."""
        now = [0.0]
        place = FetchingPlace(self.segments, "c", "n1", self.reserve)
        fetching = Fetching(place, self.history, self._peers, self._call, now=lambda: now[0])
        for now[0] in times:
            self.read_from.clear()
            asyncio.run(fetching.fetch())
            yield fetching

    def fetching(self) -> Fetching:
        """What fetches here, in a process of its own."""
        place = FetchingPlace(self.segments, "c", "n1", self.reserve)
        return Fetching(place, self.history, self._peers, self._call)

    def _peers(self) -> list[str]:
        return sorted(self.sources)

    def fetch(self) -> Fetching:
        """One look, as after an install."""

        async def story() -> Fetching:
            fetching = self.fetching()
            await fetching.fetch()
            return fetching

        return asyncio.run(story())

    def _call(self, peer: str, request: bytes) -> Iterator[bytes]:
        self.asked.append(request)
        if request != encode_list():
            self.read_from.append(peer)
        for chunk in self.sources[peer].answer(request):
            if request and self.breaks_off:
                yield chunk[:50]
                raise OSError("the connection broke")
            yield chunk

    def indexes(self, start: Position | None = None) -> list[int]:
        page = asyncio.run(self.history.read(start, 1_000))
        return [position.index for position, _ in page.records]


async def verify_here(module: str, *arguments: str) -> Ended:
    """What the child does, in this process: to start one takes most of a test's time."""
    assert module == adopt.__name__
    output, complaint = StringIO(), StringIO()
    with redirect_stdout(output), redirect_stderr(complaint):
        code = adopt.main(list(arguments))
    return Ended(code, output.getvalue(), complaint.getvalue())
