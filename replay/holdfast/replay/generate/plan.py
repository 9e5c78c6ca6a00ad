"""What history is wanted: the options of `holdfast replay generate`, checked. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

BOUNCES: Final = "bounces"
"""A static member's process stops, with or without a release, and another one takes its place."""
EXPIRIES: Final = "expiries"
"""A member is not heard for its session timeout."""
FAILOVERS: Final = "failovers"
"""Another node leads: a new term, and nothing is left of what was beside the log."""
DELETIONS: Final = "deletions"
"""Of offsets, of groups, and of topics."""
FAULTS: Final = (BOUNCES, EXPIRIES, FAILOVERS, DELETIONS)

EVENTS_MIN: Final = 10
"""What every history begins with needs fewer."""
EVENTS_MAX: Final = 10**12
GROUPS_MAX: Final = 10_000_000
"""As many as `cluster.groups_max` allows at most."""
SKEW_MAX: Final = 10.0
GIANT_MAX: Final = 0.95
NODES_MAX: Final = 99
SEGMENT_EVENTS_MIN: Final = 100
SEGMENT_EVENTS_MAX: Final = 10_000_000
ANCHORS_MAX: Final = 100_000


class PlanRefused(ValueError):
    """A history of this kind cannot be made; the sentence names the option and its limits."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One history. Raises PlanRefused for options that make none."""

    events: int
    """How many records the log has, exactly."""
    groups: int = 100
    """How many groups may come to be; with few events some are never heard of."""
    skew: float = 1.1
    """Exponent of Zipf's law, by which groups are chosen; 0: all alike."""
    giant: float = 0.0
    """The share of all events that the first group has; 0: no group stands out by itself."""
    faults: tuple[str, ...] = FAULTS
    seed: int = 0
    """Equal plans make equal bytes."""
    nodes: int = 3
    segment_events: int = 100_000
    """A segment is sealed when it has this many records; memory grows with it."""
    witness: bool = True
    """Write what clients were acknowledged."""
    anchors: int = 0
    """At how many places, chosen at random, to write what a node would have told of its log."""

    def __post_init__(self) -> None:
        """Check every option."""
        _whole("events", self.events, EVENTS_MIN, EVENTS_MAX)
        _whole("groups", self.groups, 1, GROUPS_MAX)
        _whole("nodes", self.nodes, 1, NODES_MAX)
        _whole("segment-events", self.segment_events, SEGMENT_EVENTS_MIN, SEGMENT_EVENTS_MAX)
        _whole("anchors", self.anchors, 0, ANCHORS_MAX)
        _number("skew", self.skew, 0, SKEW_MAX)
        _number("giant", self.giant, 0, GIANT_MAX)
        unknown = [each for each in self.faults if each not in FAULTS]
        if unknown:
            known = ", ".join(FAULTS)
            raise PlanRefused(f"faults: there is no {unknown[0]!r}; choose from {known}, or none")
        if self.giant and self.groups == 1:
            raise PlanRefused("giant: one group has all events anyway; ask for two groups or more")

    def has(self, fault: str) -> bool:
        """Return whether a kind of fault is wanted."""
        return fault in self.faults


def _whole(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise PlanRefused(f"{name}: {value} is not between {least} and {most}")


def _number(name: str, value: float, least: float, most: float) -> None:
    if not math.isfinite(value) or not least <= value <= most:
        raise PlanRefused(f"{name}: {value} is not between {least:g} and {most:g}")
