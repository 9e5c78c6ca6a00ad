"""Joins: what is refused at the door, and the exact events of those who come in (A, B, I)."""

from dataclasses import replace

import pytest

from harness.calls import REBALANCE_MS, SESSION_MS, Calls, P
from holdfast.coordinator.model.commands import AlterSettings, JoinGroup
from holdfast.coordinator.model.events import (
    GenerationStarted,
    GroupCreated,
    MemberJoined,
    MemberRefused,
    MemberUpdated,
    RebalanceStarted,
    Rejoin,
    SettingChange,
)
from holdfast.coordinator.model.member_profile import MemberProfile, Protocol
from holdfast.coordinator.model.rejections import (
    FencedInstanceId,
    GroupMaxSizeReached,
    InconsistentGroupProtocol,
    InvalidGroupId,
    InvalidRequest,
    InvalidSessionTimeout,
    MemberIdRequired,
    UnknownMemberId,
    UnknownServerError,
)

Q_FIRST = (Protocol("q", b"q"), Protocol("p", b"p-bytes"))


def set_to(calls: Calls, **settings: int) -> None:
    changes = tuple(SettingChange(f"group.{key}", str(value)) for key, value in settings.items())
    calls.submit(AlterSettings(calls.caller(), "", changes))


def test_b1_a_first_static_join_is_one_step(calls: Calls) -> None:
    events = calls.join("i1", request_id="r1", client_id="indexer")

    assert events == (
        GroupCreated(),
        RebalanceStarted("a new member joins", "i1-1", initial=True, timeout_ms=REBALANCE_MS),
        MemberJoined(
            member_id="i1-1",
            instance_id="i1",
            profile=MemberProfile("indexer", "127.0.0.1", SESSION_MS, REBALANCE_MS, P),
            protocol_type="app",
            request_id="r1",
        ),
    )
    assert calls.reply() is None, "parked"
    assert calls.core.advance(0) == (
        GenerationStarted(1, "p", "i1-1", (Rejoin("i1-1", "r1"),), (), ()),
    )
    assert calls.joined().members[0].metadata == b"p-bytes"
    assert calls.joined().grant.session_timeout_ms == SESSION_MS, "timeouts in force (S11)"


def test_a1_a_dynamic_join_gets_its_id_and_leaves_the_group_behind(calls: Calls) -> None:
    assert calls.join(fresh="c-x") == (GroupCreated(),)

    reply = calls.joined()
    assert (reply.error, reply.member_id) == (MemberIdRequired("c-x"), "c-x")


def test_a3_a_dynamic_join_of_a_known_group_is_not_on_the_log(calls: Calls) -> None:
    calls.stable("i1")

    assert calls.join(fresh="c-x") == ()


def test_a10_a_pending_id_cannot_become_static(calls: Calls) -> None:
    calls.join(fresh="c-x")

    assert calls.join("i1", "c-x") == ()
    assert isinstance(calls.joined().error, UnknownServerError)
    assert calls.joined().member_id == ""


def test_a11_an_unknown_id_creates_no_group(calls: Calls) -> None:
    assert calls.join(member_id="ghost") == ()
    assert calls.joined().error == UnknownMemberId("ghost")
    assert "g" not in calls.core.state.groups


@pytest.mark.parametrize(
    ("instance_id", "member_id", "error"),
    [
        ("i1", "nobody", FencedInstanceId),  # K-C2
        ("i1", "i2-1", FencedInstanceId),  # K-C1
        ("i9", "i1-1", UnknownMemberId),  # K-C3
        (None, "nobody", UnknownMemberId),  # K-A12
    ],
)
def test_c_an_explicit_id_is_checked(
    calls: Calls, instance_id: str | None, member_id: str, error: type
) -> None:
    calls.stable("i1", "i2")

    assert calls.join(instance_id, member_id) == ()
    assert isinstance(calls.joined().error, error)
    assert calls.joined().member_id == member_id, "an error repeats the request's id"


def test_fenced_names_the_holder(calls: Calls) -> None:
    """The loser of two twins must be able to say who won."""
    calls.stable("i1")
    calls.core.advance(5_000)
    calls.join("i1", fresh="i1-x", client_id="winner")
    calls.heartbeat("i1-1", instance_id="i1")

    assert calls.beat().error == FencedInstanceId("i1", "i1-x", "winner", 5_000)


def test_a14_an_unchanged_follower_is_answered_at_once(calls: Calls) -> None:
    calls.stable("i1", "i2")

    assert calls.join("i2", "i2-1") == ()
    reply = calls.joined()
    assert (reply.generation, reply.leader, reply.members) == (1, "i1-1", ())


def test_b17_bettered_new_timeouts_count_at_once(calls: Calls) -> None:
    calls.stable("i1", "i2")

    assert calls.join("i2", "i2-1", session_ms=20_000) == (
        MemberUpdated("i2-1", MemberProfile("c", "127.0.0.1", 20_000, REBALANCE_MS, P), ""),
    )
    assert calls.joined().grant.session_timeout_ms == 20_000
    calls.core.advance(9_000)
    calls.heartbeat("i1-1")
    calls.core.advance(9_000)
    calls.heartbeat("i1-1")
    assert "i2-1" in calls.group.body.members, "its session is 20 s long now"


def test_a15_a_leader_asks_for_a_rebalance_by_joining(calls: Calls) -> None:
    calls.stable("i1", "i2")

    assert calls.join("i1", "i1-1") == (
        RebalanceStarted("the leader asks for it", "i1-1", initial=False, timeout_ms=REBALANCE_MS),
    )
    assert calls.reply() is None


def test_a16_changed_metadata_starts_a_rebalance(calls: Calls) -> None:
    calls.stable("i1", "i2")
    changed = (Protocol("p", b"other"),)

    assert calls.join("i2", "i2-1", protocols=changed) == (
        MemberUpdated(
            "i2-1", MemberProfile("c", "127.0.0.1", SESSION_MS, REBALANCE_MS, changed), ""
        ),
        RebalanceStarted(
            "a member's protocols changed", "i2-1", initial=False, timeout_ms=REBALANCE_MS
        ),
    )


def test_d5_the_join_phase_lasts_as_long_as_the_slowest_member_asks(calls: Calls) -> None:
    calls.stable("i1", rebalance_ms=40_000)
    events = calls.join("i2", rebalance_ms=60_000)

    assert isinstance(events[0], RebalanceStarted)
    assert events[0].timeout_ms == 60_000


def test_a17_a_lost_answer_is_given_again_while_the_assignment_is_awaited(calls: Calls) -> None:
    calls.join("i1", fresh="i1-1")
    calls.core.advance(0)

    assert calls.join("i1", "i1-1") == ()
    assert [line.member_id for line in calls.joined().members] == ["i1-1"]
    assert not calls.joined().skip_assignment


def test_a21_a_first_join_is_parked_for_five_minutes_at_most(calls: Calls) -> None:
    calls.stable("i1", rebalance_ms=600_000, session_ms=900_000)
    calls.join("i2", session_ms=900_000, rebalance_ms=600_000)
    first = calls.last

    assert calls.core.advance(299_999) == ()
    gone = calls.core.advance(1)

    assert [type(event).__name__ for event in gone] == ["MemberExpired"]
    assert calls.joined(first).error == UnknownMemberId("i2-3")
    assert calls.joined(first).member_id == ""


def test_s17_the_second_join_takes_the_place_of_the_first(calls: Calls) -> None:
    calls.stable("i1", "i2")
    calls.join("i2", "i2-1", protocols=(Protocol("p", b"x"),))
    first = calls.last
    calls.join("i2", "i2-1", protocols=(Protocol("p", b"x"),))

    assert type(calls.joined(first).error).__name__ == "Superseded"
    assert calls.reply() is None
    calls.join("i1", "i1-1")
    assert calls.joined(calls.last - 1).generation == 2


def test_s17_a_refused_join_supersedes_nothing(calls: Calls) -> None:
    calls.stable("i1", "i2")
    calls.join("i2", "i2-1", protocols=(Protocol("p", b"x"),))
    first = calls.last
    calls.join("i2", "i2-1", session_ms=1)

    assert calls.reply(first) is None


def test_s14_a_retried_pending_join_gets_the_same_id(calls: Calls) -> None:
    calls.join(fresh="c-1", request_id="r")
    calls.join(fresh="c-2", request_id="r")

    assert calls.joined().member_id == "c-1"
    assert list(calls.volatile.pending) == ["c-1"]
    calls.join(fresh="c-3", request_id="other")
    assert calls.joined().member_id == "c-3"


def test_i10_a_known_member_that_finds_no_place_is_thrown_out(calls: Calls) -> None:
    calls.stable("i1", "i2")
    set_to(calls, max_size=1)
    calls.join("i1", "i1-1")

    events = calls.join("i2", "i2-1")

    assert isinstance(events[0], MemberRefused)
    assert isinstance(events[1], GenerationStarted), "it was the last one missing"
    assert calls.joined().error == GroupMaxSizeReached(1)
    assert calls.joined().member_id == ""


def test_i10_a_stranger_cannot_throw_out_a_static_member(calls: Calls) -> None:
    calls.stable("i1", "i2")
    calls.heartbeat("i2-1", instance_id="i2", release=True)
    set_to(calls, max_size=1)
    calls.join("i1", "i1-1")

    assert calls.join("i2", "i2-1") == (), "its id is fenced since the release"
    assert "i2-1" in calls.group.body.members


def test_i12_bettered_a_returning_instance_is_a_member_already(calls: Calls) -> None:
    calls.stable("i1", "i2")
    set_to(calls, max_size=2)

    calls.join("i3")
    assert calls.joined().error == GroupMaxSizeReached(2)
    calls.join("i2")
    assert calls.joined().error is None


@pytest.mark.parametrize("session_ms", [0, 5_999, 1_800_001, -1, 2**31])
def test_i5_the_session_timeout_has_bounds(calls: Calls, session_ms: int) -> None:
    assert calls.join("i1", session_ms=session_ms) == ()
    assert calls.joined().error == InvalidSessionTimeout(session_ms, 6_000, 1_800_000)


@pytest.mark.parametrize("rebalance_ms", [-2, 2**31])
def test_a_rebalance_timeout_has_bounds(calls: Calls, rebalance_ms: int) -> None:
    assert calls.join("i1", rebalance_ms=rebalance_ms) == ()
    error = calls.joined().error
    assert isinstance(error, InvalidRequest)
    assert error.field == "rebalance_timeout_ms"


@pytest.mark.parametrize("instance_id", ["", ".", "..", "a b", "x" * 250, "é", "a\n"])
def test_instance_ids_are_what_kafkas_clients_allow(calls: Calls, instance_id: str) -> None:
    assert calls.join(instance_id, fresh="m") == ()
    assert isinstance(calls.joined().error, InvalidRequest)


def test_the_longest_instance_id_is_taken(calls: Calls) -> None:
    calls.join("x" * 249, fresh="m")

    assert "m" in calls.group.body.members


def test_i1_another_type_or_nothing_in_common_is_refused(calls: Calls) -> None:
    calls.stable("i1")

    assert calls.join("i2", protocol_type="other") == ()
    assert isinstance(calls.joined().error, InconsistentGroupProtocol)
    for protocols in ((Protocol("x", b""),), ()):
        assert calls.join("i2", protocols=protocols) == ()
        assert isinstance(calls.joined().error, InconsistentGroupProtocol)


def test_i2_i3_an_absent_group_needs_a_type_and_a_protocol(calls: Calls) -> None:
    assert calls.join("i1", protocol_type="") == ()
    assert isinstance(calls.joined().error, InconsistentGroupProtocol)
    assert calls.join("i1", protocols=()) == ()
    assert isinstance(calls.joined().error, InconsistentGroupProtocol)
    assert "g" not in calls.core.state.groups, "a refusal without events"


def test_i1_an_empty_protocol_name_is_a_name(calls: Calls) -> None:
    """As with Kafka; a join phase that could not close on it would hold the group for ever (S6)."""
    calls.join("i1", protocols=(Protocol("", b"x"),))
    calls.core.advance(0)

    assert calls.joined().error is None
    assert calls.joined().protocol_name == ""


def test_j25_bettered_unreadable_subscriptions_are_refused(calls: Calls) -> None:
    assert calls.join("i1", protocol_type="consumer", protocols=P) == ()
    assert isinstance(calls.joined().error, InconsistentGroupProtocol)


def test_s7_metadata_that_can_never_fit_is_refused(calls: Calls) -> None:
    set_to(calls, max_size=2, metadata_bytes_max=100)
    calls.join("i1", protocols=(Protocol("p", b"x" * 150),))

    calls.join("i2", protocols=(Protocol("p", b"x" * 50),))
    assert isinstance(calls.joined().error, InvalidRequest), "1 + 150 + 1 + 50 > 2 x 100"
    calls.join("i2", protocols=(Protocol("p", b"x" * 48),))
    assert calls.reply() is None, "parked: 200 bytes are allowed"


def test_i6_a_group_needs_an_id(calls: Calls) -> None:
    join = JoinGroup(calls.caller(), "", "", "i1", 1, 1, "app", P, "m")
    assert calls.submit(join) == ()
    assert isinstance(calls.joined().error, InvalidGroupId), "before the session timeout (I5)"
    assert calls.submit(replace(join, caller=calls.caller(), group_id="a\nb")) == ()
    assert isinstance(calls.joined().error, InvalidGroupId)


def test_d11_the_vote_counts_first_choices_among_what_all_support(calls: Calls) -> None:
    p_first = tuple(reversed(Q_FIRST))
    calls.join("i1", protocols=p_first)
    calls.join("i2", protocols=Q_FIRST)
    calls.join("i3", protocols=Q_FIRST)
    calls.core.advance(0)

    assert calls.joined(2).protocol_name == "q"
