"""Random schedules (harness.chaos): safety after every step, liveness at the end.

Longer runs: HOLDFAST_FUZZ_SEEDS=1000:400 (first seed : how many), HOLDFAST_FUZZ_STEPS=4000.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from harness.chaos import Chaos, Violation
from harness.forgetting import Forgetting
from holdfast.raft.core.context import ALL, Switch
from holdfast.raft.core.log import LogForked

FIRST, COUNT = map(int, os.environ.get("HOLDFAST_FUZZ_SEEDS", "1:60").split(":"))
STEPS = int(os.environ.get("HOLDFAST_FUZZ_STEPS", "4000"))

SEEDS_THAT_BITE = [
    (Switch.ACK_AFTER_FLUSH, 31),
    (Switch.CUT_ON_CONFLICT, 1),
    (Switch.S10_TRANSFER, 18),
    (Switch.S10_TERM_NOTICE, 76),
    (Switch.S19_REBUILD, 1),
    (Switch.S19_FORM, 12),
]
"""Schedules that break each of these rules when it is left out, as found by running 120 seeds."""


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_no_schedule_breaks_a_rule(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    """Nor does S21 suspect a disk: none of them forgets anything in these schedules.

    But for one that the schedule put in and started again before it was a member's: a peer whose
    word names no disk cannot tell it from a copy of the time when the cluster formed (ADR 13).
    """
    chaos = Chaos(seed, ids="ABCDE" if seed % 6 == 0 else "ABC")
    try:
        chaos.run(STEPS)
    except Violation:
        print(f"seed {seed}, {STEPS} steps: {dict(chaos.counts)}; to repeat it:")
        print(
            f"HOLDFAST_FUZZ_SEEDS={seed}:1 HOLDFAST_FUZZ_STEPS={STEPS} "
            "python -m pytest tests/raft/test_fuzz.py -k no_schedule"
        )
        raise
    suspicions = [said for said in caplog.messages if "the disk lost what it had written" in said]
    assert len(chaos.suspected) == len(suspicions), "the schedule missed a suspicion"
    assert [node for node, unformed in chaos.suspected if not unformed] == []


@pytest.mark.parametrize(("switch", "seed"), SEEDS_THAT_BITE)
def test_the_schedules_catch_a_rule_that_is_left_out(switch: Switch, seed: int) -> None:
    """A fuzz that cannot fail proves nothing. The next seeds are tried if this one has moved."""
    for candidate in range(seed, seed + 40):
        try:
            Chaos(candidate, switches=ALL - {switch}).run(4000)
        except (Violation, LogForked):
            return
    pytest.fail(f"without {switch.name} nothing was found in 40 seeds from {seed} on")


def test_s21_no_disk_that_forgets_loses_what_was_acknowledged() -> None:
    """Of some losses peers know, and the node rebuilds; of the others nobody was ever told."""
    counts: Counter[str] = Counter()
    for seed in range(FIRST, FIRST + max(1, COUNT // 4)):
        chaos = Forgetting(seed)
        try:
            chaos.run(STEPS)
        except (Violation, LogForked):
            print(f"Forgetting({seed}).run({STEPS}): {dict(chaos.counts)}")
            raise
        counts += chaos.counts
    assert 0 < counts["suspected"] < counts["rolled back"]


def test_s21_the_schedules_catch_a_node_that_does_not_compare() -> None:
    """Nor would they prove anything if they could not fail."""
    for seed in range(1, 41):
        try:
            Forgetting(seed, switches=ALL - {Switch.S21_COMPARE, Switch.S21_TWICE}).run(4000)
        except (Violation, LogForked):
            return
    pytest.fail("without a comparison nothing was lost in 40 seeds")
