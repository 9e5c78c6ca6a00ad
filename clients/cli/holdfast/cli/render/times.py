"""Format times for people: wall time with its age, log time by its age alone.

A time is written in ISO 8601, UTC, to the second. Wall time is compared with this machine's clock.
Log time (S8) is compared with the cluster's log time only: it stops while no node leads, and after
a change of leadership it lags behind the clocks by as long as the cluster was idle before.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import NamedTuple

from holdfast.coordinator.model.text import span


class Now(NamedTuple):
    """The present, in ms since 1970: by the cluster's log time, and by this machine's clock."""

    log_ms: int
    wall_ms: int


def now(log_time_ms: int) -> Now:
    """Return the present; `log_time_ms` is from an answer."""
    return Now(log_time_ms, time.time_ns() // 1_000_000)


def instant(at_ms: int) -> str:
    """Format milliseconds since 1970 as `2026-01-31T08:15:00Z`."""
    return f"{datetime.fromtimestamp(at_ms // 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"


def ago(at_ms: int, now_ms: int) -> str:
    """Format a wall time and its age."""
    return f"{instant(at_ms)} ({span(now_ms - at_ms)} ago)"


def ago_log(at_ms: int, now_ms: int) -> str:
    """Format the age of a log time; the time itself would be mistaken for wall time."""
    return f"{span(now_ms - at_ms)} ago"
