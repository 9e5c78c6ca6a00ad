"""A new leader knows the log and nothing else (S9, S16): every deadline starts anew, in full."""

from harness.calls import REBALANCE_MS, SESSION_MS, Calls
from holdfast.coordinator.model.commands import DeleteGroup, LeavingMember
from holdfast.coordinator.model.events import MemberExpired, MembersLeft
from holdfast.coordinator.model.rejections import NotCoordinator
from holdfast.coordinator.model.volatile import JOIN_PHASE, SESSION, SYNC, DeadlineKey


def kinds(calls: Calls) -> list[str]:
    return sorted(key.kind for key in calls.volatile.armed)


def test_l4_a_stable_group_gets_sessions_in_full(calls: Calls) -> None:
    calls.stable("i1", "i2")
    calls.core.advance(SESSION_MS - 1)
    calls.core.fail_over()

    assert kinds(calls) == [SESSION, SESSION]
    assert calls.core.advance(SESSION_MS - 1) == ()
    assert len(calls.core.advance(1)) > 0


def test_any_number_of_failovers_moves_nothing(calls: Calls) -> None:
    calls.stable("i1", "i2")
    before = calls.group
    for _ in range(5):
        calls.core.fail_over()

    assert calls.group == before


def test_s16_an_open_join_phase_starts_with_nobody_rejoined_and_a_full_timer(calls: Calls) -> None:
    calls.stable("i1", "i2", session_ms=60_000)
    calls.join("i1", "i1-1", session_ms=60_000)
    calls.core.advance(REBALANCE_MS - 1)
    calls.core.fail_over()

    assert isinstance(calls.joined().error, NotCoordinator)
    assert not calls.volatile.joins
    assert kinds(calls) == [JOIN_PHASE, SESSION, SESSION]
    assert calls.core.advance(REBALANCE_MS - 1) == ()


def test_s16_an_initial_delay_does_not_start_over(calls: Calls) -> None:
    """Who was in its first join has 15 s to find the new leader, not the 0 s of the delay.

    And the join phase closes as soon as all are there.
    """
    calls.join("i1", fresh="i1-1", request_id="r")
    calls.core.fail_over()
    assert calls.core.advance(5_000) == ()
    calls.join("i1", request_id="r")

    assert calls.joined().generation == 1
    assert calls.joined().member_id == "i1-1"


def test_s16_a_sync_is_expected_of_everyone_who_rejoined(calls: Calls) -> None:
    calls.stable("i1", "i2", session_ms=120_000)
    calls.join("i1", "i1-1", session_ms=120_000)
    calls.core.advance(REBALANCE_MS)
    assert calls.group.state == "CompletingRebalance"
    calls.core.fail_over()

    assert dict(calls.volatile.awaiting_sync) == {"i1-1": True}, "i2 was absent (D16 bettered)"
    assert DeadlineKey(SYNC) in calls.volatile.armed
    assert MemberExpired("i1-1", SYNC) in calls.core.advance(REBALANCE_MS)
    assert "i2-1" in calls.group.body.members


def test_l6_pending_ids_are_forgotten(calls: Calls) -> None:
    calls.join(fresh="c-1")
    calls.core.fail_over()
    calls.join(member_id="c-1")

    assert calls.joined().error is not None


def test_l16_parked_calls_end_as_not_applied(calls: Calls) -> None:
    calls.join("i1", fresh="i1-1")
    calls.join("i2", fresh="i2-1")
    calls.core.advance(0)
    calls.sync("i2-1")
    calls.core.fail_over()

    assert isinstance(calls.synced().error, NotCoordinator)
    assert not calls.core.parked


def test_l3_bettered_all_protocols_survive(calls: Calls) -> None:
    calls.stable("i1", "i2")
    calls.core.fail_over()

    assert calls.join("i2", "i2-1") == (), "an unchanged rejoin is an unchanged rejoin"


def test_a_deleted_group_leaves_no_deadline_behind(calls: Calls) -> None:
    calls.stable("i1")
    calls.join(fresh="pending")
    assert MembersLeft(("i1-1",), "") in calls.leave(
        LeavingMember("i1-1", "i1"), LeavingMember("pending", None)
    )
    calls.join(fresh="pending-2")
    calls.submit(DeleteGroup(calls.caller(), "g"))

    assert "g" not in calls.core.state.groups
    assert len(calls.core.deadlines) == 0
    assert not calls.volatile.pending
