"""How much a run does. `--quick` is for a look; its figures scatter more."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self


@dataclass(frozen=True, slots=True)
class Sizes:
    """Times in seconds; everything else is a count."""

    seconds: float = 5.0
    warm_up_s: float = 1.0
    callers: int = 64
    connections: int = 8
    groups: tuple[int, ...] = (100, 1_000, 10_000)
    members_max: int = 10_000
    beating_members: int = 1_000
    growing: tuple[int, ...] = (100, 1_000)
    scale_ups: int = 5
    restarted_members: int = 100
    restarts: int = 5
    starts: int = 7
    kills: int = 10
    burst: int = 10_000
    burst_connections: int = 100
    expiring: int = 20_000
    events: int = 1_000_000
    folded_events: int = 50_000
    door_passes: int = 31
    door_calls: int = 2_000
    weighed_events: int = 250_000
    """Those of a full segment."""
    steady_s: float = 20.0
    sealed_events: int = 250_000
    calm_s: float = 15.0
    soak_s: float = 900.0
    history_s: float = 300.0
    replayed_events: tuple[int, int] = (1_000_000, 10_000_000)
    """Of the two logs between which a rate is the slope."""
    row_seconds_max: float = 2_400.0
    replay_seconds_max: float = 28_800.0
    """For the row `replay`: a log of ten million events takes long to make."""

    def with_kills(self, kills: int) -> Self:
        """The same with another number of kills."""
        return replace(self, kills=kills)

    def with_replayed(self, small: int, large: int) -> Self:
        """The same with logs of other sizes for the row `replay`."""
        return replace(self, replayed_events=(small, large))

    def seconds_max(self, row: str) -> float:
        """How long a row may take."""
        return self.replay_seconds_max if row == "replay" else self.row_seconds_max


FULL = Sizes()
QUICK = replace(
    FULL,
    seconds=2.0,
    warm_up_s=0.5,
    groups=(100, 1_000),
    members_max=2_000,
    growing=(100,),
    scale_ups=3,
    restarts=2,
    starts=3,
    kills=3,
    burst=2_000,
    burst_connections=20,
    expiring=2_000,
    events=100_000,
    folded_events=10_000,
    door_passes=9,
    weighed_events=25_000,
    steady_s=10.0,
    sealed_events=25_000,
    calm_s=5.0,
    soak_s=90.0,
    history_s=30.0,
    replayed_events=(200_000, 1_000_000),
)
