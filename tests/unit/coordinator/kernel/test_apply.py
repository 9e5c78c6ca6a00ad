"""How entries are applied: guards, positions, time (S1, S2, S3, S8), alike on every replica."""

import pytest

from harness.calls import Calls
from holdfast.coordinator.kernel.apply import Skipped, apply_entry, replay
from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.events import (
    Cause,
    Event,
    GroupCreated,
    GroupDeleted,
    LogEntry,
    OffsetCommitted,
    OffsetsCommitted,
    Part,
    Proposed,
    RequestRecorded,
    TopicsCreated,
    TopicSize,
)
from holdfast.coordinator.model.ids import UNCOMMITTED, Position
from holdfast.coordinator.model.state import State

OFFSETS = OffsetsCommitted((OffsetCommitted("t", 0, 5, -1, ""),))


def part(group_id: str, version: int, *events: Event, term: int = 1) -> Part:
    return Part(group_id, term, version, tuple(Proposed(each, Cause("B3", "x")) for each in events))


def entry(*parts: Part, log_time_ms: int = 1_000) -> LogEntry:
    return LogEntry(log_time_ms, 5, parts)


@pytest.fixture
def state() -> State:
    """Groups g and h, made by entry 1."""
    parts = part("g", 0, GroupCreated()), part("h", 0, GroupCreated())
    return apply_entry(State(), 1, 1, entry(*parts)).state


def test_s1_a_part_of_another_term_is_skipped(state: State) -> None:
    """L1 decides in term 1, stalls, and the entry has term 3: nothing comes of it."""
    stale = part("g", 1, OFFSETS, term=1)
    applied = apply_entry(state, 2, 3, entry(stale, part("h", 1, OFFSETS, term=3)))

    assert applied.skipped == (Skipped(0, "g", "S1"),)
    assert applied.state.groups["g"] == state.groups["g"]
    assert [record.group_id for record in applied.records] == ["h"]


def test_s2_a_part_on_another_version_is_skipped_whole(state: State) -> None:
    first = apply_entry(state, 2, 1, entry(part("g", 1, OFFSETS))).state
    applied = apply_entry(first, 3, 1, entry(part("g", 1, OFFSETS, OFFSETS)))

    assert applied.skipped == (Skipped(0, "g", "S2"),)
    assert applied.records == ()
    assert applied.state.groups == first.groups


def test_s2_the_version_is_the_index_of_the_last_change(state: State) -> None:
    assert state.version_of("g") == 1
    later = apply_entry(state, 9, 1, entry(part("g", 1, OFFSETS, OFFSETS))).state

    assert (later.version_of("g"), later.version_of("h")) == (9, 1)


def test_s2_two_parts_of_one_group_in_an_entry_cannot_both_hold(state: State) -> None:
    applied = apply_entry(state, 2, 1, entry(part("g", 1, OFFSETS), part("g", 1, OFFSETS)))

    assert applied.skipped == (Skipped(1, "g", "S2"),)


def test_s3_skipped_parts_get_no_positions(state: State) -> None:
    parts = part("g", 1, OFFSETS), part("x", 7, OFFSETS), part("h", 1, OFFSETS, OFFSETS)
    applied = apply_entry(state, 2, 1, entry(*parts))

    assert [record.position for record in applied.records] == [
        Position(2, 0),
        Position(2, 1),
        Position(2, 2),
    ]


def test_s3_group_seq_is_consecutive_within_a_life(state: State) -> None:
    applied = apply_entry(state, 2, 1, entry(part("g", 1, OFFSETS, OFFSETS, GroupDeleted())))
    assert [record.group_seq for record in applied.records] == [2, 3, 4]
    assert "g" not in applied.state.groups
    again = apply_entry(applied.state, 3, 1, entry(part("g", 0, GroupCreated(), OFFSETS)))

    assert [record.group_seq for record in again.records] == [1, 2]


def test_the_cluster_has_a_part_of_its_own(state: State) -> None:
    topics = TopicsCreated((TopicSize("t", 3),))
    applied = apply_entry(state, 2, 1, entry(part("", 0, topics, topics)))

    assert [record.group_seq for record in applied.records] == [1, 2]
    assert applied.state.version_of("") == 2
    assert apply_entry(applied.state, 3, 1, entry(part("", 0, topics))).skipped != ()


def test_s8_log_time_never_runs_backwards(state: State) -> None:
    applied = apply_entry(state, 2, 1, entry(part("g", 1, OFFSETS), log_time_ms=400))

    assert applied.state.log_time_ms == 1_000
    assert applied.records[0].log_time_ms == 1_000
    assert applied.records[0].wall_time_ms == 5


def test_s4_entries_come_in_order(state: State) -> None:
    with pytest.raises(InvariantBroken, match="S4"):
        apply_entry(state, 1, 1, entry())


def test_an_empty_entry_moves_the_index(state: State) -> None:
    assert apply_entry(state, 2, 1, entry()).state.applied_index == 2


def test_nothing_uncommitted_reaches_the_log_or_an_answer(calls: Calls) -> None:
    """Drafts mark their own grants; what is applied and answered has real indices (S13)."""
    calls.stable("i1", "i2")
    calls.join("i1")
    calls.sync("i2-1")

    assert str(UNCOMMITTED) not in {str(m.granted_index) for m in calls.group.body.members.values()}
    for reply in calls.core.answers.values():
        grant = getattr(reply, "grant", None)
        assert grant is None or grant.fencing_token >= 0


def test_records_alone_bring_the_state_back(calls: Calls) -> None:
    """The event log is enough: S14's request ids, S12's predecessors, versions and all."""
    calls.stable("i1", "i2")
    calls.join("i1", request_id="r")
    records = tuple(record for applied in calls.core.log for record in applied.records)

    assert replay(State(), records) == calls.core.state


def test_each_record_is_told_between_its_group_before_and_after_it(state: State) -> None:
    """A projection follows the log by it; a part that was taken back must not be in it (S6)."""
    impossible = part("h", 1, OFFSETS, GroupCreated())
    applied = apply_entry(state, 2, 1, entry(part("g", 1, OFFSETS, OFFSETS), impossible))
    first, second = applied.steps

    assert applied.skipped == (Skipped(1, "h", "S6"),)
    assert applied.records == (first.record, second.record)
    assert [each.before and each.before.seq for each in applied.steps] == [1, 2]
    assert [each.after and each.after.seq for each in applied.steps] == [2, 3]
    assert second.before is first.after


def test_s6_a_part_that_cannot_be_true_leaves_no_trace() -> None:
    """Half a part would be a state that no leader ever decided: of groups, requests and cluster.

    The parts after it are folded as if it had not been there.
    """
    request = RequestRecorded("r", b"digest", b"answer")
    topics = TopicsCreated((TopicSize("t", 3),))
    before = apply_entry(State(), 1, 1, entry(part("g", 0, GroupCreated()))).state
    bad = part("g", 1, OFFSETS, request, GroupCreated())
    of_cluster = part("", 0, topics, request, OFFSETS)
    good = part("h", 0, GroupCreated(), request)
    applied = apply_entry(before, 2, 1, entry(bad, of_cluster, good))
    alone = apply_entry(before, 2, 1, entry(good))

    assert [(skip.place, skip.rule) for skip in applied.skipped] == [(0, "S6"), (1, "S6")]
    assert applied.parts == (2,)
    assert [(r.group_id, r.position.ordinal) for r in applied.records] == [("h", 0), ("h", 1)]
    quarantined = applied.state.groups["g"]
    assert quarantined == before.groups["g"]._replace(
        quarantined=quarantined.quarantined, version=2
    )
    assert applied.state._replace(groups=alone.state.groups) == alone.state
    assert applied.state.groups["h"] == alone.state.groups["h"]
