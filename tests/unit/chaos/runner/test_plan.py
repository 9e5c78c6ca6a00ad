"""Which faults strike in which order, and which cannot be had."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from holdfast.chaos import nemesis
from holdfast.chaos.runner.plan import Plan, Refused, chosen_kinds, schedule

QUICK = [kind for kind in nemesis.KINDS if not kind.slow]
SLOW = [kind for kind in nemesis.KINDS if kind.slow]


def test_a_round_has_every_kind_once() -> None:
    done = list(schedule(nemesis.KINDS, Random(1), rounds=1))

    assert Counter(done) == Counter(nemesis.KINDS)


def test_a_seed_gives_the_same_order_and_another_one_another() -> None:
    def names(seed: int) -> list[str]:
        return [kind.name for kind in islice(schedule(nemesis.KINDS, Random(seed), 0), 100)]

    assert names(1) == names(1)
    assert names(1) != names(2)


def test_kinds_that_start_many_nodes_are_in_each_third_round() -> None:
    three = len(nemesis.KINDS) + 2 * len(QUICK)
    counts = Counter(islice(schedule(nemesis.KINDS, Random(1), 0), three))

    assert {counts[kind] for kind in QUICK} == {3}
    assert {counts[kind] for kind in SLOW} == {1}


def test_slow_kinds_alone_strike_all_the_same() -> None:
    assert len(list(islice(schedule(SLOW, Random(1), 0), 50))) == 50


def test_an_ordinary_user_has_at_least_ten_kinds(tmp_path: Path) -> None:
    """Signals, proxies, limits and the test hook need neither root nor a tool."""
    needs = {"proxy"}
    plain = [kind for kind in nemesis.KINDS if set(kind.needs) <= needs]

    assert len(plain) >= 10
    assert set(plain) <= set(chosen_kinds(Plan(tmp_path, 1))[0])


def test_a_running_cluster_has_no_proxies(tmp_path: Path) -> None:
    found, absent = chosen_kinds(Plan(tmp_path, 1, cluster=tmp_path))

    assert "partition" in {kind.name for kind in absent}
    assert "kill-leader" in {kind.name for kind in found}


def test_a_kind_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="earthquake"):
        chosen_kinds(Plan(tmp_path, 1, kinds=("earthquake",)))
