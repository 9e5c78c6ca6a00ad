"""Random walks through the second coordinator, replayed against three nodes over gRPC.

The same walks as in tests/property, where there are more of them: here translate, actors, log and
leader take part. Calls are unary.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any, Final

import pytest

from conformance.test_over_grpc import replay_all
from property.walk import Walk

if TYPE_CHECKING:
    from pathlib import Path

Json = Any
pytestmark = pytest.mark.cluster

NODES: Final = 3
STEPS: Final = 50
SEEDS: Final = range(1_000, 1_008)


def walk(seed: int) -> Json:
    """A walk in which time plays no role, in the base profile, with all that a transcript has."""
    made = Walk(seed, timeless=True)
    transcript = made.transcript(STEPS)
    waiting = sorted(made.model.sent)
    return {**transcript, "name": f"walk-{seed}", "exclusive": False, "parked_at_end": waiting}


def test_three_nodes_answer_as_the_rules_say(tmp_path: Path) -> None:
    chosen = os.environ.get("SEED")
    seeds = [int(chosen)] if chosen else list(SEEDS)
    print("again: SEED=… pytest tests/conformance/test_walks_over_grpc.py")
    outcomes = asyncio.run(replay_all([walk(seed) for seed in seeds], tmp_path, NODES))

    assert outcomes == {f"walk-{seed}": None for seed in seeds}
