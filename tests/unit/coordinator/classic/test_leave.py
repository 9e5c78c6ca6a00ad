"""Leaving and removal: one batch is one event and one rebalance; each entry has its result (G)."""

from typing import Any

import pytest

from harness.calls import SESSION_MS, Calls
from holdfast.coordinator.model.commands import Caller, LeaveGroup, LeavingMember, TriggerRebalance
from holdfast.coordinator.model.events import (
    GroupEmptied,
    MembersLeft,
    MembersRemoved,
    RebalanceStarted,
)
from holdfast.coordinator.model.member_profile import Protocol
from holdfast.coordinator.model.rejections import (
    FencedInstanceId,
    GroupIdNotFound,
    InvalidRequest,
    UnknownMemberId,
)
from holdfast.coordinator.model.replies import DoneReply, MemberResult

OTHER = (Protocol("p", b"other bytes"),)


def errors(calls: Calls) -> list[type]:
    return [type(result.error) for result in calls.left().members]


def test_g14_a_batch_is_one_rebalance_and_one_event(calls: Calls) -> None:
    calls.stable("i1", "i2", "i3", "i4")

    events = calls.leave(LeavingMember("i2-1", None, "bye"), LeavingMember("i3-1", "i3"))

    assert [type(event) for event in events] == [RebalanceStarted, MembersLeft]
    assert events[1] == MembersLeft(("i2-1", "i3-1"), "bye")


def test_g4_to_g17_each_entry_has_its_result(calls: Calls) -> None:
    calls.stable("i1", "i2", "i3")
    calls.join(fresh="pending")
    calls.leave(
        LeavingMember("", "i2"),  # K-G4
        LeavingMember("", "i9"),  # K-G5
        LeavingMember("", None),  # K-G6
        LeavingMember("i1-1", "i3"),  # K-G8
        LeavingMember("i3-1", "i9"),  # K-G9
        LeavingMember("ghost", None),  # K-G11
        LeavingMember("i3-1", None),  # K-G12
        LeavingMember("pending", None),  # K-G13
        LeavingMember("i3-1", None),  # K-G17
        LeavingMember("i2-1", "i2"),  # K-G17: by another name
    )

    ok, unknown = type(None), UnknownMemberId
    assert errors(calls) == [
        *(ok, unknown, unknown, FencedInstanceId, unknown),
        *(unknown, ok, ok, unknown, unknown),
    ]
    assert calls.left().members[0].member_id == "", "G4: the answer repeats what was asked"
    assert set(calls.group.body.members) == {"i1-1"}


def test_g1_an_absent_group_is_no_error(calls: Calls) -> None:
    assert calls.leave(LeavingMember("x", None)) == ()
    assert calls.left().error is None
    assert errors(calls) == [UnknownMemberId]


def test_g18_only_invalid_entries_start_nothing(calls: Calls) -> None:
    calls.stable("i1")

    assert calls.leave(LeavingMember("x", None), LeavingMember("y", "i1")) == ()


def test_g19_what_the_leaver_has_parked_is_answered(calls: Calls) -> None:
    calls.stable("i1", "i2")
    calls.join("i1", "i1-1")
    parked = calls.last
    calls.leave(LeavingMember("i1-1", "i1"))

    assert calls.joined(parked).error == UnknownMemberId("i1-1")
    assert calls.joined(parked).member_id == ""


def test_g19_bettered_a_parked_sync_is_answered_too(calls: Calls) -> None:
    calls.join("i1", fresh="i1-1")
    calls.join("i2", fresh="i2-1")
    calls.core.advance(0)
    calls.sync("i2-1")
    parked = calls.last
    calls.leave(LeavingMember("i2-1", "i2"))

    assert calls.synced(parked).error == UnknownMemberId("i2-1")


def test_g19_the_last_one_missing_closes_the_round_by_leaving(calls: Calls) -> None:
    calls.stable("i1", "i2")
    calls.join("i1", "i1-1")
    parked = calls.last
    calls.leave(LeavingMember("", "i2"))

    assert calls.joined(parked).generation == 2


def test_g20_the_last_leave_empties_the_group(calls: Calls) -> None:
    calls.stable("i1")

    events = calls.leave(LeavingMember("i1-1", "i1"))

    assert events[-1] == GroupEmptied(2)
    assert calls.group.body.protocol_type == "app", "D9: kept"
    assert (calls.group.body.protocol_name, calls.group.body.leader) == (None, None)


def test_g23_by_instance_alone_is_a_removal(calls: Calls) -> None:
    """Somebody else says so, so the member may still run (S12), whoever calls."""
    calls.stable("i1", "i2")

    assert MembersRemoved(("i2-1",), "") in calls.leave(LeavingMember("", "i2"))


@pytest.mark.parametrize("whom", [{"everyone": True}, {"prefix": "i"}], ids=str)
def test_g24_a_static_member_is_removed_in_every_state_of_its_binding(
    calls: Calls, whom: dict[str, Any]
) -> None:
    """Live, released (S12), taken over, with a call parked: an operator means who is bound."""
    calls.stable("i1", "i2", "i3", "i4")
    calls.heartbeat("i2-1", instance_id="i2", release=True)
    calls.join("i3", fresh="i3-2")
    calls.join("i4", "i4-1", protocols=OTHER)
    parked = calls.last

    events = calls.remove(**whom)

    names = (("i1-1", "i1"), ("i2-1", "i2"), ("i3-2", "i3"), ("i4-1", "i4"))
    assert calls.left().members == tuple(MemberResult(*each, None) for each in names)
    assert events[0] == MembersRemoved(("i1-1", "i2-1", "i3-2", "i4-1"), "node retired")
    assert isinstance(events[1], GroupEmptied)
    assert calls.joined(parked).error == UnknownMemberId("i4-1")
    assert not calls.group.body.members
    assert not calls.group.body.instances
    calls.core.check_replays()


def test_g24_a_prefix_means_those_alone(calls: Calls) -> None:
    calls.stable("a-1", "a-2", "b-1")
    for name in ("a-2", "b-1"):
        calls.heartbeat(f"{name}-1", instance_id=name, release=True)

    events = calls.remove(prefix="a-")

    assert [type(event) for event in events] == [RebalanceStarted, MembersRemoved]
    assert set(calls.group.body.instances) == {"b-1"}
    assert calls.member("b-1-1").released


def test_s12_an_operator_removes_a_released_member_by_its_id_too(calls: Calls) -> None:
    """`describe` shows the id. Who speaks as that member is refused; an operator does not."""
    calls.stable("i1", "i2", "i3")
    for name in ("i2", "i3"):
        calls.heartbeat(f"{name}-1", instance_id=name, release=True)

    calls.leave(LeavingMember("i2-1", None), LeavingMember("i3-1", "i3"))
    assert errors(calls) == [UnknownMemberId, FencedInstanceId]
    calls.leave(LeavingMember("i2-1", None), LeavingMember("i3-1", "i3"), operator=True)
    assert errors(calls) == [type(None), type(None)]
    assert set(calls.group.body.members) == {"i1-1"}


def test_g8_an_operator_who_names_an_earlier_holder_does_not_hit_the_present_one(
    calls: Calls,
) -> None:
    calls.stable("i1", "i2")
    calls.heartbeat("i2-1", instance_id="i2", release=True)
    calls.join("i2", fresh="i2-2")

    calls.leave(LeavingMember("i2-1", "i2"), LeavingMember("i2-1", None), operator=True)

    assert errors(calls) == [FencedInstanceId, UnknownMemberId]
    assert set(calls.group.body.members) == {"i1-1", "i2-2"}


def test_g13_pending_ids_that_leave_open_a_round_as_in_kafka(calls: Calls) -> None:
    calls.stable("i1")
    calls.join(fresh="pending")

    events = calls.leave(LeavingMember("pending", None))

    assert [type(event) for event in events] == [RebalanceStarted]


def test_g13_but_not_in_an_empty_group(calls: Calls) -> None:
    calls.join(fresh="pending")

    assert calls.leave(LeavingMember("pending", None)) == ()
    assert calls.group.generation == 0


def test_s14_a_repeated_leave_is_answered_from_the_table(calls: Calls) -> None:
    calls.stable("i1", "i2")
    request = "01890000-0000-7000-8000-000000000001"
    for call in (101, 102):
        caller = Caller(call, "user", "c", "h", request, b"digest")
        calls.submit(LeaveGroup(caller, "g", (LeavingMember("", "i2"),)))

    first, second = calls.reply(101), calls.reply(102)
    assert first == second, "the second finds no i2, and is not asked"


def test_an_operator_triggers_a_rebalance(calls: Calls) -> None:
    calls.stable("i1")
    events = calls.submit(TriggerRebalance(calls.caller(), "g", "new disks"))

    assert [type(event) for event in events] == [RebalanceStarted]
    assert calls.history[-1].reason == "new disks"
    assert calls.submit(TriggerRebalance(calls.caller(), "g", "again")) == (), "D12"


def test_a_rebalance_needs_a_group_with_members(calls: Calls) -> None:
    calls.submit(TriggerRebalance(calls.caller(), "g", ""))
    assert calls.reply() == DoneReply(GroupIdNotFound("g"))
    calls.join(fresh="pending")
    calls.submit(TriggerRebalance(calls.caller(), "g", ""))
    reply = calls.reply()
    assert isinstance(reply, DoneReply)
    assert isinstance(reply.error, InvalidRequest)


# --- S12 ---


def test_s12_after_a_removal_the_next_grants_name_the_predecessor(calls: Calls) -> None:
    calls.stable("i1", "i2")
    events = calls.leave(LeavingMember("", "i2", "gone"), operator=True)
    assert MembersRemoved(("i2-1",), "gone") in events
    calls.join("i1", "i1-1")
    calls.core.advance(4_000)
    calls.sync("i1-1", {"i1-1": b"all"})

    assert calls.synced().grant.predecessor_ms == SESSION_MS - 4_000


def test_s12_an_own_leave_leaves_no_predecessor(calls: Calls) -> None:
    calls.stable("i1", "i2")
    calls.leave(LeavingMember("i2-1", "i2"))
    calls.join("i1", "i1-1")
    calls.sync("i1-1", {"i1-1": b"all"})

    assert calls.synced().grant.predecessor_ms == 0
