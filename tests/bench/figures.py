"""What a row found: figures with their goals and the conditions of their moment. Pure data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

REST: Final = "the rest of the row"
"""Under which it is noted that nodes lack a call which no single figure of the row stands for."""


class Goal(NamedTuple):
    """What a figure must reach. `at_least`: more is better; else less is."""

    value: float
    at_least: bool

    def met(self, value: float) -> bool:
        """Whether a value reaches it."""
        return value >= self.value if self.at_least else value <= self.value

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.value:,.10g}"


def least(value: float) -> Goal:
    """The figure must be at least this."""
    return Goal(value, at_least=True)


def most(value: float) -> Goal:
    """The figure must be at most this."""
    return Goal(value, at_least=False)


class Effort(NamedTuple):
    """What it took while a figure was measured, in cores: 1.0 is one core all the time.

    `foreign`: everything on the machine that is neither a node nor the load. `load`: load average.
    """

    seconds: float
    leader: float
    others: float
    client: float
    foreign: float
    load: float


class Cost(NamedTuple):
    """What one operation took: processor time (user and system), and context switches.

    `followers_*`: one for each, in the order of their names.
    """

    leader_us: float
    followers_us: tuple[float, ...]
    client_us: float
    leader_switches: float
    followers_switches: tuple[float, ...]

    @property
    def sum_us(self) -> float:
        """All processes together; the load is one of them."""
        return self.leader_us + sum(self.followers_us) + self.client_us


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure. `cost`: of one operation, if the row counts them.

    `system`: whom it is about. `shape`: kind of its calls (`bench.shapes`), if `bare` has it.
    `instead`: with which figure of its row it is compared where a checkout lacks the calls.
    `more`: what else was seen, by name.
    """

    row: str
    what: str
    value: float
    unit: str
    goal: Goal | None = None
    p50_ms: float | None = None
    p99_ms: float | None = None
    cost: Cost | None = None
    effort: Effort | None = None
    system: str = "holdfast"
    shape: str = ""
    instead: str = ""
    more: dict[str, object] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """Whether the goal was reached; empty without one."""
        return "" if self.goal is None else ("ok" if self.goal.met(self.value) else "short")


def quantile(values: Iterable[float], share: float) -> float:
    """The value below which this share of them lies."""
    ranked = sorted(values)
    if not ranked:
        raise ValueError("nothing was measured, so there is no quantile")
    return ranked[min(len(ranked) - 1, int(share * len(ranked)))]


def median(values: Sequence[float]) -> float:
    """The middle one."""
    return quantile(values, 0.5)
