"""Moments of wall time and spans as people read them.

A moment is ISO 8601, UTC, to the second. One of log time is never shown like that: after an outage
log time lies behind the clocks (S8), so of it only the age is told.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

_UNITS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))
_FEW_SECONDS_MS: Final = 10_000


def instant(at_ms: int) -> str:
    """Milliseconds since 1970 as `2026-01-31T08:15:00Z`."""
    return f"{datetime.fromtimestamp(at_ms // 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"


def span(for_ms: int) -> str:
    """How long, in the largest unit that fits and the next smaller one: `3 h 5 min`."""
    if for_ms < _UNITS[-1][0]:
        return f"{max(0, for_ms)} ms"
    if for_ms < _FEW_SECONDS_MS:
        return f"{for_ms / 1000:.1f} s"
    for place, (size, unit) in enumerate(_UNITS):
        if for_ms >= size:
            rest = for_ms % size
            return f"{for_ms // size} {unit}" + _smaller(rest, place + 1)
    raise AssertionError(for_ms)  # a second and more always fits one of the units


def _smaller(rest_ms: int, place: int) -> str:
    if place == len(_UNITS):
        return ""
    size, unit = _UNITS[place]
    return f" {rest_ms // size} {unit}" if rest_ms >= size else ""
