"""Samples of lateness and of who leads."""

from __future__ import annotations

from dataclasses import replace

from holdfast.server.metrics.pulse import Pulse
from unit.server.http.test_readiness import FOLLOWING


def test_a_leader_changes_with_its_term_or_its_node_and_not_while_none_is_known() -> None:
    says = [
        replace(FOLLOWING, term=term, leader=leader)
        for term, leader in ((1, "a"), (1, "a"), (2, None), (2, "b"), (3, "b"), (3, "b"))
    ]
    turns = iter(says)
    pulse = Pulse(lambda: next(turns), lambda: 0.0)
    for _ in says:
        pulse.take(0.0)

    assert pulse.leader_changes == 2


def test_each_sample_counts_the_loop_and_the_engine() -> None:
    pulse = Pulse(lambda: FOLLOWING, lambda: 0.5)
    pulse.take(0.25)
    pulse.take(0.0)

    assert pulse.loop_lag_s.sum_s == 0.25
    assert pulse.tick_lag_s.sum_s == 1.0
