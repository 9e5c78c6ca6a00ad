"""The sum that ceilings are held against: what is kept up is what a count of the state gives.

`harness.core` compares the two before each decision of every story and every random walk; here are
the ways in which a node comes by a state: restart, snapshot install, failover.
"""

from __future__ import annotations

import os
import random

import pytest

from harness.core import Core
from holdfast.coordinator.groups import usage
from holdfast.coordinator.kernel.group_types import TYPES
from holdfast.coordinator.model.state import State
from holdfast.coordinator.model.usage import NOTHING, Usage
from holdfast.runtime.groups.tally import ENTRIES_MAX, Tally
from unit.coordinator.test_random_calls import Chaos

STEPS = 150
SEEDS = range(6)


def seeds() -> list[int]:
    chosen = os.environ.get("SEED")
    return [int(chosen)] if chosen else list(SEEDS)


def walked(seed: int) -> Core:
    print(f"again: SEED={seed} pytest tests/unit/runtime/groups/test_tally.py")
    chaos = Chaos(seed)
    for _ in range(STEPS):
        chaos.step()
    return chaos.calls.core


@pytest.mark.parametrize("seed", seeds())
def test_s7_the_tally_is_what_a_count_of_the_state_gives(seed: int) -> None:
    """From any state to any other: an entry, a restart, an installed snapshot, or back to none."""
    states = [applied.after for applied in walked(seed).log]
    rng, tally = random.Random(seed), Tally()
    for state in [*rng.choices(states, k=60), State(), states[-1]]:
        tally.follow(state)

        assert tally.used(state) == usage.of(state, TYPES)
    assert usage.of(states[-1], TYPES).members == sum(
        len(group.body.members) for group in states[-1].groups.values()
    )


def test_s7_what_a_group_has_on_its_way_counts_until_it_has_landed() -> None:
    tally, state = Tally(), State()
    tally.claim("g", Usage(groups=1, members=2, state_bytes=100), handed_out=1)
    tally.claim("h", Usage(members=1, state_bytes=10), handed_out=0)
    pending = usage.PENDING_BYTES
    assert tally.used(state) == Usage(groups=1, members=4, state_bytes=110 + pending)
    tally.claim("g", Usage(groups=1, members=3, state_bytes=150), handed_out=1)
    assert tally.used(state) == Usage(groups=1, members=5, state_bytes=160 + pending)
    tally.landed("g")
    assert tally.used(state) == Usage(members=2, state_bytes=10 + pending)
    tally.claim("g", NOTHING, handed_out=0)
    tally.claim("h", NOTHING, handed_out=0)
    assert tally.used(state) == NOTHING


def test_s7_far_below_the_ceilings_a_landed_claim_stands_for_what_it_became() -> None:
    """The difference is looked at once in a while there, and each time near a ceiling."""
    states = [applied.after for applied in walked(0).log]
    first, last = states[0], states[-1]
    many = 1 << 40
    far, near = Usage(many, many, many, many, many), Usage(many, many, many, 3, many)
    tally = Tally()
    tally.follow(first)
    tally.claim("g", Usage(members=3), handed_out=0)
    tally.landed("g")
    estimate = usage.of(first, TYPES).plus(Usage(members=3))
    assert tally.used(last, far) == estimate
    assert tally.used(last, near) == usage.of(last, TYPES)
    for _ in range(ENTRIES_MAX):
        tally.applied(first)
    assert tally.used(first, far) == usage.of(first, TYPES)


def test_s7_nothing_is_on_its_way_on_a_node_that_does_not_lead() -> None:
    tally = Tally()
    tally.claim("g", Usage(members=2), handed_out=1)
    tally.clear()

    assert tally.used(State()) == NOTHING
