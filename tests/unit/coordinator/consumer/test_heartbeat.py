"""What a heartbeat is answered, and what it costs; the rules themselves are told in stories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.coordinator.consumer.targets import target, topics_digest
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.kernel.decide import decide_all, new_draft
from holdfast.coordinator.model.access import DENY
from holdfast.coordinator.model.commands import (
    AlterSettings,
    Caller,
    CommitOffsets,
    DeadlineFired,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    LeavingMember,
)
from holdfast.coordinator.model.consumer_events import (
    EpochRaised,
    MemberAdvanced,
    MemberSubscribed,
    TargetStored,
)
from holdfast.coordinator.model.effects import Answer, Renew
from holdfast.coordinator.model.events import OffsetCommitted, SettingChange
from holdfast.coordinator.model.rejections import (
    InconsistentGroupProtocol,
    InstanceForbidden,
    InvalidRegularExpression,
    InvalidRequest,
    PolicyViolation,
    UnknownMemberId,
    UnreleasedInstanceId,
    UnsupportedAssignor,
    UnsupportedVersion,
)
from holdfast.coordinator.model.usage import Usage
from holdfast.coordinator.model.volatile import SESSION, DeadlineKey, Volatile
from unit.coordinator.consumer.talk import GROUP, Talk, parts, replies

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def talk() -> Iterator[Talk]:
    made = Talk(t=4)
    yield made
    made.core.check_replays()


# --- one batch ---


def test_joins_that_share_an_entry_share_one_target(talk: Talk) -> None:
    """K-M20: each raises the epoch, and all are answered as the batch closes."""
    decision = talk.decide(*(talk.joins(f"m{n}", "t") for n in range(4)))

    (stored,) = [p.event for p in decision.events if isinstance(p.event, TargetStored)]
    assert (stored.epoch, len(stored.targets)) == (5, 4)
    assert [each.member_epoch for each in replies(decision)] == [5] * 4
    assert [len(each.assignment or ()) for each in replies(decision)] == [1] * 4


def test_what_ends_a_member_comes_after_what_it_said(talk: Talk) -> None:
    """In one batch as in two: its join is answered, and then it goes."""
    join, leave = talk.joins("a", "t"), talk.says("a", -1)
    decision = talk.decide(join, talk.joins("b", "t"), leave)

    assert [each.error for each in replies(decision)] == [None] * 3
    assert [each.member_epoch for each in replies(decision)] == [3, 3, -1]
    assert [type(p.event).__name__ for p in decision.events[-2:]] == ["MembersLeft", "EpochRaised"]


def test_n2_a_stop_in_the_batch_of_a_beat_keeps_the_place(talk: Talk) -> None:
    """Else the beat, which is finished later, would bring a stopped process back."""
    talk.send(talk.joins("a", "t", instance_id="i"))
    beat, stop = talk.says("a", 2), talk.says("a", -2, instance_id="i")
    decision = talk.decide(talk.joins("b", "t"), beat, stop)

    assert decision.state.groups["g"].body.members["a"].released


def test_s9_who_was_heard_in_the_batch_does_not_expire_in_it(talk: Talk) -> None:
    """Its beat waits for the close of the batch, and yet was before the deadline."""
    talk.send(talk.joins("a", "t"))
    key = DeadlineKey(SESSION, "a")
    fired = DeadlineFired("g", key, talk.core.volatile["g"].armed[key], 0)
    decision = talk.decide(talk.joins("b", "t"), talk.says("a", 2), fired)

    assert "a" in decision.state.groups["g"].body.members
    assert "MemberExpired" not in {type(p.event).__name__ for p in decision.events}


def test_n11_an_instance_that_came_back_in_the_batch_is_in_use(talk: Talk) -> None:
    """Though its join waits for the batch to close."""
    talk.send(talk.joins("a", "t", instance_id="i"))
    talk.send(talk.says("a", -2, instance_id="i"))
    again, taken = talk.joins("a", "t", instance_id="i"), talk.joins("a2", "t", instance_id="i")
    decision = talk.decide(talk.joins("b", "t"), again, taken)

    *accepted, refused = replies(decision)
    assert [each.member_id for each in accepted] == ["b", "a"]
    assert refused.error == UnreleasedInstanceId("i", "a", "client", 0)


@pytest.mark.parametrize("named", [{"instances": "i"}, {"everyone": True}, {"prefix": "i"}])
def test_an_operator_takes_out_who_came_in_the_batch(named: dict[str, Any], talk: Talk) -> None:
    """K-G24: the join is answered before."""
    members = (LeavingMember("", "i"),) if "instances" in named else ()
    rest = {key: value for key, value in named.items() if key != "instances"}
    leave = LeaveGroup(talk.caller(), "g", members, operator=True, **rest)
    decision = talk.decide(talk.joins("a", "t", instance_id="i"), leave)

    assert [each.error for each in replies(decision)] == [None]
    assert dict(decision.state.groups["g"].body.members) == {}


def test_what_is_finished_later_has_the_cause_of_its_own_command(talk: Talk) -> None:
    decision = talk.decide(talk.joins("a", "t", principal="p"), talk.joins("b", "t", principal="q"))
    advanced = [p for p in decision.events if isinstance(p.event, MemberAdvanced)]

    assert [each.principal for each in advanced] == ["p", "q"]


# --- what it costs ---


def test_a_plain_beat_writes_nothing_and_changes_no_state(talk: Talk) -> None:
    """K-M13: the state is the same object, and only the session is renewed."""
    talk.send(talk.joins("a", "t"))
    decision = talk.decide(talk.says("a", 2))

    assert decision.events == ()
    assert decision.state.groups is talk.core.state.groups
    assert [type(each).__name__ for each in decision.effects] == ["Renew", "Answer"]
    assert decision.effects[0] == Renew("a", 45_000, 1)


@pytest.mark.source("it puts other functions in the place of two")
def test_a_plain_beat_looks_at_no_topic_and_no_other_member(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K-M27: topics are compared only if the map of them is another one."""
    talk.send(talk.joins("a", "t"))

    def never(*_: object) -> None:
        raise AssertionError("it was looked at")

    monkeypatch.setattr(topics_digest, "subscribed", never)
    monkeypatch.setattr(target, "group_spec", never)
    assert talk.told(talk.says("a", 2)).member_epoch == 2


@pytest.mark.source("it puts another function in the place of one")
def test_topics_are_looked_at_once_for_each_change_of_them(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk.send(talk.joins("a", "t"))
    looked: list[int] = []
    real = topics_digest.of

    def of(*arguments: Any) -> bytes:  # noqa: ANN401 - as the function that it stands for
        looked.append(1)
        return real(*arguments)

    monkeypatch.setattr(topics_digest, "of", of)
    talk.grow(t=5)
    assert talk.told(talk.says("a", 2)).member_epoch == 3
    assert looked, "it was compared"
    looked.clear()
    talk.told(talk.says("a", 3))
    assert looked == []


# --- who may say what ---


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("group_id", {"group_id": ""}),
        ("member_id", {"member_id": ""}),
        ("member_id", {"member_id": "m" * 250}),
        ("member_id", {"member_id": "\u00e4" * 125}),
        ("instance_id", {"instance_id": ""}),
        ("instance_id", {"instance_id": "a b"}),
        ("rack_id", {"rack_id": ""}),
        ("rebalance_timeout_ms", {"rebalance_timeout_ms": None}),
        ("rebalance_timeout_ms", {"rebalance_timeout_ms": -1}),
        ("topic_partitions", {"owned": None}),
        ("topic_partitions", {"owned": parts("t0")}),
        ("subscribed_topic_names", {"topics": None}),
        ("subscribed_topic_regex", {"regex": "a" * 1_001}),
    ],
)
def test_a_join_says_everything_and_nothing_empty(
    field: str, said: dict[str, Any], talk: Talk
) -> None:
    """K-M1, K-M2: the refusal names the field; nothing is made of it."""
    member_id = said.pop("member_id", "a")
    (reply,) = replies(talk.decide(talk.joins(member_id, "t", **said)))

    assert isinstance(reply.error, InvalidRequest)
    assert reply.error.field == field
    assert "g" not in talk.core.state.groups


@pytest.mark.parametrize(("epoch", "field"), [(-3, "member_epoch"), (-2, "instance_id")])
def test_a_goodbye_is_one_of_two(epoch: int, field: str, talk: Talk) -> None:
    """K-M1."""
    error = talk.told(talk.says("a", epoch)).error

    assert isinstance(error, InvalidRequest)
    assert error.field == field


def test_assignors_and_expressions_that_nobody_knows_are_refused(talk: Talk) -> None:
    """K-M3, K-P1: an empty name is none."""
    known = ("uniform", "range")
    assert talk.told(talk.joins("a", "t", server_assignor="")).error == UnsupportedAssignor(
        "", known
    )
    wrong = talk.joins("a", "t", regex="(", regex_problem="missing )")
    assert talk.told(wrong).error == InvalidRegularExpression("(", "missing )")


def test_an_assignor_that_the_settings_do_not_name_is_unknown(talk: Talk) -> None:
    """K-M3."""
    talk.set(consumer_assignors="range")

    refused = talk.told(talk.joins("a", "t", server_assignor="uniform"))
    assert refused.error == UnsupportedAssignor("uniform", ("range",))
    talk.send(talk.joins("a", "t"))
    assert talk.group.generation == 2


def test_s3_a_cluster_with_older_nodes_does_not_speak_the_protocol() -> None:
    talk = Talk(level=1, t=1)

    error = talk.told(talk.joins("a", "t")).error
    assert error == UnsupportedVersion("the heartbeat protocol", needed=2, level=1)
    assert "g" not in talk.core.state.groups


def test_q1_a_group_of_commits_alone_takes_members_and_keeps_its_offsets(talk: Talk) -> None:
    commit = CommitOffsets(
        Caller(talk.caller().call), "g", -1, "", None, (OffsetCommitted("t", 0, 1, -1, ""),)
    )
    talk.send(commit)

    assert talk.told(talk.joins("a", "t")).error is None
    group = talk.core.state.groups["g"]
    assert group.group_type == "consumer"
    assert [each.offset for each in group.offsets.values()] == [1]


def test_classic_calls_find_nobody_who_speaks_the_classic_protocol(talk: Talk) -> None:
    """K-Q6, K-Q11."""
    talk.send(talk.joins("a", "t"))
    join = JoinGroup(talk.caller(), "g", "", None, 10_000, 10_000, "app", (), "new")
    beat = Heartbeat(talk.caller(), "g", 2, "a", None)
    talk.send(join)
    talk.send(beat)

    assert isinstance(talk.core.answers[join.caller.call].error, InconsistentGroupProtocol)  # type: ignore[union-attr]  # a reply of that call has it
    assert talk.core.answers[beat.caller.call].error == UnknownMemberId("a")  # type: ignore[union-attr]  # a reply of that call has it


def test_an_instance_id_belongs_to_the_principal_that_joined_with_it(talk: Talk) -> None:
    talk.core.state = talk.core.state._replace(access_mode=DENY)
    talk.send(talk.joins("a", "t", instance_id="i", principal="p"))
    talk.send(talk.says("a", -2, instance_id="i", principal="p"))

    stolen = talk.told(talk.joins("b", "t", instance_id="i", principal="q"))
    assert stolen.error == InstanceForbidden("i")
    assert talk.told(talk.says("a", -1, principal="q")).error == InstanceForbidden("i")
    assert talk.told(talk.joins("b", "t", instance_id="i", principal="p")).error is None
    talk.core.log.clear()  # the mode did not come by the log, so that cannot be replayed


STATE_BYTES_MAX = 1 << 30


def test_a_mark_remembers_what_waits(talk: Talk) -> None:
    """What is taken back, since a ceiling stands in its way, takes nothing back of others (S23)."""
    talk.told(talk.joins("a", "t"))
    draft: Draft = new_draft(talk.core.state, Volatile(), GROUP)
    finished: list[str] = []
    draft.defer("a", lambda: finished.append("a"))
    mark = draft.mark()
    draft.settle("a")
    draft.emit(EpochRaised(draft.group.generation + 1, "asked", b""), "operator")
    draft.back_to(mark)
    draft.close()

    assert finished == ["a", "a"]
    assert draft.decision().events == ()


def test_s23_a_heartbeat_that_waits_outlasts_a_later_call_that_exceeds_a_ceiling(
    talk: Talk,
) -> None:
    """The join of `a` finishes what it said before; it names so much that it is taken back."""
    talk.told(talk.joins("a", "t"))
    limit = (SettingChange("cluster.state_bytes_max", str(STATE_BYTES_MAX)),)
    talk.send(AlterSettings(talk.caller(), "", limit))
    used = Usage(state_bytes=STATE_BYTES_MAX * 5 // 4 - 40_000)  # who is there may take more
    first = talk.says("a", talk.member("a").epoch, topics=("t", "u"))
    again = talk.joins("a", *(f"{i:0200}" for i in range(400)))
    state, volatile = talk.core.state, talk.core.volatile[GROUP]
    decision = decide_all(state, volatile, GROUP, (first, again), talk.core.now_ms, used)
    answered = {each.call: each.reply for each in decision.effects if isinstance(each, Answer)}

    assert getattr(answered[first.caller.call], "error", "none at all") is None
    assert isinstance(getattr(answered[again.caller.call], "error", None), PolicyViolation)
    joined = [each.event for each in decision.events if isinstance(each.event, MemberSubscribed)]
    assert [each.profile.topics for each in joined] == [("t", "u")]
