"""What the group leader's client pays for an assignment: 1,000 members, 10,000 partitions.

Processor time of this process alone, no cluster: figures stand beside each other on any machine
that is not overloaded. Each assignor starts from nothing, then ten members go, then fifty come;
the slowest of the three counts. Members of one topic set, and members that want 20 topics of 100.
"""

from __future__ import annotations

import time
from random import Random
from typing import Final

from bench.figures import Figure, most
from bench.rig import Bench
from holdfast.coordinator.assignors import (
    Assignment,
    Assignor,
    ByInstanceAssignor,
    CooperativeAssignor,
    MemberSubscription,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
    WeightedAssignor,
)

ASSIGNORS: Final[tuple[Assignor, ...]] = (
    RangeAssignor(),
    RoundRobinAssignor(),
    StickyAssignor(),
    CooperativeAssignor(),
    WeightedAssignor(),
    ByInstanceAssignor(),
)
MEMBERS: Final = 1_000
PARTITIONS: Final = 10_000
TOPICS: Final = tuple(f"topic-{number}" for number in range(100))
WANTED: Final = 20
GOAL: Final = most(0.3)


def members_of(count: int, owned: Assignment, *, mixed: bool) -> list[MemberSubscription]:
    """The first so many members, each with what it owned before; weights of 1 to 7."""
    return [
        MemberSubscription(
            member_id=f"member-{number}",
            instance_id=f"instance-{number}",
            topics=frozenset(Random(number).sample(TOPICS, WANTED) if mixed else TOPICS),
            owned=owned.get(f"member-{number}", {}),
            generation=1,
            weight=1 + number % 7,
        )
        for number in range(count)
    ]


def seconds_of(assignor: Assignor, *, mixed: bool) -> float:
    """Processor seconds of the slowest of three assignments in a row."""
    counts = dict.fromkeys(TOPICS, PARTITIONS // len(TOPICS))
    worst, owned = 0.0, Assignment()
    for count in (MEMBERS, MEMBERS - 10, MEMBERS + 40):
        members = members_of(count, owned, mixed=mixed)
        began = time.process_time()
        owned = assignor.assign(members, counts)
        worst = max(worst, time.process_time() - began)
    return worst


async def assignors(bench: Bench) -> None:
    """An assignment of 10,000 partitions to 1,000 members, processor time."""
    for assignor in ASSIGNORS:
        for mixed in (False, True):
            kind = "mixed topics" if mixed else "equal topics"
            value = seconds_of(assignor, mixed=mixed)
            bench.add(Figure("assign", f"{assignor.name}, {kind}", value, "s", GOAL))
