"""An instance id belongs to its first principal while its member exists, where grants decide."""

from collections.abc import Iterator

import pytest

from harness.calls import GROUP, Calls
from holdfast.coordinator.kernel import queries
from holdfast.coordinator.model import access
from holdfast.coordinator.model.access import ADMIN, DENY, DRY_RUN, MEMBER, Acl, administrator
from holdfast.coordinator.model.commands import (
    AlterAcls,
    Caller,
    CommitOffsets,
    CreateTopics,
    LeavingMember,
)
from holdfast.coordinator.model.events import (
    Event,
    InstanceReleased,
    MembersRemoved,
    OffsetCommitted,
    OffsetsCommitted,
    StaticMemberReplaced,
    TopicSize,
)
from holdfast.coordinator.model.rejections import InstanceForbidden, Rejection
from holdfast.coordinator.model.replies import OffsetsReply

OWNER, OTHER = "user", "mallory"


@pytest.fixture
def calls() -> Iterator[Calls]:
    made = Calls(level=2)
    grants = [Acl("*", MEMBER, access.GROUP, "*"), administrator("root")]
    made.submit(AlterAcls(Caller(0), tuple(grants), (), DENY))
    yield made
    made.core.check_replays()


def test_another_principal_cannot_take_an_instance_over(calls: Calls) -> None:
    calls.stable("i1")
    calls.principal = OTHER

    assert calls.join("i1") == ()
    assert isinstance(calls.joined().error, InstanceForbidden)
    assert calls.join("i1", member_id="i1-1") == ()
    assert isinstance(calls.joined().error, InstanceForbidden)


def test_another_principal_does_not_act_as_its_member_by_the_member_id_alone(calls: Calls) -> None:
    """Readers are told member ids. A call that names no instance id acts as the instance, too."""
    calls.stable("i1", "i2")
    calls.principal = OTHER

    assert calls.join(member_id="i1-1") == ()
    assert isinstance(calls.joined().error, InstanceForbidden)
    for instance_id in (None, "i1"):
        assert calls.sync("i1-1", instance_id=instance_id) == ()
        assert isinstance(calls.synced().error, InstanceForbidden)
    calls.principal = OWNER
    calls.sync("i1-1")
    assert calls.synced().error is None


def test_its_first_principal_comes_back_and_keeps_it(calls: Calls) -> None:
    calls.stable("i1")

    assert [type(event) for event in calls.join("i1", fresh="i1-x")] == [StaticMemberReplaced]
    assert calls.member("i1-x").principal == OWNER


def test_a_described_member_says_to_whom_its_instance_id_belongs(calls: Calls) -> None:
    """Else nobody could tell why another principal is refused; an admin's join makes it its own."""
    calls.stable("i1")
    [before] = queries.describe_group(calls.core.state, GROUP).members
    calls.principal = "root"
    calls.join("i1", fresh="i1-x")
    [after] = queries.describe_group(calls.core.state, GROUP).members

    assert (before.principal, after.principal) == (OWNER, "root")


def test_an_instance_id_is_free_when_its_member_is_gone(calls: Calls) -> None:
    calls.stable("i1", "i2")
    calls.leave(LeavingMember("", "i1"))
    calls.principal = OTHER

    calls.join("i1", fresh="i1-y")

    assert calls.member("i1-y").principal == OTHER


@pytest.mark.parametrize("acl", [administrator(OTHER), Acl(OTHER, ADMIN, access.GROUP, GROUP)])
def test_an_administrator_takes_it_over_and_has_it_then(calls: Calls, acl: Acl) -> None:
    calls.stable("i1")
    calls.submit(AlterAcls(Caller(0), (acl,), ()))
    calls.principal = OTHER

    calls.join("i1", fresh="i1-x")

    assert calls.member("i1-x").principal == OTHER


def test_another_principal_neither_takes_its_member_out_nor_releases_it(calls: Calls) -> None:
    calls.stable("i1", "i2")
    calls.principal = OTHER

    for entry in (LeavingMember("", "i1"), LeavingMember("i1-1", None)):
        assert calls.leave(entry) == ()
        assert isinstance(calls.left().members[0].error, InstanceForbidden)
    assert calls.heartbeat("i1-1", release=True) == ()
    assert isinstance(calls.beat().error, InstanceForbidden)


@pytest.mark.parametrize("instance_id", [None, "i1"])
def test_another_principal_does_not_commit_as_its_member(
    calls: Calls, instance_id: str | None
) -> None:
    """It would write over its offsets, and renew the session of a member that is dead."""
    calls.core.submit(CreateTopics(calls.caller(), (TopicSize("t", 1),)))
    calls.stable("i1", "i2")
    renewed = calls.volatile.renewals
    calls.principal = OTHER

    assert commit(calls, instance_id) == ()
    assert isinstance(committed(calls), InstanceForbidden)
    assert calls.volatile.renewals == renewed
    calls.principal = OWNER
    assert kinds(commit(calls, instance_id)) == [OffsetsCommitted]
    assert committed(calls) is None


def test_another_principal_commits_as_its_own_member_and_where_nobody_is(calls: Calls) -> None:
    """The rule is about static members alone: a group's other callers go on as before."""
    calls.core.submit(CreateTopics(calls.caller(), (TopicSize("t", 1),)))
    calls.principal = OTHER
    offsets = (OffsetCommitted("t", 0, 7, -1, ""),)
    calls.submit(CommitOffsets(calls.caller(), GROUP, -1, "", None, offsets))
    assert committed(calls) is None

    calls.principal = OWNER
    calls.stable("i1")
    calls.principal = OTHER
    calls.submit(AlterAcls(Caller(0), (Acl(OTHER, ADMIN, access.GROUP, GROUP),), ()))
    assert kinds(commit(calls, "i1")) == [OffsetsCommitted]


def commit(calls: Calls, instance_id: str | None) -> tuple[Event, ...]:
    offsets = (OffsetCommitted("t", 0, 7, -1, ""),)
    made = CommitOffsets(calls.caller(), GROUP, 1, "i1-1", instance_id, offsets)
    return calls.submit(made)


def committed(calls: Calls) -> Rejection | None:
    reply = calls.reply()
    assert isinstance(reply, OffsetsReply), reply
    return reply.partitions[0].error


def test_an_operator_may_take_any_member_out(calls: Calls) -> None:
    """The server asks for the role of an operator before; here it is one."""
    calls.stable("i1", "i2")
    calls.principal = OTHER

    events = calls.leave(LeavingMember("", "i1"), operator=True)

    assert MembersRemoved(("i1-1",), "") in events


@pytest.mark.parametrize("mode", ["open", DRY_RUN])
def test_where_grants_do_not_decide_everybody_may_take_it_over(calls: Calls, mode: str) -> None:
    """As every cluster did before there were grants."""
    calls.stable("i1")
    calls.submit(AlterAcls(Caller(0), (), (), mode))
    calls.principal = OTHER

    assert kinds(calls.join("i1", fresh="i1-x")) == [StaticMemberReplaced]
    assert kinds(calls.heartbeat("i1-x", release=True)) == [InstanceReleased]


def test_a_member_of_level_one_belongs_to_nobody_until_it_comes_back() -> None:
    """Its principal was not kept. At level one the state is to the byte what it was before."""
    calls = Calls(level=1)
    calls.stable("i1")

    assert calls.member("i1-1").principal == ""


def kinds(events: tuple[Event, ...]) -> list[type]:
    return [type(event) for event in events]
