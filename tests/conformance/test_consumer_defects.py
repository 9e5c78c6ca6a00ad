"""Teeth: each defect in the rules of consumer groups is seen by a transcript or a random walk."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from conformance.in_process import InProcess
from conformance.replayer import deviations, heartbeat_transcripts, replay
from conformance.test_seeded_defects import no, nothing, recorded, yes
from holdfast.coordinator.consumer import answers, deadlines, leave, offsets, sessions
from holdfast.coordinator.consumer.holdings import Pairs
from holdfast.coordinator.consumer.identities import identity, static_members
from holdfast.coordinator.consumer.state import Member
from holdfast.coordinator.consumer.targets import (
    epochs,
    reconciliation,
    regexes,
    target,
    topics_digest,
)
from holdfast.coordinator.consumer.targets.reconciliation import Goal, Step
from property.consumer_walk import ConsumerWalk

Json = Any
WALKS, STEPS = range(40), 80

_towards = reconciliation._towards


def null_is_empty(goal: Goal, some: Pairs) -> bool:
    """A heartbeat without a list counts as one that owns nothing."""
    return not (goal.owned or frozenset()).isdisjoint(some)


def all_is_free(member: Member, goal: Goal, assigned: Pairs, pending: Pairs) -> Step:
    """What others hold is granted all the same."""
    return _towards(member, goal._replace(is_free=yes), assigned, pending)


DEFECTS = [
    ("grants before the release (O8, O15)", reconciliation, "_towards", all_is_free),
    ("takes a null list as an empty one (O5)", Goal, "may_own", null_is_empty),
    ("asks nothing back (O3)", Goal, "may_own", no),
    ("keeps topics that nobody wants (O13)", reconciliation, "next_cut", nothing),
    ("fences no epoch (M10, M12)", identity, "check_epoch", nothing),
    ("raises no epoch (M16, M21)", epochs, "raise_epoch", nothing),
    ("does not see topics change (M27)", topics_digest, "moved", no),
    ("tells each assignment again (M13, M15)", answers, "_others", yes),
    ("knows no full heartbeat (M14)", answers, "_is_full", no),
    ("takes more than a group may have (M8)", static_members, "no_room", nothing),
    ("lets everybody have an instance (N11)", static_members, "may_join", nothing),
    ("ends no session (M24, N4)", deadlines, "_session_over", nothing),
    ("removes nobody that is late (M25)", leave, "expire", nothing),
    ("renews no session (M13)", sessions, "heard", nothing),
    ("never waits between targets (P15)", target, "is_due", yes),
    ("computes no target (M20)", target, "is_due", no),
    ("has the first assignor always (P11)", target, "preferred", lambda _, known: known[0]),
    ("looks expressions up all the time (P5)", regexes, "_is_time", yes),
    ("looks no expression up (P1)", regexes, "_is_time", no),
    ("drops what was found (P2)", regexes, "_is_news", no),
    ("takes no commit of an older epoch (J39)", offsets, "_kept", no),
    ("takes every commit of an older epoch (J40)", offsets, "_kept", yes),
]


@cache
def walk(seed: int) -> Json:
    """A random walk; made once, for it says what the rules say, whatever the core does."""
    return ConsumerWalk(seed).transcript(STEPS)


def scripts() -> Iterator[tuple[str, Json]]:
    """Transcripts, recorded ones first, by name."""
    yield from recorded(tuple(heartbeat_transcripts()))
    yield from ((f"walk {seed}", walk(seed)) for seed in WALKS)


def seen_by() -> Iterator[str]:
    """What tells something else than it should."""
    for name, script in scripts():
        try:
            session = InProcess(script["config"], script["topics"])
            if asyncio.run(replay(script, session, deviations().get(name))):
                yield name
        except Exception as broken:  # noqa: BLE001 - a defect may break anything
            yield f"{name}: {broken!r}"


@pytest.mark.source("it puts a defect in the place of a function")
@pytest.mark.parametrize(
    ("where", "name", "defect"), [each[1:] for each in DEFECTS], ids=[each[0] for each in DEFECTS]
)
def test_the_defect_is_seen(
    where: object, name: str, defect: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, name, defect)

    assert next(seen_by(), None) is not None


@pytest.mark.slow
def test_without_a_defect_nothing_is_seen() -> None:
    """Else the tests above would prove nothing."""
    assert list(seen_by()) == []
