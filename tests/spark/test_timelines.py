"""Intervals of ownership, rebalances and turns, from records whose times are known."""

from __future__ import annotations

from holdfast.coordinator.model.events import (
    GroupCreated,
    MemberExpired,
    MembersLeft,
    MembersRemoved,
    Record,
)
from holdfast.replay.analyse.intervals import Interval
from holdfast.replay.analyse.ownership import OwnershipTimeline
from holdfast.replay.analyse.rebalances import Rebalance, RebalanceTimeline
from spark.event_logs import (
    START_MS,
    EventLog,
    assigned,
    formed,
    generation,
    joined,
    rebalance_started,
    released,
    swapped,
    two_static_members,
)


def owned(log: EventLog, end_ms: int | None = None) -> list[Interval]:
    """All intervals of group `g`, those that are open at the end included."""
    timeline = OwnershipTimeline("g")
    found = [i for record in group_records(log) for i in timeline.step(record)]
    return found + list(timeline.close(log.now_ms if end_ms is None else end_ms))


def of_partition(intervals: list[Interval], partition: int) -> list[tuple[str, int, int, str]]:
    mine = [i for i in intervals if i.partition == partition]
    return [(i.owner, i.start_ms - START_MS, i.end_ms - START_MS, i.ended) for i in mine]


def group_records(log: EventLog) -> list[Record]:
    return [record for record in log.records if record.group_id == "g"]


def stable() -> EventLog:
    """Formed at 100 ms, stable at 500: a1 (instance a) has 0 and 1, b1 (instance b) 2 and 3."""
    log = formed()
    two_static_members(log)
    return log


def test_a_grant_begins_an_interval_with_its_entry_as_token() -> None:
    log = stable()

    intervals = owned(log, START_MS + 900)

    assert of_partition(intervals, 0) == [("a", 500, 900, "open")]
    assert {(i.member_id, i.token) for i in intervals if i.partition > 1} == {("b1", 5)}


def test_a_planned_restart_is_a_gap_between_release_and_swap_and_no_move() -> None:
    """S12: the release fences the old id; the swap (K-B3) grants the same again, by a new token."""
    log = stable()
    log.entry("g", released("a", "a1"), after_ms=1000)
    token = log.entry("g", swapped("a", "a1", "a2"), after_ms=300)

    intervals = owned(log, START_MS + 2000)

    assert of_partition(intervals, 0) == [
        ("a", 500, 1500, "released"),
        ("a", 1800, 2000, "open"),
    ]
    assert of_partition(intervals, 2) == [("b", 500, 2000, "open")]
    assert {(i.member_id, i.token) for i in intervals if i.start_ms == START_MS + 1800} == {
        ("a2", token)
    }


def test_an_unannounced_swap_leaves_no_gap_and_says_how_long_the_old_holder_may_run() -> None:
    log = stable()
    log.entry("g", swapped("a", "a1", "a2", predecessor_ms=10_000), after_ms=700)

    intervals = owned(log, START_MS + 1500)

    assert of_partition(intervals, 1) == [("a", 500, 1200, "replaced"), ("a", 1200, 1500, "open")]
    assert [i.predecessor_ms for i in intervals if i.member_id == "a2"] == [10_000, 10_000]


def test_an_expiry_ends_ownership_and_the_next_assignment_moves_the_partition() -> None:
    log = stable()
    log.entry("g", rebalance_started("expired", "a1"), MemberExpired("a1", "session"), after_ms=500)
    log.entry("g", generation(2, "b1"), after_ms=250)
    log.entry("g", assigned(2, b1=(0, 1, 2, 3)), after_ms=50)

    intervals = owned(log)

    assert of_partition(intervals, 0) == [("a", 500, 1000, "expired"), ("b", 1300, 1300, "open")]
    assert of_partition(intervals, 2) == [("b", 500, 1250, "generation"), ("b", 1300, 1300, "open")]


def test_a_batch_that_leaves_or_is_removed_ends_each_member_s_ownership() -> None:
    for event, ended in ((MembersLeft, "left"), (MembersRemoved, "removed")):
        log = stable()
        log.entry("g", rebalance_started("gone"), event(("a1", "b1"), "bye"), after_ms=100)

        assert {(i.owner, i.ended) for i in owned(log)} == {("a", ended), ("b", ended)}


def test_a_partition_that_two_members_were_given_is_owned_twice_at_once() -> None:
    log = formed()
    log.entry("g", GroupCreated(), rebalance_started("first"), joined("x"), joined("y"))
    log.entry("g", generation(1, "x", "y"))
    log.entry("g", assigned(1, x=(0,), y=(0,)))

    owners = of_partition(owned(log, START_MS + 900), 0)

    assert owners == [("x", 400, 900, "open"), ("y", 400, 900, "open")]


def test_a_swap_during_a_join_phase_grants_nothing_until_the_next_assignment() -> None:
    log = stable()
    log.entry("g", rebalance_started("more"))
    log.entry("g", swapped("a", "a1", "a2"))
    log.entry("g", generation(2, "a2", "b1"))
    log.entry("g", assigned(2, a2=(0,), b1=(1,)))

    assert of_partition(owned(log), 0) == [("a", 500, 700, "replaced"), ("a", 900, 900, "open")]


def test_a_rebalance_has_its_cause_its_length_and_who_began_it() -> None:
    log = stable()
    log.entry("g", rebalance_started("heartbeat lost", "b1"), MemberExpired("b1", "session"))
    log.entry("g", generation(2, "a1"), after_ms=400)
    log.entry("g", assigned(2, a1=(0, 1, 2, 3)), after_ms=30)
    timeline = RebalanceTimeline("g")
    found: list[Rebalance] = []
    for record in group_records(log):
        list(timeline.turns(record))
        found += timeline.ended(record)

    second = found[1]
    assert (second.reason, second.who, second.generation) == ("heartbeat lost", "b", 2)
    assert (second.joined_ms, second.stable_ms) == (400, 430)
    assert (second.rule, second.command) == ("A1", "JoinGroup")


def test_a_rebalance_that_another_one_overtakes_was_never_stable() -> None:
    log = stable()
    log.entry("g", rebalance_started("one"))
    log.entry("g", generation(2, "a1", "b1"), after_ms=50)
    log.entry("g", rebalance_started("two"))
    timeline = RebalanceTimeline("g")
    found = [r for record in group_records(log) for r in timeline.ended(record)]
    found += timeline.close()

    assert [(r.reason, r.joined_ms, r.stable_ms) for r in found] == [
        ("first join", 200, 300),
        ("one", 50, None),
        ("two", None, None),
    ]
