"""Rebalances by cause and time, and how wide a bar is: known answers."""

from __future__ import annotations

from holdfast.replay.analyse.analysis import Bar, Cause
from holdfast.replay.analyse.one_pass import merging
from holdfast.replay.analyse.one_pass.rebalance_tally import (
    BARS_MAX,
    RebalanceTally,
    bar_ms,
    cause_of,
)
from holdfast.replay.analyse.rebalances import Rebalance


def test_a_cause_has_no_free_text_of_a_member_in_it() -> None:
    assert cause_of("JoinGroup", "new member m-1") == "JoinGroup"
    assert cause_of("ConsumerGroupHeartbeat", "joined") == "joined"
    assert cause_of("", "first") == "first"


def test_bars_are_round_spans_and_not_too_many() -> None:
    hour = 3_600_000
    for span_ms in (1, 119_000, 121_000, hour, 30 * 24 * hour, 3_000 * 24 * hour):
        width = bar_ms(span_ms)
        assert width % 1_000 == 0
        assert width * BARS_MAX >= span_ms
    assert bar_ms(2 * hour) == 60_000


def rebalance(group: str, at_ms: int, command: str, stable_ms: int | None) -> Rebalance:
    return Rebalance(group, at_ms, 0, at_ms, "why", "", "B1", command, 1, None, stable_ms)


def test_rebalances_of_several_buckets_are_added_up_by_cause_and_time() -> None:
    """The log begins at 100 and a bar is 50 wide; of JoinGroup 5, 7 and 9 ms, and one never."""
    one, other = RebalanceTally(100, 50), RebalanceTally(100, 50)
    for told in (
        rebalance("g", 100, "JoinGroup", 9),
        rebalance("g", 149, "JoinGroup", None),
        rebalance("h", 150, "LeaveGroup", None),
    ):
        one.take(told)
    other.take(rebalance("i", 120, "JoinGroup", 5))
    other.take(rebalance("i", 210, "JoinGroup", 7))

    assert merging.bars([*one.bars(), *other.bars()]) == [
        Bar(0, "JoinGroup", 3),
        Bar(1, "LeaveGroup", 1),
        Bar(2, "JoinGroup", 1),
    ]
    assert merging.causes([*one.taken(), *other.taken()]) == [
        Cause("JoinGroup", 4, 1, 7, 9),
        Cause("LeaveGroup", 1, 1, None, None),
    ]
    assert [each.start_ms for each in one.slowest.rows()] == [149, 150, 100]
