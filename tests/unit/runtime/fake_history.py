"""The history of a fake replica: what it has applied, and what a test says that it lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.coordinator.model.ids import Position
from holdfast.runtime.event_log.history import NotHeld, Page
from holdfast.storage.codec.event_codec import CHAIN_START, append_chain, encode_record

if TYPE_CHECKING:
    from unit.runtime.fake_replica import FakeReplica


class FakeHistory:
    """Reads `replica.records`; those before `lost_before` are held no more."""

    def __init__(self, replica: FakeReplica) -> None:
        self.lost_before = Position(0, 0)
        self.reads: list[tuple[Position | None, int]] = []
        self.failure: Exception | None = None
        self._replica = replica

    async def live(self, start: Position, limit: int) -> Page:
        if self.failure is not None:
            raise self.failure
        return await self.read(start, limit)

    async def read(self, start: Position | None, limit: int) -> Page:
        self.reads.append((start, limit))
        if start is not None and start < self.lost_before:
            raise NotHeld(start, self.lost_before)
        least = start or self.lost_before
        held = [r for r in self._replica.records if r.position >= self.lost_before]
        behind = [r for r in held if r.position >= least]
        found = [(r.position, append_chain(encode_record(r), CHAIN_START)) for r in behind[:limit]]
        following = Position(self._replica.state.applied_index + 1, 0)
        if len(behind) > limit:
            following = behind[limit].position
        first = held[0].position if held else None
        return Page(found, max(following, least), len(behind) <= limit, first)
