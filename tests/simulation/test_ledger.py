"""Totals add up: over seeds, over runs, and whatever order seeds come in."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from simulation.ledger import SeedResult, Totals, add_to, digest_over

if TYPE_CHECKING:
    from pathlib import Path


def result(seed: int, *, broken: bool = False) -> SeedResult:
    violations = (("I1", 5, "two owners"),) if broken else ()
    counts = {"events": 10 * seed, "elections": 2}
    faults = {"crash": seed, "pause": 1}
    return SeedResult(seed, f"d{seed}", 60_000_000, 1, counts, faults, violations, 1.5)


def totals(*seeds: int) -> Totals:
    summed = Totals()
    for seed in seeds:
        summed.add(result(seed, broken=seed == 3))
    return summed


def test_seeds_add_up() -> None:
    summed = totals(1, 2, 3)

    assert summed.seeds == 3
    assert summed.simulated_us == 180_000_000
    assert summed.counts == {"events": 60, "elections": 6}
    assert summed.faults == {"crash": 6, "pause": 3}
    assert summed.failing == [3]


def test_runs_add_up_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    add_to(path, totals(1, 2))
    add_to(path, totals(3))

    known = json.loads(path.read_text())

    assert known["runs"] == 2
    assert known["seeds"] == 3
    assert known["counts"] == {"events": 60, "elections": 6}
    assert known["faults"] == {"crash": 6, "pause": 3}
    assert known["failing_seeds"] == [3]


def test_a_file_of_another_format_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    path.write_text('{"format": 99}')

    with pytest.raises(ValueError, match="another --ledger FILE"):
        add_to(path, totals(1))

    assert path.read_text() == '{"format": 99}'


def test_the_digest_does_not_depend_on_the_order_of_seeds() -> None:
    forth, back = [result(1), result(2)], [result(2), result(1)]

    assert digest_over(forth) == digest_over(back)
    assert digest_over(forth) != digest_over([result(1), result(3)])
