"""The row `replay`: what its rates are made of, and whose processor time is counted."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from bench import replay_parts, replay_worker, replaying


def test_a_rate_is_of_what_the_larger_log_has_more() -> None:
    """What a session costs at its start is in both, and so in neither."""
    told = [
        {"part": "fold", "events": 1_000, "cpu": 10.0, "wall": 7.0},
        {"part": "fold", "events": 5_000, "cpu": 12.0, "wall": 8.0},
        {"part": "hashes", "events": 1_000, "cpu": 99.0, "wall": 99.0},
    ]

    by_cpu, by_clock = (replaying.slope(told, "fold", 1_000, 5_000, by) for by in ("cpu", "wall"))

    assert (by_cpu, by_clock) == pytest.approx((4_000 / 2.0, 4_000 / 1.0))


def test_each_rate_has_a_part_that_measures_it() -> None:
    assert list(replay_parts.PARTS) == list(replaying.RATES)
    assert {part for ratio in replaying.RATIOS for part in ratio[:2]} <= set(replaying.RATES)
    assert set(replaying.SKEWED) <= set(replaying.RATES)


def test_all_processes_below_one_are_its_tree() -> None:
    """The JVM starts a daemon, and the daemon the workers."""
    inner = "import sys; sys.stdin.read()"
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])"
    with subprocess.Popen([sys.executable, "-c", outer], stdin=subprocess.PIPE) as child:
        while len(replay_worker.tree(child.pid)) < 2:
            assert child.poll() is None
        found = replay_worker.tree(os.getpid())
        assert set(replay_worker.tree(child.pid)) <= set(found)
        assert child.stdin is not None
        child.stdin.close()
    assert found[os.getpid()] == "driver"
