"""The table of group types: a second type takes one package and one line, and nothing asks classic.

The type here does nothing (`harness.probe_type`); that it can be stored is shown with the codec
(`storage/codec/test_state_shapes.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harness.probe_type import BUSY, IDLE, Probe, ProbeBody, ProbeMember, probe
from holdfast.coordinator.groups.group_type import Fetcher, GroupType
from holdfast.coordinator.kernel import queries
from holdfast.coordinator.kernel.decide import decide, on_leading
from holdfast.coordinator.kernel.group_types import TYPES
from holdfast.coordinator.kernel.invariants import check_group, check_touched
from holdfast.coordinator.kernel.queries import ListedGroup
from holdfast.coordinator.model.commands import (
    CallBroken,
    Caller,
    CommitOffsets,
    DeadlineFired,
    DeleteGroup,
    DeleteOffsets,
    DeleteTopics,
    ExpireOffsets,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
)
from holdfast.coordinator.model.described import DescribedBody
from holdfast.coordinator.model.effects import Answer, Arm, Renew
from holdfast.coordinator.model.events import (
    GroupDeleted,
    OffsetCommitted,
    OffsetsCommitted,
    OffsetsDeleted,
    TopicSize,
)
from holdfast.coordinator.model.ids import TopicPartition
from holdfast.coordinator.model.rejections import (
    InconsistentGroupProtocol,
    NonEmptyGroup,
    TopicInUse,
    UnknownMemberId,
)
from holdfast.coordinator.model.replies import HeartbeatReply, NamedReply
from holdfast.coordinator.model.state import Group, Offset, State
from holdfast.coordinator.model.subscriptions import Subscribed
from holdfast.coordinator.model.volatile import SESSION, DeadlineKey, Volatile
from holdfast.coordinator.structures.pmap import PMap

if TYPE_CHECKING:
    from holdfast.coordinator.groups.draft import Draft
    from holdfast.coordinator.model.effects import Decision
    from holdfast.coordinator.model.replies import Reply


def state_of(kind: GroupType[Draft], monkeypatch: pytest.MonkeyPatch, state: str = BUSY) -> State:
    """A cluster with one group of this type; its line in the table is all that is changed."""
    monkeypatch.setitem(TYPES, kind.name, kind)
    probes = PMap({"m": ProbeMember("m")}) if state == BUSY else PMap()
    group = Group(
        "g",
        kind.name,
        ProbeBody("epoch 7", probes),
        state=state,
        version=1,
        seq=1,
        offsets=PMap({TopicPartition("t", 0): Offset(5, -1, "", 0)}),
    )
    topics = PMap({"t": TopicSize("t", 3)})
    return State("c", PMap({"g": group}), topics, applied_index=1, log_time_ms=10**12)


def answers(decision: Decision) -> list[Reply]:
    return [effect.reply for effect in decision.effects if isinstance(effect, Answer)]


def test_a_call_of_the_type_is_decided_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    state = state_of(probe(), monkeypatch)

    assert answers(decide(state, Volatile(), Probe(Caller(1), "g"))) == [HeartbeatReply(None)]  # type: ignore[arg-type]  # a command of no type that mypy knows


@pytest.mark.parametrize(
    "command",
    [
        JoinGroup(Caller(1), "g", "", None, 10_000, 10_000, "consumer", (), "new"),
        Heartbeat(Caller(1), "g", 1, "m", None),
        LeaveGroup(Caller(1), "g", ()),
    ],
)
def test_a_call_of_another_type_is_refused_and_changes_nothing(
    command: JoinGroup | Heartbeat | LeaveGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    decision = decide(state_of(probe(), monkeypatch), Volatile(), command)
    (reply,) = answers(decision)
    assert not isinstance(reply, NamedReply)

    assert isinstance(reply.error, InconsistentGroupProtocol)
    assert "probe" in reply.error.problem
    assert decision.events == ()


def test_the_type_renews_the_session_of_a_member_that_commits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """K-F12: how long a member may be silent is the type's business."""
    kind = probe(
        on_leading=lambda draft: draft.arm_session("m"),
        heard=lambda draft, command: draft.renew(command.member_id),
        session_ms=lambda _draft, member_id: 4_000 if member_id == "m" else 0,
    )
    state = state_of(kind, monkeypatch)
    commit = CommitOffsets(Caller(1), "g", 3, "m", None, (OffsetCommitted("t", 1, 7, -1, ""),))
    led = on_leading(state, "g")
    decision = decide(state, led.volatile, commit)

    assert led.effects == (Arm(DeadlineKey(SESSION, "m"), 1, 4_000),)
    assert Renew("m", 4_000, 1) in decision.effects


def test_the_type_says_how_many_members_stand_in_the_way_of_a_deletion(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """K-K12, and K-J22: of a group whose members do not tell their topics."""
    members: PMap[str, object] = PMap({"x": object(), "y": object()})
    kind = probe(members=lambda _group: members, tells_topics=lambda _group: False)
    state = state_of(kind, monkeypatch)
    (group,) = answers(decide(state, Volatile(), DeleteGroup(Caller(1), "g")))
    command = DeleteOffsets(Caller(1), "g", (TopicPartition("t", 0),))
    (offsets,) = answers(decide(state, Volatile(), command))

    assert group.results[0].error == NonEmptyGroup(2)  # type: ignore[union-attr]  # a reply of that call has it
    assert offsets.error == NonEmptyGroup(2)  # type: ignore[union-attr]  # a reply of that call has it


WEEK_MS = 7 * 86_400_000


@pytest.mark.parametrize(("had_members", "events"), [(True, []), (False, ["N1"])])
def test_the_type_says_whether_offsets_age_from_the_end_of_the_last_member(
    events: list[str], monkeypatch: pytest.MonkeyPatch, *, had_members: bool
) -> None:
    """K-J27: with its last member gone a group starts to age; one that never had any does not."""
    kind = probe(
        had_members=lambda _group: had_members,
        expiry_rule=lambda _group: "N1",
        subscribed=lambda _group: Subscribed(frozenset()),
    )
    state = state_of(kind, monkeypatch, IDLE)
    young = state.groups["g"]._replace(state_since_ms=WEEK_MS, generation=5)
    state = state._replace(groups=PMap({"g": young}), log_time_ms=WEEK_MS + 1)
    decision = decide(state, Volatile(), ExpireOffsets("g", WEEK_MS + 1), WEEK_MS + 1)

    assert [each.cause.rule for each in decision.events] == events


def test_the_type_says_who_may_commit_and_evolve_is_everybodys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = OffsetCommitted("t", 1, 7, -1, "")
    commit = CommitOffsets(Caller(1), "g", 3, "m", None, (place,))
    state = state_of(probe(), monkeypatch)
    taken = decide(state, Volatile(), commit)
    stranger = UnknownMemberId("m")
    state = state_of(probe(may_commit=lambda _state, _group, _command: stranger), monkeypatch)
    refused = decide(state, Volatile(), commit)

    assert [each.event for each in taken.events] == [OffsetsCommitted((place,))]
    assert taken.state.groups["g"].offsets[TopicPartition("t", 1)].offset == 7
    assert refused.events == ()
    assert answers(refused)[0].partitions[0].error == stranger  # type: ignore[union-attr]  # a reply of that call has it


def test_the_type_says_who_may_read_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    """K-J16: only a group that is there is asked, and it is told who wants to know."""
    asked: list[object] = []

    def stranger(_group: Group[Any], fetcher: Fetcher) -> UnknownMemberId:
        asked.append(fetcher)
        return UnknownMemberId("m")

    kind = probe(may_fetch=stranger)
    state = state_of(kind, monkeypatch)

    assert queries.fetch_refusal(state, "g", Fetcher("m", 7)) == UnknownMemberId("m")
    assert queries.fetch_refusal(state, "absent", Fetcher("m", 7)) is None
    assert asked == [Fetcher("m", 7)]


@pytest.mark.parametrize(("state", "events"), [(BUSY, []), (IDLE, [GroupDeleted()])])
def test_the_type_says_whether_a_group_is_empty(
    state: str, events: list[GroupDeleted], monkeypatch: pytest.MonkeyPatch
) -> None:
    decision = decide(
        state_of(probe(), monkeypatch, state), Volatile(), DeleteGroup(Caller(1), "g")
    )
    (reply,) = answers(decision)

    assert [each.event for each in decision.events] == events
    assert isinstance(reply.results[0].error, NonEmptyGroup) is (state == BUSY)  # type: ignore[union-attr]  # a reply of that call has it


GONE = OffsetsDeleted((TopicPartition("t", 0),))


@pytest.mark.parametrize(("rule", "events"), [("", []), ("N1", [(GONE, "N1")])])
def test_the_type_says_by_which_rule_offsets_expire(
    rule: str, events: list[tuple[OffsetsDeleted, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = probe(expiry_rule=lambda _group: rule, subscribed=lambda _g: Subscribed(frozenset()))
    command = ExpireOffsets("g", 10**12)
    decision = decide(state_of(kind, monkeypatch), Volatile(), command, 10**12)

    assert [(each.event, each.cause.rule) for each in decision.events] == events


def test_the_type_reads_the_subscriptions_that_keep_a_topic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decision = decide(state_of(probe(), monkeypatch), Volatile(), DeleteTopics(Caller(1), ("t",)))
    (reply,) = answers(decision)

    assert reply.results[0].error == TopicInUse("t", ("g",), 1)  # type: ignore[union-attr]  # a reply of that call has it


def test_the_type_judges_deadlines_broken_calls_and_a_new_lead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[object] = []
    kind = probe(
        fired=lambda _draft, command: seen.append(command),
        call_broken=lambda _draft, call: seen.append(call),
    )
    state = state_of(kind, monkeypatch)
    fired = DeadlineFired("g", DeadlineKey(SESSION, "m"), 1, 0)
    decide(state, Volatile(), fired)
    decide(state, Volatile(), CallBroken("g", 9))

    assert seen == [fired, 9]
    assert DeadlineKey(SESSION, "m") in on_leading(state, "g").volatile.armed


def test_a_group_of_the_type_is_described_listed_and_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kind = probe(
        describe=lambda _group: DescribedBody("probes", "epoch 7", "m"),
        members=lambda _group: PMap({"y": "young", "old": "o"}),
        seniority=len,
        describe_member=lambda _state, _group, member: f"told of {member}",
        check=lambda _group: ("N2: something is odd",),
        check_touched=lambda _before, _group, ids: (f"N3: {each} is odd" for each in ids),
    )
    state = state_of(kind, monkeypatch)
    described = queries.describe_group(state, "g")

    assert (described.state, described.protocol_data) == (BUSY, "epoch 7")
    assert (described.protocol_type, described.leader) == ("probes", "m")
    told = [str(each) for each in described.members]
    assert told == ["told of o", "told of young"], "in the order of the type"
    assert queries.list_groups(state) == (ListedGroup("g", "probes", BUSY, "probe"),)
    group = state.groups["g"]
    assert check_group(group) == ["N2: something is odd (group 'g')"]
    assert check_touched(group, group, ["m"]) == ["N3: m is odd (group 'g')"]
