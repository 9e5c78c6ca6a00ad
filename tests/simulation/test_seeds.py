"""Whole runs: what every seed must contain, and that nothing is broken in a few of them.

They run in processes with pinned hashes, as `./dev sim` does, so that its replay is the same run.
"""

from __future__ import annotations

import os
from multiprocessing import get_context
from typing import TYPE_CHECKING
from unittest import mock

import pytest

from simulation.faults import BEATS, CHANGES
from simulation.outcome import BUSY, run_seed
from simulation.run import WORKERS, run_one
from simulation.sealing import seals

if TYPE_CHECKING:
    from simulation.ledger import SeedResult

CHANGING = 11
"""A seed in which nodes come and go."""
SEEDS = (1, 2, 3, CHANGING)
MANY_EPOCHS = 10


@pytest.fixture(scope="module")
def results() -> dict[int, SeedResult]:
    """Each seed, run once."""
    pinned = mock.patch.dict(os.environ, {"PYTHONHASHSEED": "0"})
    with pinned, get_context("spawn").Pool(WORKERS) as pool:
        return {result.seed: result for result in pool.map(run_one, SEEDS)}


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_broken(results: dict[int, SeedResult], seed: int) -> None:
    """INV-1 to INV-12, INV-15 to INV-17, no alarm, and nothing raised where nobody handles it."""
    violations = results[seed].violations

    assert not violations, f"./dev sim --seed {seed}: {violations[0]}"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_seed_is_large_enough_to_prove_something(
    results: dict[int, SeedResult], seed: int
) -> None:
    """A minute of three groups, hundreds of changes, many faults of many kinds."""
    result = results[seed]

    assert result.simulated_us >= 60_000_000
    assert result.counts["acknowledged"] >= 300
    assert result.counts["faults"] >= 15
    assert len(result.faults) >= 6
    assert result.counts["writes"] > 0
    assert result.counts["moves"] > 0
    assert result.counts["watched"] > 0


def test_segments_are_sealed_on_every_node_where_boundaries_are_set(
    results: dict[int, SeedResult],
) -> None:
    """S22: by number, by age and by calls; else the judge of segments would have nothing to see."""
    counts = {seed: results[seed].counts for seed in SEEDS}

    assert all(bool(each["boundaries"]) == seals(seed) for seed, each in counts.items())
    sealing = [each for seed, each in counts.items() if seals(seed)]
    assert len(sealing) >= 2
    assert all(each["boundaries"] >= 10 for each in sealing)
    assert all(each["segments"] >= 2 * each["boundaries"] for each in sealing)


def test_nodes_come_and_go_among_the_faults(results: dict[int, SeedResult]) -> None:
    """S25: in sizes that pass, with refusals, and a node that is removed learns of it and ends."""
    counts, faults = results[CHANGING].counts, results[CHANGING].faults

    assert counts["node_changes"] >= 5
    assert counts["changes_refused"] > 0
    assert counts["nodes_told"] > 0
    assert faults.keys() >= CHANGES.keys()
    assert faults.keys() - CHANGES.keys(), "other faults, too"


def test_other_seeds_keep_their_nodes(results: dict[int, SeedResult]) -> None:
    assert [seed for seed in SEEDS if results[seed].counts["changes_asked"]] == [CHANGING]


def test_a_cooperative_group_works_on_while_partitions_move(
    results: dict[int, SeedResult],
) -> None:
    """ADR 10: what is kept from one assignment to the next keeps its token, beside newer ones.

    Not in every seed: in some all partitions of that group move, or none is kept beside a new one.
    """
    assert any(result.counts["kept"] > 0 for result in results.values())


def test_groups_of_the_heartbeat_protocol_live_and_are_converted(
    results: dict[int, SeedResult],
) -> None:
    """KIP-848: in some of the seeds; with heartbeats that are lost, late and doubled there."""
    beating = [result for result in results.values() if result.counts["epochs"] >= MANY_EPOCHS]

    assert len(beating) >= 2
    assert all(result.faults.keys() >= BEATS.keys() for result in beating)
    assert sum(result.counts["conversions"] for result in beating) >= 2


def test_there_are_elections(results: dict[int, SeedResult]) -> None:
    assert sum(result.counts["elections"] for result in results.values()) >= 2 * len(SEEDS)


def test_an_idle_cluster_keeps_its_leader() -> None:
    """Without faults and load: one election, and nothing to complain of."""
    outcome = run_seed(1, faults=[], shape=BUSY._replace(busy=False))

    assert not outcome.violations
    assert outcome.counts["elections"] == 1
