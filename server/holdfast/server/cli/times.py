"""Times and spans as people read them. Knows no clock: what is now, the cluster says."""

from __future__ import annotations

from typing import Final

from holdfast.server.instants import instant

_UNITS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))
_FEW_SECONDS_MS: Final = 10_000


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


def ago(at_ms: int, now_ms: int) -> str:
    """A moment and how long it is past."""
    return f"{instant(at_ms)} ({span(now_ms - at_ms)} ago)"
