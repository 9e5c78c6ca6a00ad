"""Moments as people read them: of wall time with their age, of log time by their age alone.

A moment is ISO 8601, UTC, to the second. Wall time is compared with this machine's clock. Log time
(S8) is compared with the cluster's log time only: it stands still while nobody leads, and after a
change of leadership it stays behind the clocks by as long as the cluster was idle before.
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
    """The present, with the log time that an answer came with."""
    return Now(log_time_ms, time.time_ns() // 1_000_000)


def instant(at_ms: int) -> str:
    """Milliseconds since 1970 as `2026-01-31T08:15:00Z`."""
    return f"{datetime.fromtimestamp(at_ms // 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"


def ago(at_ms: int, now_ms: int) -> str:
    """A moment of wall time and how long it is past."""
    return f"{instant(at_ms)} ({span(now_ms - at_ms)} ago)"


def ago_log(at_ms: int, now_ms: int) -> str:
    """How long a moment of log time is past: the moment itself would be taken for wall time."""
    return f"{span(now_ms - at_ms)} ago"
