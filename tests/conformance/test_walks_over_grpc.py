"""Random walks through the second coordinators, replayed against three nodes over gRPC.

The same walks as in tests/property, where there are more of them: here translate, actors, log and
leader take part.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any, Final

import pytest

from conformance.test_over_grpc import replay_all
from property.consumer_walk import ConsumerWalk
from property.walk import Walk

if TYPE_CHECKING:
    from pathlib import Path

Json = Any
pytestmark = pytest.mark.cluster

NODES: Final = 3
STEPS: Final = 50
SEEDS: Final = range(1_000, 1_008)


def whole(made: Walk | ConsumerWalk, name: str) -> Json:
    """A walk in which time plays no role, in the base profile, with all that a transcript has."""
    transcript = made.transcript(STEPS)
    waiting = sorted(made.model.sent)
    return {**transcript, "name": name, "exclusive": False, "parked_at_end": waiting}


def seeds() -> list[int]:
    chosen = os.environ.get("SEED")
    return [int(chosen)] if chosen else list(SEEDS)


def test_three_nodes_answer_as_the_rules_say(tmp_path: Path) -> None:
    print("again: SEED=… pytest tests/conformance/test_walks_over_grpc.py")
    walks = [whole(Walk(seed, timeless=True), f"walk-{seed}") for seed in seeds()]
    outcomes = asyncio.run(replay_all(walks, tmp_path, NODES))

    assert outcomes == {each["name"]: None for each in walks}


def test_three_nodes_beat_as_the_rules_say(tmp_path: Path) -> None:
    """The heartbeat protocol, on Session streams."""
    print("again: SEED=… pytest tests/conformance/test_walks_over_grpc.py")
    walks = [whole(ConsumerWalk(seed, timeless=True), f"beats-{seed}") for seed in seeds()]
    outcomes = asyncio.run(replay_all(walks, tmp_path, NODES, on_streams=True))

    assert outcomes == {each["name"]: None for each in walks}
