"""S25: missing segments are asked of the nodes that there are, which come and go."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from holdfast.coordinator.model.ids import Position
from holdfast.runtime.event_log.fetch import Fetching, FetchingPlace
from holdfast.storage.segments.adopt import Gap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class Lacking:
    """A history that lacks its beginning."""

    def __init__(self) -> None:
        self.during: Callable[[], None] = lambda: None

    def missing(self) -> list[Gap]:
        self.during()
        return [Gap(Position(0, 0), Position(30, 0))]


def test_a_node_that_comes_later_is_asked_for_what_is_missing(tmp_path: Path) -> None:
    """Alone, a node asks nobody, and what it lacks is known all the same."""
    peers, asked = list[str](), list[str]()

    def call(peer: str, _request: bytes) -> Iterator[bytes]:
        asked.append(peer)
        return iter(())

    async def story() -> None:
        place = FetchingPlace(tmp_path / "segments", "c", "n1")
        fetching = Fetching(place, Lacking(), lambda: peers, call)
        await fetching.fetch()
        assert (asked, fetching.missing) == ([], (Gap(Position(0, 0), Position(30, 0)),))
        peers.append("n4")
        await fetching.fetch()
        assert asked == ["n4"]

    asyncio.run(story())


def test_s22_gaps_are_known_once_the_last_look_that_was_due_has_ended(tmp_path: Path) -> None:
    """S22: after an install there are others; what was found before it says nothing of them."""
    history, known = Lacking(), list[object]()

    def call(_peer: str, _request: bytes) -> Iterator[bytes]:
        return iter(())

    async def story() -> None:
        place = FetchingPlace(tmp_path / "segments", "c", "n1")
        fetching = Fetching(place, history, lambda: ["n2"], call)
        history.during = fetching.look
        known.append(fetching.known_gaps)
        await fetching.fetch()
        known.append(fetching.known_gaps)  # a snapshot was installed while it looked
        history.during = lambda: None
        await fetching.fetch()
        known.append(fetching.known_gaps)
        fetching.look()
        known.append(fetching.known_gaps)

    asyncio.run(story())

    assert known == [None, None, tuple(history.missing()), None]


def test_s22_a_node_without_peers_knows_its_gaps(tmp_path: Path) -> None:
    """S22: what nobody can give it is missing all the same."""
    lacking = Lacking()

    async def story() -> object:
        place = FetchingPlace(tmp_path / "segments", "c", "n1")
        fetching = Fetching(place, lacking, list, lambda *_: iter(()))
        await fetching.fetch()
        return fetching.known_gaps

    assert asyncio.run(story()) == tuple(lacking.missing())
