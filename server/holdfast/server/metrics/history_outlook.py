"""Says when this node's disk will be full, and what keeps retention from deleting (S24).

For `holdfast cluster status`, `holdfast doctor` and the metrics alike, so that they never differ.
Sizes of sealed segments are known; journal and state are looked at from time to time while the node
runs. What a forecast is made of is judged in `coordinator.cluster.disk_forecast`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from holdfast.coordinator.cluster import disk_forecast, retention, settings
from holdfast.coordinator.cluster.disk_forecast import DAY_MS, MEASURED_MS_MIN, Forecast
from holdfast.storage.disk.files import room_left

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from holdfast.coordinator.cluster.retention import SealedPart
    from holdfast.coordinator.model.ids import Position
    from holdfast.runtime.ports import ReplicaLike
    from holdfast.storage.segments.adopt import Gap

logger = logging.getLogger(__name__)

SAMPLE_SECONDS: Final = 60.0
SAMPLES_MAX: Final = 1_440
"""Those of a day."""


class Cuts(Protocol):
    """The part of `Cutting` that is needed."""

    problem: str
    """Why the last cut is not carried out here."""

    async def sealed(self) -> list[SealedPart]:
        """Describe the segments here, in the order of the log."""

    async def reached(self) -> Position:
        """Return where the newest segment here ends. Raises OSError, ValueError."""


class Proposes(Protocol):
    """The part of `HistoryRetention` that is needed."""

    problem: str
    """Why this leader can propose no cut."""


class Outlook(NamedTuple):
    """What is to be told of a node's history."""

    forecast: Forecast
    segment_bytes: int = 0
    on: bool = False
    """Whether settings say that history is deleted."""
    hindrance: str = ""
    """Why it is not, as a sentence."""
    cut_index: int = 0
    sealed: Position = retention.NO_POSITION
    """Up to where this node has sealed its log, and lacks nothing of it."""
    sealing_problem: str = ""
    """Why it cannot seal now, or cannot tell how far it has, as a sentence."""


class HistoryOutlook:
    """The outlook of one node. All methods belong to the loop."""

    def __init__(
        self,
        replica: ReplicaLike,
        cuts: Cuts,
        proposes: Proposes,
        directory: Path,
        reserve: int | None,
        others: Callable[[], int],
        gaps: Callable[[], Sequence[Gap] | None],
        problem: Callable[[], str] = str,
    ) -> None:
        """`reserve`: node.disk_reserve_bytes. `others`: sums up journal and state; any thread.

        `gaps`: returns what is missing in the segments here, in order; None: not known yet.
        `problem`: why this cannot be known, or the last try to seal failed; "": neither is so.
        """
        self._replica, self._cuts, self._proposes = replica, cuts, proposes
        self._directory, self._reserve, self._others = directory, reserve, others
        self._gaps, self._problem = gaps, problem
        self._samples: deque[tuple[int, int]] = deque(maxlen=SAMPLES_MAX)
        self._parts: list[SealedPart] = []
        self._sealed = retention.NO_POSITION
        self._unreadable = ""
        """Why the newest segment could not be looked at; empty: it could."""

    async def run(self) -> None:
        """Look at the files from time to time, until cancelled."""
        while True:
            try:
                await self.sample()
            except (OSError, ValueError) as error:  # TimeoutError is one
                logger.info("the growth of the data directory is not known: %s", error)
            await asyncio.sleep(SAMPLE_SECONDS)

    async def sample(self) -> None:
        """Look at segments, journal and state now. Raises OSError, ValueError."""
        size = await asyncio.to_thread(self._others)
        self._samples.append((self._replica.log_time_ms(), size))
        self._parts = await self._cuts.sealed()

    async def told(self) -> Outlook:
        """Tell what is known by the last look; of a disk that cannot be read, nothing."""
        sealed = await self._sealed_to()
        problem = self._problem() or self._unreadable
        try:
            free = await asyncio.to_thread(room_left, self._directory, self._reserve)
        except OSError:
            return Outlook(disk_forecast.UNKNOWN, sealed=sealed, sealing_problem=problem)
        parts, state, now_ms = self._parts, self._replica.state, self._replica.log_time_ms()
        hindrance = self._hindrance(parts, now_ms)
        growth = disk_forecast.growth_of(parts, now_ms)
        kept = None
        if growth is not None and not hindrance:
            kept = disk_forecast.most_kept(settings.of_cluster(state), growth, parts)
        return Outlook(
            disk_forecast.forecast(free, parts, growth, self._rest(), kept),
            sum(each.size for each in parts),
            not retention.off(state),
            hindrance,
            retention.cut_at(state).index,
            sealed,
            problem,
        )

    async def _sealed_to(self) -> Position:
        """Return up to where this node has sealed; looks again as long as a boundary is ahead."""
        cut, gaps = retention.cut_at(self._replica.state), self._gaps()
        if gaps is None:
            return cut
        self._unreadable = ""
        if self._sealed < self._replica.state.sealed:
            try:
                self._sealed = max(self._sealed, await self._cuts.reached())
            except (OSError, ValueError) as error:
                self._unreadable = str(error)
                logger.info("the newest segment cannot be looked at: %s", error)
        return max(min([self._sealed, *(gap.after for gap in gaps)]), cut)

    def _hindrance(self, parts: Sequence[SealedPart], now_ms: int) -> str:
        state = self._replica.state
        if self._cuts.problem:
            cut = retention.cut_at(state)
            return f"the cut at {cut.index}.{cut.ordinal} is not carried out: {self._cuts.problem}"
        return retention.hindrance(state, parts, now_ms) or self._proposes.problem

    def _rest(self) -> int:
        """Return by how many bytes a day journal and state grow; 0 while that is not known."""
        if not self._samples:
            return 0
        (began_ms, before), (ended_ms, after) = self._samples[0], self._samples[-1]
        measured_ms = ended_ms - began_ms
        if measured_ms < MEASURED_MS_MIN:
            return 0
        return max(0, after - before) * DAY_MS // measured_ms
