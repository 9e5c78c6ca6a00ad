"""Intervals and rebalances of a group of the heartbeat protocol, from records that are known."""

from __future__ import annotations

import pytest

from conformance.in_process import InProcess
from holdfast.coordinator.kernel.apply import replay
from holdfast.coordinator.model.consumer_events import EpochRaised
from holdfast.coordinator.model.events import MemberExpired, MembersRemoved
from holdfast.coordinator.model.state import State
from holdfast.replay.analyse.beginnings import named_by, owned_by
from holdfast.replay.analyse.intervals import Interval
from holdfast.replay.analyse.ownership import OwnershipTimeline
from holdfast.replay.analyse.rebalances import Rebalance, RebalanceTimeline
from property.mixed_crowd import Crowd
from spark.consumer_logs import advanced, aimed, raised, reconciling_log, subscribed
from spark.event_logs import START_MS, EventLog, released, swapped


def owned(log: EventLog, cut: int = 0) -> list[Interval]:
    """All intervals of group `g`, with those that are open at the end; from a record on."""
    timeline = OwnershipTimeline("g")
    if cut:
        state = replay(State(), log.records[:cut])
        timeline = owned_by(state.groups["g"], state.log_time_ms)
    records = [record for record in log.records[cut:] if record.group_id == "g"]
    found = [each for record in records for each in timeline.step(record)]
    return found + list(timeline.close(log.now_ms))


def of_partition(intervals: list[Interval], partition: int) -> list[tuple[str, int, int, str]]:
    mine = [each for each in intervals if each.partition == partition]
    return [(i.owner, i.start_ms - START_MS, i.end_ms - START_MS, i.ended) for i in mine]


def rebalances(log: EventLog, cut: int = 0) -> list[Rebalance]:
    timeline = RebalanceTimeline("g")
    if cut:
        timeline = named_by(replay(State(), log.records[:cut]).groups["g"])
    found: list[Rebalance] = []
    for record in log.records[cut:]:
        if record.group_id == "g":
            list(timeline.turns(record))
            found += timeline.ended(record)
    return found + list(timeline.close())


def test_k_o3_a_partition_is_owned_until_its_owner_has_given_it_up() -> None:
    """K-O3, K-O8: not until it is asked back; the next owner has it from its own step on."""
    intervals = owned(reconciling_log())

    assert of_partition(intervals, 0) == [("a", 600, 1100, "open")]
    assert of_partition(intervals, 2) == [("a", 600, 1000, "freed"), ("b", 1100, 1100, "open")]
    assert {each.token for each in intervals if each.owner == "b"} == {11}


def test_s12_a_planned_restart_is_a_gap_with_the_same_tokens() -> None:
    log = reconciling_log()
    log.entry("g", released("a", "a1"), after_ms=400)
    log.entry("g", swapped("a", "a1", "a2"), after_ms=300)

    intervals = owned(log)

    assert of_partition(intervals, 0) == [("a", 600, 1500, "released"), ("a", 1800, 1800, "open")]
    assert {each.token for each in intervals if each.partition == 0} == {6}
    assert of_partition(intervals, 2)[-1] == ("b", 1100, 1800, "open")


def test_k_n7_a_process_that_comes_back_itself_holds_again_what_it_had() -> None:
    log = reconciling_log()
    log.entry("g", released("a", "a1"))
    log.entry("g", advanced("a1", 3))

    intervals = owned(log)

    assert of_partition(intervals, 1) == [("a", 600, 1200, "released"), ("a", 1300, 1300, "open")]


def test_s13_a_swap_that_nobody_announced_has_a_new_token_and_tells_of_the_old_holder() -> None:
    log = reconciling_log()
    token = log.entry("g", swapped("a", "a1", "a2", predecessor_ms=10_000))

    new = [each for each in owned(log) if each.member_id == "a2"]

    assert {(each.partition, each.token, each.predecessor_ms) for each in new} == {
        (0, token, 10_000),
        (1, token, 10_000),
    }


def test_k_n23_what_a_stopped_process_was_asked_to_give_up_does_not_come_back() -> None:
    log = reconciling_log()
    log.entry("g", raised(4, "asked"), aimed(4, a1=(0,), b1=(1, 2, 3)))
    log.entry("g", advanced("a1", 3, asked_back=(1,)))
    log.entry("g", released("a", "a1"))
    log.entry("g", swapped("a", "a1", "a2"))

    new = [each for each in owned(log) if each.member_id == "a2"]

    assert [each.partition for each in new] == [0]


def test_s12_who_is_granted_what_a_removed_member_had_is_told_how_long_that_may_act() -> None:
    log = reconciling_log()
    log.entry("g", MembersRemoved(("b1",), ""), EpochRaised(4, "removed", b"d", 10_000))
    log.entry("g", aimed(4, a1=range(4)))
    log.entry("g", advanced("a1", 4, granted=(2, 3)), after_ms=900)

    intervals = owned(log)

    assert of_partition(intervals, 3)[1:] == [
        ("b", 1100, 1200, "removed"),
        ("a", 2200, 2200, "open"),
    ]
    assert [each.predecessor_ms for each in intervals if each.partition == 3][-1] == 9_000


@pytest.mark.parametrize("cut", range(10, 16))
def test_s24_ownership_goes_on_from_a_checkpoint_at_any_step(cut: int) -> None:
    """What is owned there is owned since then, with its token; what follows is the same."""
    log = reconciling_log()
    log.entry("g", released("a", "a1"))
    log.entry("g", swapped("a", "a1", "a2"))
    begun_ms = log.records[cut - 1].log_time_ms

    whole = {each._replace(start_ms=max(each.start_ms, begun_ms)) for each in owned(log)}

    assert set(owned(log, cut)) == {each for each in whole if each.end_ms > begun_ms} | {
        each for each in whole if each.ended == "open"
    }


def test_each_epoch_is_a_rebalance_until_all_own_what_its_target_gives_them() -> None:
    """K-M16: the first ends when a1 owns its partitions, the second when b1 has its two."""
    first, second = rebalances(reconciling_log())

    assert (first.reason, first.who, first.generation) == ("joined", "a", 2)
    assert (first.joined_ms, first.stable_ms) == (0, 300)
    assert (second.reason, second.who, second.generation) == ("joined", "b", 3)
    assert (second.joined_ms, second.stable_ms) == (0, 400)
    assert (second.rule, second.command) == ("A1", "JoinGroup"), "as they were recorded"


def test_an_epoch_that_another_one_overtakes_was_never_in_force() -> None:
    """K-M24: an expiry raises the epoch; the target is computed by the next heartbeat."""
    log = reconciling_log()
    log.entry("g", subscribed("x"), raised(4), aimed(4, b1=(2,), x=(3,)))
    log.entry("g", MemberExpired("x", "session"), raised(5, "expired"), after_ms=500)
    log.entry("g", aimed(5, b1=(2, 3)), after_ms=50)
    log.entry("g", advanced("b1", 5), after_ms=50)
    log.entry("g", advanced("a1", 5), after_ms=50)

    fourth, fifth = rebalances(log)[2:]

    assert (fourth.generation, fourth.joined_ms, fourth.stable_ms) == (4, 0, None)
    assert (fifth.reason, fifth.who, fifth.generation) == ("expired", "x", 5)
    assert (fifth.joined_ms, fifth.stable_ms) == (50, 150)


def test_an_epoch_by_which_the_group_is_empty_has_no_target() -> None:
    """K-M21: there is nobody to give anything to."""
    log = reconciling_log()
    log.entry("g", MembersRemoved(("a1", "b1"), ""), raised(4, "removed"))

    last = rebalances(log)[-1]

    assert (last.reason, last.joined_ms, last.stable_ms) == ("removed", None, None)


def test_a_cause_that_is_no_member_s_has_nobody_s_name() -> None:
    """K-M27: other topics, though a member spoke in the same entry."""
    log = reconciling_log()
    log.entry("g", subscribed("b1", "b", joined=False), raised(4, "topics"))

    assert rebalances(log)[-1].who == ""


def test_s24_an_epoch_behind_a_checkpoint_ends_when_those_before_it_have_arrived() -> None:
    log = reconciling_log()
    cut = len(log.records)
    log.entry("g", raised(4, "asked"), aimed(4, a1=(0, 1)))
    log.entry("g", advanced("a1", 4))
    log.entry("g", advanced("b1", 4))

    assert rebalances(log, cut) == rebalances(log)[2:]
    assert rebalances(log, cut)[0].stable_ms == 200


@pytest.mark.parametrize("seed", range(12))
def test_k_q2_a_group_that_changes_its_protocol_has_the_owners_that_its_state_has(
    seed: int,
) -> None:
    """K-Q2, K-Q5, K-Q12: members keep what they own, whatever protocol their group speaks."""
    session = InProcess({}, {"t": 6})
    crowd = Crowd(seed, session, 6)
    for _ in range(60):
        crowd.step()
    timeline = OwnershipTimeline("g")
    for record in (record for entry in session.core.log for record in entry.records):
        if record.group_id == "g":
            list(timeline.step(record))
    group = session.core.state.groups.get("g")
    if group is None or group.group_type != "consumer":
        return
    members = group.body.members
    owned = {(place, who) for place, who in group.body.owners.items() if not members[who].released}
    assert set(timeline.ledger.held) == owned
