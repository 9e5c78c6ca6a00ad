"""The core against a second coordinator written from the rules: random calls, the same answers."""

import asyncio
import os
from typing import Any

import pytest

from conformance.in_process import InProcess
from conformance.replayer import replay
from conformance.test_seeded_defects import no, nothing
from holdfast.coordinator.classic import (
    deadlines,
    identity,
    join,
    leave,
    protocol_votes,
    rebalance,
    rejoin,
    sync,
)
from holdfast.coordinator.groups.draft import Draft
from property.walk import Walk

Json = Any
STEPS = 70
SEEDS = (*range(80), 300_062)


def seeds() -> list[int]:
    chosen = os.environ.get("SEED")
    return [int(chosen)] if chosen else list(SEEDS)


@pytest.mark.parametrize("seed", seeds())
def test_the_core_answers_as_the_rules_say(seed: int) -> None:
    print(f"again: SEED={seed} pytest tests/property/test_random_walks.py")
    transcript = Walk(seed).transcript(STEPS)
    session = InProcess(transcript["config"], transcript["topics"])

    assert asyncio.run(replay(transcript, session)) is None
    session.core.check_replays()


DEFECTS = [
    ("nobody is fenced (C4)", identity, "check", nothing),
    ("a heartbeat does not renew (F7)", Draft, "renew", nothing),
    ("a changed vote goes unnoticed (B8)", rejoin, "_vote", lambda group: group.body.protocol_name),
    ("other topics go unnoticed (B6)", rejoin, "_topics", nothing),
    ("a full group has no room for its own (I12)", join, "_has_room", no),
    ("nothing is in common (I1)", protocol_votes, "in_common", no),
    ("no round closes early (D4)", rebalance, "close_if_complete", nothing),
    ("the initial delay is not waited for (D1)", rebalance, "_delay", nothing),
    ("a late sync is no matter (E10)", leave, "sync_overdue", nothing),
    ("sessions never end (F9)", deadlines, "_session_over", nothing),
    ("a sync is still owed (E13)", sync, "_synced", nothing),
    ("any protocol will do in a sync (E9)", sync, "_agrees", lambda *_: True),
]


@pytest.mark.source("it puts a defect in the place of a function")
@pytest.mark.parametrize(
    ("where", "name", "defect"), [each[1:] for each in DEFECTS], ids=[each[0] for each in DEFECTS]
)
def test_a_defect_is_seen(
    where: object, name: str, defect: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Teeth: one of the walks takes a step that a defective core does not."""
    monkeypatch.setattr(where, name, defect)

    assert any(map(_differs, SEEDS))


def _differs(seed: int) -> bool:
    transcript = Walk(seed).transcript(STEPS)
    session = InProcess(transcript["config"], transcript["topics"])
    try:
        return asyncio.run(replay(transcript, session)) is not None
    except Exception:  # noqa: BLE001 - a defect may break anything
        return True
