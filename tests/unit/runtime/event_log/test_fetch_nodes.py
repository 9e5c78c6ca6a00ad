"""S25: missing segments are asked of the nodes that there are, which come and go."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from holdfast.coordinator.model.ids import Position
from holdfast.runtime.event_log.fetch import Fetching, FetchingPlace
from holdfast.storage.segments.adopt import Gap

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Lacking:
    """A history that lacks its beginning."""

    def missing(self) -> list[Gap]:
        return [Gap(Position(0, 0), Position(30, 0))]


def test_a_node_that_comes_later_is_asked_for_what_is_missing(tmp_path: Path) -> None:
    """Alone, a node asks nobody and looks for nothing: there is nobody who could have it."""
    peers, asked = list[str](), list[str]()

    def call(peer: str, _request: bytes) -> Iterator[bytes]:
        asked.append(peer)
        return iter(())

    async def story() -> None:
        place = FetchingPlace(tmp_path / "segments", "c", "n1")
        fetching = Fetching(place, Lacking(), lambda: peers, call)
        await fetching.fetch()
        assert (asked, fetching.missing) == ([], ())
        peers.append("n4")
        await fetching.fetch()
        assert asked == ["n4"]

    asyncio.run(story())
