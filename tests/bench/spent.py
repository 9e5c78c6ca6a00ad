"""What nodes and load used over a stretch of time, from counters that only rise. Pure data.

A thread that ended within the stretch takes its context switches with it, so they are a lower
bound; its processor time is counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from bench.figures import Cost, Effort


class Snapshot(NamedTuple):
    """Counters at one moment: `nodes` and `client`, processor seconds; `switches`, by thread.

    `busy`: processor seconds of everything on the machine.
    """

    at: float
    client: float
    busy: float
    nodes: Mapping[str, float]
    switches: Mapping[str, Mapping[int, int]]


@dataclass(frozen=True, slots=True)
class Spent:
    """Differences of two snapshots: processor seconds and context switches by name of the node."""

    seconds: float
    leader: str
    nodes: Mapping[str, float]
    switches: Mapping[str, int]
    client: float
    busy: float
    load: float

    @property
    def effort(self) -> Effort:
        """The same in cores."""
        leader = self.nodes.get(self.leader, 0.0)
        others = sum(self.nodes.values()) - leader
        foreign = max(0.0, self.busy - leader - others - self.client)
        return Effort(
            self.seconds,
            leader / self.seconds,
            others / self.seconds,
            self.client / self.seconds,
            foreign / self.seconds,
            self.load,
        )

    def cost(self, operations: float) -> Cost:
        """The same for each of so many operations. Raises ValueError if there was none."""
        if not operations:
            raise ValueError("no operation was measured, so none has a cost")
        followers = sorted(name for name in self.nodes if name != self.leader)
        return Cost(
            self.nodes.get(self.leader, 0.0) / operations * 1e6,
            tuple(self.nodes[name] / operations * 1e6 for name in followers),
            self.client / operations * 1e6,
            self.switches.get(self.leader, 0) / operations,
            tuple(self.switches.get(name, 0) / operations for name in followers),
        )

    def __add__(self, other: Spent) -> Spent:
        """Both stretches together; the leader is the first one's."""
        return Spent(
            self.seconds + other.seconds,
            self.leader,
            {name: used + other.nodes.get(name, 0.0) for name, used in self.nodes.items()},
            {name: n + other.switches.get(name, 0) for name, n in self.switches.items()},
            self.client + other.client,
            self.busy + other.busy,
            other.load,
        )


def between(before: Snapshot, after: Snapshot, leader: str, load: float) -> Spent:
    """What was used from one snapshot to the next, by nodes that are in both."""
    alive = [name for name in before.nodes if name in after.nodes]
    return Spent(
        after.at - before.at,
        leader,
        {name: after.nodes[name] - before.nodes[name] for name in alive},
        {name: _more(before.switches[name], after.switches[name]) for name in alive},
        after.client - before.client,
        after.busy - before.busy,
        load,
    )


def _more(before: Mapping[int, int], after: Mapping[int, int]) -> int:
    """Switches of the threads that live now; a new one began at 0."""
    return sum(count - before.get(thread, 0) for thread, count in after.items())
