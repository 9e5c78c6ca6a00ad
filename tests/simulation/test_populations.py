"""Which groups a seed has, and which protocol its members speak."""

from __future__ import annotations

from random import Random

from simulation.populations import (
    CLASSIC,
    COMPUTING,
    CONVERTING,
    COOPERATIVE,
    DYNAMIC,
    KINDS,
    MIXED,
    OF_OLDER,
    PAUSES_MS,
    STATIC,
    Population,
    computes_beside,
    drawn,
    has_heartbeats,
    pause_ms,
)
from simulation.schedule import US

FAULT_S = (4.0, 54.0)
SEEDS = range(1, 41)


def test_a_seed_always_has_the_same_groups_and_all_kinds_come_up() -> None:
    every = [drawn(seed, mixed_versions=False) for seed in SEEDS]

    assert every == [drawn(seed, mixed_versions=False) for seed in SEEDS]
    assert all(len(set(kinds)) == len(kinds) for kinds in every), "each once in a seed"
    assert {kind for kinds in every for kind in kinds} == set(KINDS)


def test_nodes_of_two_versions_have_no_group_of_the_newer_protocol_alone() -> None:
    """S3: the older ones do not have it; what asks for it is refused, and the group goes on."""
    found = {kind for seed in SEEDS for kind in drawn(seed, mixed_versions=True)}

    assert found == set(OF_OLDER)
    assert found.isdisjoint({STATIC, DYNAMIC, COMPUTING})


def test_a_converting_group_is_rolled_there_and_back() -> None:
    """K-Q2, K-Q12: within the time in which there are faults."""
    group = Population(CONVERTING, 7, "g", FAULT_S)
    there_us, back_us = group.rolls_us
    before, between, after = 0, (there_us + back_us) // 2, round(FAULT_S[1] * US)

    assert before < there_us < back_us < after
    spoken = [group.speaks_heartbeats(1, at_us) for at_us in (before, between, after)]
    assert spoken == [False, True, False]


def test_half_of_a_mixed_group_speaks_each_protocol() -> None:
    group = Population(MIXED, 7, "g", FAULT_S)

    assert [group.speaks_heartbeats(slot, 0) for slot in (1, 2, 3, 4)] == [False, True] * 2


def test_static_and_dynamic_groups_are_of_the_heartbeat_protocol_whole() -> None:
    for kind, static in ((STATIC, True), (DYNAMIC, False), (COMPUTING, None)):
        group = Population(kind, 7, "g", FAULT_S)

        found = {group.is_static(Random(seed)) for seed in SEEDS}
        assert found == ({True, False} if static is None else {static})
        assert all(group.speaks_heartbeats(slot, 0) for slot in (1, 2, 3, 4))


def test_only_groups_of_classic_members_have_no_heartbeats_to_lose() -> None:
    assert has_heartbeats(("classic", "cooperative", "mixed"))
    assert not has_heartbeats(("classic", "classic", "cooperative"))


def test_in_some_seeds_targets_are_computed_beside_and_only_where_some_are_computed() -> None:
    """K-M20: a target that comes late meets joins, departures and failovers."""
    found = {seed: drawn(seed, mixed_versions=False) for seed in SEEDS}
    beside = [seed for seed, kinds in found.items() if computes_beside(seed, kinds)]

    assert len(SEEDS) / 10 < len(beside) < len(SEEDS) / 2
    assert all({STATIC, DYNAMIC} & set(found[seed]) for seed in beside)
    assert not computes_beside(beside[0], (CLASSIC, COOPERATIVE, MIXED))


def test_in_some_seeds_targets_are_apart_and_only_where_some_are_computed() -> None:
    """K-P15: a target that is put off meets joins, departures and failovers."""
    found = {seed: drawn(seed, mixed_versions=False) for seed in SEEDS}
    paused = [seed for seed, kinds in found.items() if pause_ms(seed, kinds)]

    assert len(SEEDS) / 5 < len(paused) < len(SEEDS) / 2
    assert {pause_ms(seed, found[seed]) for seed in paused} == set(PAUSES_MS)
    assert any(MIXED in found[seed] for seed in paused)
    assert not pause_ms(paused[0], (CLASSIC, COOPERATIVE))
