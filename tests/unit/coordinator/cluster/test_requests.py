"""Repeated requests: answered from the table or refused, never done twice (S14, S15)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import pytest

from holdfast.coordinator.cluster import request_table, requests, topics
from holdfast.coordinator.cluster.request_ids import made_at_ms
from holdfast.coordinator.groups import lifecycle
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.model import stored_replies
from holdfast.coordinator.model.commands import (
    AlterSettings,
    Caller,
    CommitOffsets,
    CreateTopics,
    DeleteGroup,
    DeleteTopics,
    LeaveGroup,
    OneShot,
    TriggerRebalance,
)
from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.events import (
    Event,
    GroupDeleted,
    OffsetCommitted,
    OffsetsCommitted,
    RequestRecorded,
    SettingChange,
    SettingsChanged,
    TopicSize,
)
from holdfast.coordinator.model.ids import TopicPartition
from holdfast.coordinator.model.rejections import (
    FencedInstanceId,
    GroupIdNotFound,
    InvalidRequest,
    NonEmptyGroup,
    RequestIdReused,
    RequestTooOld,
    UnknownMemberId,
)
from holdfast.coordinator.model.replies import (
    DoneReply,
    JoinReply,
    LeaveReply,
    MemberResult,
    NamedReply,
    NamedResult,
    OffsetsReply,
    PartitionResult,
)
from holdfast.coordinator.model.state import RequestKey
from holdfast.coordinator.model.stored_replies import StoredReply
from holdfast.coordinator.offsets import commits
from unit.coordinator.desk import Desk, member

START_MS = 1_700_000_000_000
WINDOW_MS = 600_000


def uuid7(at_ms: int, number: int = 0) -> str:
    digits = f"{at_ms:012x}7{0:03x}8{number:015x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


ID = uuid7(START_MS)


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    made.later(START_MS)
    made.topics(t=1)
    yield made
    made.prove()


def commit(
    desk: Desk,
    request_id: str = ID,
    *,
    offset: int = 5,
    digest: bytes = b"body",
    principal: str = "alice",
    group_id: str = "g",
) -> tuple[StoredReply, tuple[Event, ...]]:
    caller = Caller(1, principal=principal, request_id=request_id, digest=digest)
    placed = (OffsetCommitted("t", 0, offset, -1, ""),)
    command = CommitOffsets(caller, group_id, -1, "", None, placed)

    def rule(draft: Draft, command: CommitOffsets) -> StoredReply:
        return requests.once(draft, command, commits.commit)

    return desk.decide(rule, command, group_id, principal)


def error_of(reply: StoredReply) -> object:
    assert isinstance(reply, OffsetsReply)
    return reply.error


DONE = OffsetsReply(None, (PartitionResult(TopicPartition("t", 0), None),))


def test_s15_a_repeated_request_gets_the_same_answer_and_does_nothing(desk: Desk) -> None:
    first, events = commit(desk)
    assert first == DONE
    assert [type(event) for event in events][-2:] == [OffsetsCommitted, RequestRecorded]
    commit(desk, "", offset=9)
    assert commit(desk) == (DONE, ())
    assert desk.state.groups["g"].offsets[TopicPartition("t", 0)].offset == 9


def test_s3_records_of_a_batch_count_on_through_recorded_requests(desk: Desk) -> None:
    """A recorded request is a record of its group; here another command of the batch follows it."""
    placed = (OffsetCommitted("t", 0, 5, -1, ""),)
    callers = [Caller(n, principal="alice", request_id=uuid7(START_MS, n)) for n in (1, 2)]
    events = desk.decide_all(
        "g", *(CommitOffsets(caller, "g", -1, "", None, placed) for caller in callers)
    )
    assert [type(event) for event in events[1:]] == 2 * [OffsetsCommitted, RequestRecorded]
    assert [record.group_seq for record in desk.records if record.group_id == "g"] == [
        1,
        2,
        3,
        4,
        5,
    ]
    assert desk.state.groups["g"].seq == 5


def test_s15_without_a_request_id_nothing_is_recorded(desk: Desk) -> None:
    _, events = commit(desk, "")
    assert not [event for event in events if isinstance(event, RequestRecorded)]
    assert commit(desk, "")[1] != ()


def test_s15_same_id_with_another_body(desk: Desk) -> None:
    commit(desk)
    reply, events = commit(desk, digest=b"other")
    assert (error_of(reply), events) == (RequestIdReused(ID), ())


def test_s15_ids_of_other_principals_and_groups_are_other_requests(desk: Desk) -> None:
    commit(desk)
    assert commit(desk, principal="bob", digest=b"other")[1] != ()
    assert commit(desk, group_id="h", digest=b"other")[1] != ()


def test_s14_a_refusal_is_decided_again(desk: Desk) -> None:
    """Refused while the group has a member; done once it has none."""
    caller = Caller(1, request_id=ID, digest=b"body")

    def delete(draft: Draft, command: DeleteGroup) -> StoredReply:
        return requests.once(draft, command, lifecycle.delete)

    desk.rebalancing_group("g", member("a"))
    refused, events = desk.decide(delete, DeleteGroup(caller, "g"), "g")
    assert refused == NamedReply((NamedResult("g", NonEmptyGroup(1)),))
    assert events == ()
    absent, _ = desk.decide(delete, DeleteGroup(caller, "h"), "h")
    assert absent == NamedReply((NamedResult("h", GroupIdNotFound("h")),))


def test_s15_the_record_outlives_the_group(desk: Desk) -> None:
    caller = Caller(1, principal="alice", request_id=uuid7(START_MS, 1), digest=b"body")

    def delete(draft: Draft, command: DeleteGroup) -> StoredReply:
        return requests.once(draft, command, lifecycle.delete)

    commit(desk)
    done, events = desk.decide(delete, DeleteGroup(caller, "g"), "g", "alice")
    assert done == NamedReply((NamedResult("g", None),))
    assert [type(event) for event in events] == [GroupDeleted, RequestRecorded]
    assert "g" not in desk.state.groups
    assert desk.decide(delete, DeleteGroup(caller, "g"), "g", "alice") == (done, ())
    assert commit(desk) == (DONE, ())
    assert "g" not in desk.state.groups, "the repeated commit must not make the group anew"


def test_s15_a_call_without_a_group_belongs_to_the_empty_group(desk: Desk) -> None:
    caller = Caller(1, principal="alice", request_id=ID, digest=b"body")

    def create(draft: Draft, command: CreateTopics) -> StoredReply:
        return requests.once(draft, command, topics.create_topics)

    command = CreateTopics(caller, (TopicSize("new", 1),))
    done, _ = desk.decide(create, command, "", "alice")
    assert RequestKey("alice", "", ID) in desk.state.requests
    assert desk.decide(create, command, "", "alice") == (done, ()), "or it would be TopicExists"


def test_s23_settings_of_a_group_are_a_request_to_the_cluster() -> None:
    command = AlterSettings(Caller(1), "g", ())
    assert requests.group_of(command) == ""
    assert requests.group_of(DeleteGroup(Caller(1), "g")) == "g"


# --- too old to tell ---


def test_s15_an_id_older_than_the_window_is_refused_never_executed(desk: Desk) -> None:
    desk.later(WINDOW_MS)
    assert error_of(commit(desk, uuid7(START_MS - 1))[0]) == RequestTooOld(
        uuid7(START_MS - 1), WINDOW_MS
    )
    assert "g" not in desk.state.groups
    assert error_of(commit(desk, ID)[0]) is None


def test_s15_a_known_request_is_answered_as_long_as_its_record_is_there(desk: Desk) -> None:
    commit(desk)
    desk.later(WINDOW_MS + 1)
    assert commit(desk) == (DONE, ())


def test_s15_no_request_is_done_twice_however_late_it_is_repeated(desk: Desk) -> None:
    """Also with a client whose clock runs ahead by almost a window."""
    ahead = uuid7(START_MS + WINDOW_MS - 1)
    commit(desk, ahead)
    for number in range(1, 60):
        now_ms = desk.later(60_000)
        commit(desk, uuid7(now_ms, number))
        reply, events = commit(desk, ahead)
        assert events == (), f"done twice {number} minutes later"
        assert error_of(reply) in {None, RequestTooOld(ahead, WINDOW_MS)}
    assert error_of(commit(desk, ahead)[0]) == RequestTooOld(ahead, WINDOW_MS)


def test_s15_the_table_forgets_by_log_time(desk: Desk) -> None:
    for number in range(20):
        commit(desk, uuid7(START_MS, number))
    now_ms = desk.later(request_table.WINDOWS_KEPT * WINDOW_MS + 1)
    for number in range(20, 23):
        commit(desk, uuid7(now_ms, number))
    assert len(desk.state.requests) == 3
    assert desk.state.requests_floor_ms == 0


def test_s15_one_request_pushes_out_a_bounded_number(desk: Desk) -> None:
    for number in range(20):
        commit(desk, uuid7(START_MS, number))
    now_ms = desk.later(request_table.WINDOWS_KEPT * WINDOW_MS + 1)
    commit(desk, uuid7(now_ms, 20))
    assert len(desk.state.requests) == 21 - request_table.FORGOTTEN_AT_ONCE_MAX


def test_s15_the_table_forgets_by_count_and_refuses_what_it_may_have_forgotten(desk: Desk) -> None:
    few = SettingChange("dedupe.requests_max", "100")
    desk.happened("", SettingsChanged("", (few,)))
    commit(desk)
    for number in range(1, 101):
        now_ms = desk.later(1)
        commit(desk, uuid7(now_ms, number))
    assert len(desk.state.requests) == 100
    assert desk.state.requests_floor_ms == START_MS
    reply, events = commit(desk)
    assert (error_of(reply), events) == (RequestTooOld(ID, WINDOW_MS), ())


def test_s15_an_id_made_ahead_of_log_time_is_not_executed_again_once_forgotten(desk: Desk) -> None:
    """Log time falls back when an idle leader fails over, so an honest id may lie ahead of it."""
    few = SettingChange("dedupe.requests_max", "100")
    desk.happened("", SettingsChanged("", (few,)))
    ahead = uuid7(START_MS + WINDOW_MS // 2)
    commit(desk, ahead)
    for number in range(1, 101):
        commit(desk, uuid7(desk.later(1), number))

    reply, events = commit(desk, ahead)

    assert (error_of(reply), events) == (RequestTooOld(ahead, WINDOW_MS), ())


@pytest.mark.parametrize(
    "bad",
    [
        "x",
        "01936f2e-7c00-4abc-8def-0123456789ab",
        "01936f2e-7c00-7abc-cdef-0123456789ab",
        "01936f2e7c00-7abc-8def-0123456789ab-",
        "01936f2g-7c00-7abc-8def-0123456789ab",
        "01936f2e-7c00-7abc-8def-0123456789a",
    ],
)
def test_s15_an_id_that_is_no_uuid7_is_refused(desk: Desk, bad: str) -> None:
    reply, events = commit(desk, bad)
    assert isinstance(error_of(reply), InvalidRequest)
    assert events == ()


def test_the_time_part_of_a_uuid7() -> None:
    """RFC 9562, appendix A.6: the example of 2022-02-22 19:22:22 UTC."""
    assert made_at_ms("017F22E2-79B0-7CC3-98C4-DC0C0C07398F") == 1_645_557_742_000


# --- the form of refusals and of stored answers ---


@pytest.mark.parametrize(
    ("command", "reply"),
    [
        (LeaveGroup(Caller(1), "g", ()), LeaveReply(RequestIdReused("r"))),
        (TriggerRebalance(Caller(1), "g", ""), DoneReply(RequestIdReused("r"))),
        (
            DeleteTopics(Caller(1), ("t",)),
            NamedReply((NamedResult("t", RequestIdReused("r")),)),
        ),
        (
            AlterSettings(Caller(1), "", (SettingChange("k", None),)),
            NamedReply((NamedResult("k", RequestIdReused("r")),)),
        ),
    ],
)
def test_a_refusal_of_the_whole_call_has_the_form_of_its_answer(
    command: OneShot, reply: StoredReply
) -> None:
    assert requests.refusal(command, RequestIdReused("r")) == reply


@pytest.mark.parametrize(
    "reply",
    [
        DoneReply(None),
        DoneReply(UnknownMemberId("ü")),
        DONE,
        OffsetsReply(GroupIdNotFound("g")),
        NamedReply(()),
        LeaveReply(
            None,
            (
                MemberResult("a", None, None),
                MemberResult("b", "i", FencedInstanceId("i", "c", "client", 7)),
            ),
        ),
    ],
)
def test_s15_stored_answers_come_back_as_they_were(reply: StoredReply) -> None:
    assert stored_replies.thaw(stored_replies.freeze(reply)) == reply


def test_s15_the_bytes_of_an_answer_are_part_of_the_log() -> None:
    """Never change this: old logs hold such bytes."""
    reply = LeaveReply(None, (MemberResult("b", "i", UnknownMemberId("b")),))
    assert (
        stored_replies.freeze(reply) == b'["LeaveReply",null,[["b","i",["UnknownMemberId","b"]]]]'
    )


def test_s14_a_join_is_never_stored() -> None:
    with pytest.raises(TypeError, match="never stored"):
        stored_replies.freeze(JoinReply(None))
    assert JoinReply not in get_args(StoredReply)


@pytest.mark.parametrize("damaged", [b"", b"[]", b'["Nothing"]', b'["DoneReply",["Odd"]]', b"\xff"])
def test_s6_a_stored_answer_that_cannot_be_read_is_told(damaged: bytes) -> None:
    with pytest.raises(InvariantBroken, match="S15"):
        stored_replies.thaw(damaged)
