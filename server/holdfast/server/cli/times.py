"""Times and spans as people read them.

Wall time is compared with this machine's clock. Log time (S8) is compared with the cluster's log
time only: it stands still while nobody leads, and after a change of leadership it stays behind the
clocks by as long as the cluster was idle before.
"""

from __future__ import annotations

import time
from typing import Final, NamedTuple

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


class Now(NamedTuple):
    """The present, in ms since 1970: by the cluster's log time, and by this machine's clock."""

    log_ms: int
    wall_ms: int


def now(log_time_ms: int) -> Now:
    """The present, with the log time that an answer came with."""
    return Now(log_time_ms, time.time_ns() // 1_000_000)


def ago(at_ms: int, now_ms: int) -> str:
    """A moment of wall time and how long it is past."""
    return f"{instant(at_ms)} ({span(now_ms - at_ms)} ago)"


def ago_log(at_ms: int, now_ms: int) -> str:
    """The same in log time, and says so."""
    return f"{instant(at_ms)} log time ({span(now_ms - at_ms)} ago)"
