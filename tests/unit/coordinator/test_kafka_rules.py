"""Kafka's rules that no story tells: exact answers, orders of checks, what cannot be."""

import pytest

from harness.calls import GROUP, Calls, P
from holdfast.coordinator.kernel import queries
from holdfast.coordinator.kernel.decide import decide_all
from holdfast.coordinator.kernel.evolve import evolve
from holdfast.coordinator.model.commands import (
    AlterSettings,
    CommitOffsets,
    CreateTopics,
    DeleteGroup,
    DeleteOffsets,
    JoinGroup,
    LeaveGroup,
    LeavingMember,
    SyncGroup,
)
from holdfast.coordinator.model.effects import Answer
from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.events import (
    Assigned,
    AssignmentStored,
    Cause,
    Event,
    MemberJoined,
    OffsetCommitted,
    RebalanceStarted,
    Record,
    SettingChange,
    StaticMemberReplaced,
    TopicSize,
)
from holdfast.coordinator.model.ids import Position, TopicPartition
from holdfast.coordinator.model.member_profile import MemberProfile
from holdfast.coordinator.model.rejections import (
    FencedInstanceId,
    GroupIdNotFound,
    InconsistentGroupProtocol,
    InvalidGroupId,
    RebalanceInProgress,
    UnknownMemberId,
    UnknownTopic,
)
from holdfast.coordinator.model.replies import JoinReply, NamedReply, OffsetsReply
from holdfast.coordinator.model.volatile import OVERSIZE, SESSION, DeadlineKey

PROFILE = MemberProfile("c", "h", 10_000, 15_000, P)


def test_a24_a_refused_join_names_no_protocol(calls: Calls) -> None:
    calls.stable("i1")
    calls.join("i1", "somebody-else")
    reply = calls.joined()

    assert isinstance(reply.error, FencedInstanceId)
    assert (reply.protocol_type, reply.protocol_name) == (None, None)
    assert (reply.generation, reply.leader, reply.members) == (-1, "", ())


def test_b10_bettered_a_swap_shows_the_new_process(calls: Calls) -> None:
    """K-B10 bettered: Kafka goes on showing the client id and host of the old one."""
    calls.stable("i1")
    calls.join("i1", client_id="new-pod")

    [shown] = queries.describe_group(calls.core.state, GROUP).members
    assert shown.profile.client_id == "new-pod"


def test_b21_bettered_a_swap_behind_the_leaders_sync_finds_a_stable_group(calls: Calls) -> None:
    """K-B21 bettered: what was decided first counts, though it is not committed yet.

    Kafka takes the group for CompletingRebalance until the assignment is written, and starts over.
    """
    calls.join("i1", fresh="i1-1")
    calls.join("i2", fresh="i2-1")
    calls.core.advance(0)
    assigned = (Assigned("i1-1", b"one"), Assigned("i2-1", b"two"))
    leader = SyncGroup(calls.caller(), GROUP, 1, "i1-1", "i1", "app", "p", assigned)
    back = JoinGroup(calls.caller(), GROUP, "", "i2", 10_000, 15_000, "app", P, "i2-2")

    decision = decide_all(calls.core.state, calls.volatile, GROUP, (leader, back))

    kinds = [type(proposed.event) for proposed in decision.events]
    assert kinds == [AssignmentStored, StaticMemberReplaced]
    answers = {each.call: each.reply for each in decision.effects if isinstance(each, Answer)}
    joined = answers[back.caller.call]
    assert isinstance(joined, JoinReply)
    assert (joined.error, joined.generation) == (None, 1)


def record(calls: Calls, event: Event) -> Record:
    """The event as the next record of the group."""
    index = calls.core.state.applied_index + 1
    seq = calls.group.seq + 1
    return Record(Position(index, 1), GROUP, seq, 0, 0, Cause("test", "test"), "", "", event)


def test_c14_nobody_who_is_not_there_can_be_swapped(calls: Calls) -> None:
    """K-C14: the state refuses it, and stays as it was."""
    calls.stable("i1")
    event = StaticMemberReplaced("i1", "ghost", "i1-2", PROFILE, "", 0)
    before = calls.core.state

    with pytest.raises(InvariantBroken):
        evolve(before, record(calls, event))
    assert calls.core.state == before


def test_c15_an_instance_has_one_holder(calls: Calls) -> None:
    """K-C15: the state refuses a second one, and stays as it was."""
    calls.stable("i1")
    calls.join("i2")
    again = MemberJoined("i1-9", "i1", PROFILE, "app", "")

    with pytest.raises(InvariantBroken, match="C15"):
        evolve(calls.core.state, record(calls, again))


@pytest.mark.parametrize(
    ("protocol_type", "error"), [("app", RebalanceInProgress), ("other", InconsistentGroupProtocol)]
)
def test_e8_e9_before_a_protocol_is_chosen_any_name_may_be_right(
    calls: Calls, protocol_type: str, error: type
) -> None:
    """K-E8, K-E9, K-E3: in a group's first join phase only the type is known, as in Kafka."""
    calls.join("i1", fresh="i1-1")
    calls.sync("i1-1", protocol_type=protocol_type, protocol_name="whatever")

    assert isinstance(calls.synced().error, error)


def test_f13_the_deadline_of_a_member_that_is_gone_does_nothing(calls: Calls) -> None:
    """K-F13: a session that fired before its member left, and is judged after that."""
    calls.stable("i1", "i2")
    key = DeadlineKey(SESSION, "i2-1")
    arming = calls.volatile.armed[key]
    calls.leave(LeavingMember("i2-1", "i2"))
    calls.core.volatile[GROUP] = calls.volatile._replace(
        armed=calls.volatile.armed.set(key, arming)
    )

    assert calls.fire(SESSION, "i2-1") == ()
    assert set(calls.group.body.members) == {"i1-1"}


def test_g3_a_leave_names_its_group(calls: Calls) -> None:
    calls.submit(LeaveGroup(calls.caller(), "", (LeavingMember("x", None),)))
    reply = calls.left()

    assert isinstance(reply.error, InvalidGroupId)
    assert reply.members == ()


def test_g16_g17_who_was_taken_out_by_an_earlier_entry_is_checked_like_anybody(
    calls: Calls,
) -> None:
    """K-G16, K-G17: its id with another member's instance is fenced, alone it is unknown."""
    calls.stable("i1", "i2")
    entries = [("i2-1", "i2"), ("i2-1", "i1"), ("i2-1", "i2"), ("i2-1", None), ("", "i2")]
    calls.leave(*(LeavingMember(*entry) for entry in entries))

    found = [type(each.error) for each in calls.left().members]
    unknown = UnknownMemberId
    assert found == [type(None), FencedInstanceId, unknown, unknown, unknown]


def test_i7_bettered_an_empty_group_id_writes_nothing(calls: Calls) -> None:
    """K-I7 bettered: Kafka lets very old tools commit with it; here it names the cluster's log."""
    calls.submit(CreateTopics(calls.caller(), (TopicSize("t", 1),)))
    offsets = (OffsetCommitted("t", 0, 1, -1, ""),)
    commit = CommitOffsets(calls.caller(), "", -1, "", None, offsets)
    assert calls.submit(commit) == ()
    reply = calls.reply()
    assert isinstance(reply, OffsetsReply)
    assert isinstance(reply.error, InvalidGroupId)

    assert calls.submit(DeleteGroup(calls.caller(), "")) == ()
    reply = calls.reply()
    assert isinstance(reply, NamedReply)
    assert reply.results[0].error == GroupIdNotFound("")
    assert queries.describe_group(calls.core.state, "").error == GroupIdNotFound("")


# --- a lowered size limit (K-I13) ---


def lower(calls: Calls, most: int) -> None:
    change = SettingChange("group.max_size", str(most))
    calls.submit(AlterSettings(calls.caller(), "", (change,)))


def test_i13_a_group_whose_assignment_is_awaited_starts_over_too(calls: Calls) -> None:
    for instance_id in ("i1", "i2", "i3"):
        calls.join(instance_id)
    calls.core.advance(0)
    lower(calls, 2)
    calls.core.fail_over()

    [event] = calls.core.advance(0)
    assert isinstance(event, RebalanceStarted)


def test_i13_a_group_within_its_limit_is_left_alone(calls: Calls) -> None:
    """A failover by itself moves nobody (S16)."""
    calls.stable("i1", "i2")
    lower(calls, 2)
    calls.core.fail_over()

    assert DeadlineKey(OVERSIZE) not in calls.volatile.armed
    assert calls.core.advance(0) == ()


def test_i13_a_limit_that_is_raised_in_time_is_the_one_that_counts(calls: Calls) -> None:
    """S9: what fired is judged again."""
    calls.stable("i1", "i2", "i3")
    lower(calls, 2)
    calls.core.fail_over()
    lower(calls, 3)

    assert calls.core.advance(0) == ()
    assert calls.group.state == "Stable"


# --- offsets ---


def test_j24_an_offset_of_a_partition_that_is_not_there_cannot_be_deleted(calls: Calls) -> None:
    """K-J24: as in a commit, that comes before the question who subscribes."""
    calls.submit(CreateTopics(calls.caller(), (TopicSize("t", 1),)))
    offsets = (OffsetCommitted("t", 0, 1, -1, ""),)
    calls.submit(CommitOffsets(calls.caller(), GROUP, -1, "", None, offsets))
    places = (TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("t", -1))
    calls.submit(DeleteOffsets(calls.caller(), GROUP, places))
    reply = calls.reply()

    assert isinstance(reply, OffsetsReply)
    errors = [each.error for each in reply.partitions]
    assert errors == [None, UnknownTopic("t-1"), UnknownTopic("t--1")]


def commit_with_id(calls: Calls, made_s: int) -> OffsetsReply:
    """The member's commit of its first generation, as it was sent at that second."""
    offsets = (OffsetCommitted("t", 0, 1, -1, ""),)
    digits = f"{made_s * 1_000:012x}"
    caller = calls.caller(f"{digits[:8]}-{digits[8:]}-7000-8000-000000000001")
    calls.submit(CommitOffsets(caller, GROUP, 1, "i1-1", "i1", offsets))
    reply = calls.reply()
    assert isinstance(reply, OffsetsReply)
    return reply


def test_f12_a_repeated_commit_keeps_the_session_too(calls: Calls) -> None:
    """K-F12, S14: it is answered from the table, and its member just spoke (Kafka does it anew)."""
    calls.submit(CreateTopics(calls.caller(), (TopicSize("t", 1),)))
    calls.stable("i1")
    calls.core.advance(6_000)
    first = commit_with_id(calls, 6)
    calls.core.advance(6_000)
    assert commit_with_id(calls, 6) == first
    calls.core.advance(9_999)
    assert "i1-1" in calls.group.body.members
    calls.core.advance(1)
    assert "i1-1" not in calls.group.body.members, "one session after the repeat"


def test_f12_a_repeat_that_would_be_refused_now_keeps_no_session(calls: Calls) -> None:
    """S14: the answer tells what was done; that its sender is a member it does not tell."""
    calls.submit(CreateTopics(calls.caller(), (TopicSize("t", 1),)))
    calls.stable("i1")
    calls.core.advance(6_000)
    first = commit_with_id(calls, 6)
    calls.join("i2")
    calls.join("i1", "i1-1")
    assert calls.group.generation == 2
    before = calls.volatile.renewals
    assert commit_with_id(calls, 6) == first
    assert calls.volatile.renewals == before


def test_f12_a_commit_that_names_nothing_that_exists_keeps_no_session(calls: Calls) -> None:
    """K-F12: Kafka answers it before the group is asked."""
    calls.submit(CreateTopics(calls.caller(), (TopicSize("t", 1),)))
    calls.stable("i1")

    def commit(topic: str) -> None:
        offsets = (OffsetCommitted(topic, 0, 1, -1, ""),)
        calls.submit(CommitOffsets(calls.caller(), GROUP, 1, "i1-1", "i1", offsets))

    calls.core.advance(6_000)
    commit("t")
    calls.core.advance(6_000)
    assert "i1-1" in calls.group.body.members
    commit("none")
    calls.core.advance(4_000)

    assert "i1-1" not in calls.group.body.members
