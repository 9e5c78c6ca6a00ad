"""When a node's disk will be full: by how it grew, and by what retention will delete (S24).

The history grows for ever unless it is cut off; then up to what the settings keep. What else a node
keeps, its journal and its state, grows with what is in use. All by log time, so that a restart
forgets nothing. Pure: sizes are given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.coordinator.cluster.retention import SealedPart
    from holdfast.coordinator.cluster.settings import ClusterSettings

DAY_MS: Final = 86_400_000
WINDOW_MS: Final = 7 * DAY_MS
"""Older segments say nothing of what is to come: load changes with the days of a week."""
MEASURED_MS_MIN: Final = 600_000
"""Growth over less than this is chance."""


class Growth(NamedTuple):
    """How fast bytes were added."""

    bytes_a_day: int
    measured_ms: int
    """Over how much log time."""


class Forecast(NamedTuple):
    """What becomes of a disk if all goes on as it did."""

    growth: Growth | None
    """Of history, journal and state together; None: too little was recorded to tell."""
    full_in_ms: int | None
    """How long until changes are refused; None: not known yet, or never."""


UNKNOWN: Final = Forecast(None, None)


def growth_of(parts: Sequence[SealedPart], now_ms: int) -> Growth | None:
    """Return how fast the history grew lately; None: too little is recorded to tell.

    `parts`: the segments in the order of the log; the first of them only tells when the others
    began. `now_ms`: log time.
    """
    recent = [each for each in parts if each.last_ms >= now_ms - WINDOW_MS]
    if not recent:
        return None
    measured_ms = recent[-1].last_ms - recent[0].last_ms
    if measured_ms < MEASURED_MS_MIN:
        return None
    added = sum(each.size for each in recent[1:])
    return Growth(added * DAY_MS // measured_ms, measured_ms)


def most_kept(bounds: ClusterSettings, growth: Growth, parts: Sequence[SealedPart]) -> int | None:
    """Return how many bytes of history are kept at most if it grows like that; None: all.

    Whole segments are deleted, so one more may be there.
    """
    least = bounds.history_age_ms_min * growth.bytes_a_day // DAY_MS
    by_age = bounds.history_age_ms_max * growth.bytes_a_day // DAY_MS
    kept = [most for most in (by_age, bounds.history_bytes_max) if most >= 0]
    if not kept:
        return None
    return max(min(kept), least) + max((each.size for each in parts), default=0)


def forecast(
    free: int, parts: Sequence[SealedPart], growth: Growth | None, rest: int, kept: int | None
) -> Forecast:
    """Say when a disk is full.

    `free`: bytes that are left above the reserve. `growth`: of the history. `rest`: bytes a day by
    which journal and state grow. `kept`: how large the history becomes at most; None: no bound.
    """
    if growth is None:
        return UNKNOWN
    both = Growth(growth.bytes_a_day + rest, growth.measured_ms)
    if free <= 0:
        return Forecast(both, 0)
    room = None if kept is None else max(0, kept - sum(each.size for each in parts))
    return Forecast(both, _until(free, growth.bytes_a_day, rest, room))


def _until(free: int, history: int, rest: int, room: int | None) -> int | None:
    """Return after how many ms the free bytes are used up; the history takes `room` at most."""
    together = history + rest
    if room is None or room * together >= free * history:  # full before the history is
        return free * DAY_MS // together if together else None
    return (free - room) * DAY_MS // rest if rest else None
