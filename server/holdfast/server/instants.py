"""Moments as people read them: ISO 8601, UTC, to the second. Log time is near to wall time (S8)."""

from __future__ import annotations

from datetime import UTC, datetime


def instant(at_ms: int) -> str:
    """Milliseconds since 1970 as `2026-01-31T08:15:00Z`."""
    return f"{datetime.fromtimestamp(at_ms // 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"
