"""The scenarios of the safety rules that the core alone decides: what would happen without them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.coordinator.kernel.apply import Skipped, apply_entry
from holdfast.coordinator.model.commands import (
    Caller,
    CommitOffsets,
    DeadlineFired,
    DeleteGroup,
    ExpireOffsets,
)
from holdfast.coordinator.model.events import (
    Cause,
    GroupCreated,
    GroupDeleted,
    LogEntry,
    OffsetCommitted,
    OffsetsCommitted,
    Part,
    Proposed,
)
from holdfast.coordinator.model.rejections import UnknownMemberId
from holdfast.coordinator.model.volatile import SESSION, DeadlineKey
from holdfast.coordinator.offsets import commits
from holdfast.runtime.replica.log_time import LogTime
from unit.coordinator.desk import Desk

if TYPE_CHECKING:
    from harness.calls import Calls

DAY_MS = 24 * 3_600_000


def test_s2_what_was_decided_on_a_dead_group_does_not_touch_its_namesake() -> None:
    """A commit is decided; before it arrives the group is deleted and created again.

    A version that began anew with each life would match, and the offset of the old life would be
    the new life's. A version is an index of the log, so no two lives have the same.
    """
    desk = Desk()
    desk.topics(t=1)
    desk.happened("g", GroupCreated())
    old = desk.state.version_of("g")
    desk.happened("g", GroupDeleted())
    desk.happened("g", GroupCreated())
    late = OffsetsCommitted((OffsetCommitted("t", 0, 99, -1, ""),))
    part = Part("g", 1, old, (Proposed(late, Cause("J1", "CommitOffsets")),))

    applied = apply_entry(desk.state, desk.index + 1, 1, LogEntry(1, 1, (part,)))

    assert applied.skipped == (Skipped(0, "g", "S2"),)
    assert len(applied.state.groups["g"].offsets) == 0
    desk.prove()


def test_s8_a_leader_whose_clock_is_a_year_ahead_deletes_no_offset() -> None:
    """Its first sweep asks for the log time, which goes on from the log by the boot clock."""
    desk = Desk()
    desk.topics(t=1)
    command = CommitOffsets(Caller(1), "g", -1, "", None, (OffsetCommitted("t", 0, 5, -1, ""),))
    desk.decide(commits.commit, command, "g")
    boot_seconds = 3_600.0
    wall_ms = desk.state.log_time_ms + 365 * DAY_MS
    log_time = LogTime(lambda: boot_seconds)
    log_time.continue_from(desk.state.log_time_ms)
    boot_seconds += 60
    sweep = ExpireOffsets("g", log_time.now_ms(desk.state.log_time_ms))

    assert desk.decide(commits.expire, sweep, "g")[1] == ()
    desk.happened("g", at_ms=sweep.log_time_ms)
    by_the_wall = ExpireOffsets("g", wall_ms)
    assert desk.decide(commits.expire, by_the_wall, "g")[1] != (), "the harm that the rule prevents"
    desk.prove()


def test_s9_early_an_expiry_in_flight_ends_no_member_that_was_heard(calls: Calls) -> None:
    """The deadline fires, a heartbeat is answered NONE, then the expiry is judged."""
    calls.stable("i1", "i2")
    key = DeadlineKey(SESSION, "i2-1")
    fired = DeadlineFired("g", key, calls.volatile.armed[key], 0)
    calls.heartbeat("i2-1")
    assert calls.beat().error is None

    assert calls.submit(fired) == ()
    assert "i2-1" in calls.group.body.members


def test_s13_tokens_of_a_group_created_anew_are_higher_than_all_before(calls: Calls) -> None:
    """A storage that saw the old life must let the new one's owners in, and no old one."""
    calls.stable("i1")
    old = calls.member("i1-1").granted_index
    generation_before = calls.group.generation
    calls.core.advance(60_000)
    assert "i1-1" not in calls.group.body.members
    calls.submit(DeleteGroup(calls.caller(), "g"))
    assert "g" not in calls.core.state.groups

    calls.stable("i1")

    assert calls.group.generation <= generation_before, "generations begin anew with a life"
    assert calls.member("i1-1").granted_index > old


def test_s14_a_retried_sync_after_an_expiry_is_not_handed_the_old_assignment(calls: Calls) -> None:
    """The sync's answer is lost, the member expires, its partitions go to another, it retries."""
    calls.stable("i1", "i2")
    generation = calls.group.generation
    calls.sync("i2-1", generation=generation)
    assert calls.synced().assignment == b"i2-1"
    for _ in range(4):
        calls.core.advance(5_000)
        calls.heartbeat("i1-1")
    assert "i2-1" not in calls.group.body.members

    calls.sync("i2-1", generation=generation)

    assert isinstance(calls.synced().error, UnknownMemberId)
    assert calls.synced().assignment == b""
