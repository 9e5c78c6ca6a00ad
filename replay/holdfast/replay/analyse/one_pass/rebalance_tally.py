"""Count all rebalances by group, cause and time, and keep the slowest."""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

from holdfast.replay.analyse.analysis import Bar
from holdfast.replay.analyse.one_pass.listed import Longest
from holdfast.replay.analyse.rebalances import Rebalance

BARS_MAX: Final = 120
"""Spans of time in the chart of rebalances at most."""
_SPANS_S: Final = (1, 5, 10, 30, 60, 300, 600, 1_800, 3_600, 21_600, 86_400)
_HEARTBEAT: Final = "ConsumerGroupHeartbeat"


class Taken(NamedTuple):
    """How many rebalances of a cause took how long; None: were never stable."""

    cause: str
    stable_ms: int | None
    rebalances: int


class RebalanceTally:
    """Counts the rebalances of a bucket; a bar is so wide, from the beginning of the log on."""

    def __init__(self, begun_ms: int, width_ms: int) -> None:
        """Nothing is counted yet."""
        self._begun_ms = begun_ms
        self._width_ms = width_ms
        self._bars: Counter[tuple[int, str]] = Counter()
        self._taken: Counter[tuple[str, int | None]] = Counter()
        self.number: Counter[str] = Counter()
        """Of each group."""
        self.stable_ms: dict[str, list[int]] = {}
        """Of each group: how long those took that were stable."""
        self.slowest: Longest[Rebalance] = Longest(place_of_rebalance)

    def take(self, rebalance: Rebalance) -> None:
        """Count one."""
        cause = cause_of(rebalance.command, rebalance.reason)
        self._bars[(rebalance.start_ms - self._begun_ms) // self._width_ms, cause] += 1
        self._taken[cause, rebalance.stable_ms] += 1
        self.number[rebalance.group] += 1
        if rebalance.stable_ms is not None:
            self.stable_ms.setdefault(rebalance.group, []).append(rebalance.stable_ms)
        self.slowest.add(rebalance)

    def bars(self) -> list[Bar]:
        """Return all of them by time and cause."""
        return [Bar(at, cause, number) for (at, cause), number in self._bars.items()]

    def taken(self) -> list[Taken]:
        """Return all of them by cause and length."""
        return [Taken(cause, took, number) for (cause, took), number in self._taken.items()]


def cause_of(command: str, reason: str) -> str:
    """Return the command that began a rebalance; for a heartbeat, what it told.

    The reason of a classic rebalance is free text, with the names of members in it.
    """
    return reason if command in {"", _HEARTBEAT} else command


def place_of_rebalance(row: Rebalance) -> tuple[bool, int, int, int]:
    """Return what they are listed by: those that never were stable first, then the slowest."""
    return row.stable_ms is not None, -(row.stable_ms or 0), row.entry, row.ordinal


def bar_ms(span_ms: int) -> int:
    """Choose how long the span of a bar is: a round time, so that there are at most BARS_MAX."""
    fitting = [each * 1000 for each in _SPANS_S if each * 1000 * BARS_MAX >= span_ms]
    days = -(-span_ms // (BARS_MAX * 86_400_000))
    return fitting[0] if fitting else days * 86_400_000
