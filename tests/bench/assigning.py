"""What an assignment costs who computes it: 1,000 members, 10,000 partitions.

The group leader's client computes it, or in the heartbeat protocol the leading node, in its loop.

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
from holdfast.coordinator.consumer.assignors import ASSIGNORS
from holdfast.coordinator.consumer.state import CONSUMER, ConsumerBody, Member, restored
from holdfast.coordinator.consumer.targets import target
from holdfast.coordinator.consumer.transitions import ASSIGNING
from holdfast.coordinator.kernel.decide import new_draft
from holdfast.coordinator.model.events import TopicSize
from holdfast.coordinator.model.levels import LEVEL_MAX
from holdfast.coordinator.model.member_profile import ConsumerProfile
from holdfast.coordinator.model.state import Group, State
from holdfast.coordinator.model.volatile import Volatile
from holdfast.coordinator.structures.pmap import PMap

CLIENT_ASSIGNORS: Final[tuple[Assignor, ...]] = (
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
TARGET_GOAL: Final = most(0.1)


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


def target_seconds(assignor: str, *, mixed: bool) -> float:
    """Processor seconds of the slowest of three targets in a row, with what is around them."""
    topics = {name: TopicSize(name, PARTITIONS // len(TOPICS)) for name in TOPICS}
    worst, body = 0.0, ConsumerBody()
    for count in (MEMBERS, MEMBERS - 10, MEMBERS + 40):
        members = [_member(number, assignor, mixed=mixed) for number in range(count)]
        there = {each.member_id for each in members}
        kept = [each for each in body.targets.values() if each.member_id in there]
        group = Group(
            *("g", CONSUMER, restored(body, [*members, *kept])),
            state=ASSIGNING,
            generation=body.assignment_epoch + 1,
        )
        state = State(groups=PMap({"g": group}), topics=PMap(topics), raised_to=LEVEL_MAX)
        draft = new_draft(state, Volatile(), "g")
        began = time.process_time()
        target.compute(draft)
        worst = max(worst, time.process_time() - began)
        body = draft.group.body
    return worst


def _member(number: int, assignor: str, *, mixed: bool) -> Member:
    wanted = tuple(sorted(Random(number).sample(TOPICS, WANTED))) if mixed else TOPICS
    profile = ConsumerProfile(topics=wanted, server_assignor=assignor)
    return Member(f"member-{number}", None, profile, joined_seq=number, since_ms=0)


async def assignors(bench: Bench) -> None:
    """An assignment of 10,000 partitions to 1,000 members, processor time."""
    for mixed in (False, True):
        kind = "mixed topics" if mixed else "equal topics"
        for assignor in CLIENT_ASSIGNORS:
            value = seconds_of(assignor, mixed=mixed)
            bench.add(Figure("assign", f"{assignor.name}, {kind}", value, "s", GOAL))
        for name in ASSIGNORS:
            value = target_seconds(name, mixed=mixed)
            bench.add(Figure("assign", f"target by {name}, {kind}", value, "s", TARGET_GOAL))
