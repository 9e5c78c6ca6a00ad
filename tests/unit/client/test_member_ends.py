"""A member that ends, ends: in both shells, whatever ended it, and said once."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from harness.poll import until, until_async
from holdfast.client import Fenced, Member, OutcomeUnknown, OwnershipLost, Unavailable
from holdfast.client._session.session_io import Settings
from holdfast.v1 import extras_pb2
from holdfast.v1.errors_pb2 import ErrorCode
from unit.client.both_shells import Shell, cluster
from unit.client.fake_cluster import fake_cluster, said

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.client.aio.partition import HeldPartition
    from unit.client.fake_cluster import FakeGroup

both = pytest.mark.parametrize("shell", list(Shell), ids=lambda shell: shell.value)
QUICK: dict[str, Any] = {
    "group": "g",
    "topics": ["t"],
    "session_timeout_ms": 6_000,
    "heartbeat_interval_ms": 20,
}
CALLBACKS = ["on_assigned", "on_revoked", "on_lost"]


def full(_: Sequence[HeldPartition]) -> None:
    raise KeyError("no room")


def owns_all(member: Any) -> None:  # noqa: ANN401 - a member of either shell
    until(lambda: len(member.assignment) == 4, "the assignment")


def provoke(callback: str, group: FakeGroup) -> None:
    """Have this callback called."""
    if callback == "on_revoked":
        group.heartbeat_code = ErrorCode.ERROR_CODE_REBALANCE_IN_PROGRESS
    elif callback == "on_lost":
        group.heartbeat_code = ErrorCode.ERROR_CODE_ILLEGAL_GENERATION


def goodbyes(group: FakeGroup) -> list[str]:
    """What the group was told of the end. A goodbye whose answer is late is sent again as it is."""
    releases = {
        one.SerializeToString() for one in group.requests["Heartbeat"] if one.holdfast.release
    }
    leaves = {one.SerializeToString() for one in group.requests["LeaveGroup"]}
    return ["release"] * len(releases) + ["leave"] * len(leaves)


# --- no ghost ---


@both
@pytest.mark.parametrize("callback", CALLBACKS)
def test_s12_a_callback_that_raises_leaves_no_ghost_of_a_dynamic_member(
    shell: Shell, callback: str
) -> None:
    """Else the next rebalance of the whole group waits for a session that nobody keeps."""
    with cluster() as (group, node):
        member = shell.member(node.address, **{callback: full}, **QUICK)
        with pytest.raises(KeyError, match="no room"), member:  # noqa: PT012 - whichever call it is
            if callback != "on_assigned":
                owns_all(member)
                provoke(callback, group)
            member.wait_stopped()
        assert goodbyes(group) == ["leave"]
        assert member.assignment == ()


@both
@pytest.mark.parametrize("callback", ["on_assigned", "on_revoked"])
def test_s12_a_callback_that_raises_releases_the_place_of_a_static_member(
    shell: Shell, callback: str
) -> None:
    """Else its successor is told that a predecessor may act for a whole session."""
    with cluster() as (group, node):
        member = shell.member(node.address, instance_id="i-1", **{callback: full}, **QUICK)
        with pytest.raises(KeyError, match="no room"), member:  # noqa: PT012 - whichever call it is
            if callback != "on_assigned":
                owns_all(member)
                provoke(callback, group)
                until(lambda: group.requests["HeartbeatStream"], "a heartbeat")
            member.wait_stopped()
        assert goodbyes(group) == ["release"]


@both
def test_s12_the_group_hears_of_the_end_only_when_on_revoked_has_ended(shell: Shell) -> None:
    """on_assigned raises; on_revoked still runs: until then the user's code acts."""
    going, may_end = threading.Event(), threading.Event()

    def on_revoked(_: Sequence[HeldPartition]) -> None:
        going.set()
        if shell is Shell.sync:  # in asyncio it would block the loop, and so prove nothing
            assert may_end.wait(30)

    with cluster() as (group, node):
        member = shell.member(node.address, on_assigned=full, on_revoked=on_revoked, **QUICK)
        member.start()
        assert going.wait(30)
        if shell is Shell.sync:
            assert goodbyes(group) == []
        may_end.set()
        with pytest.raises(KeyError):
            member.wait_stopped()
        assert goodbyes(group) == ["leave"]
        with pytest.raises(KeyError):
            member.restart()


@both
def test_a_goodbye_after_a_failure_that_cannot_be_sent_ends_and_is_logged(
    shell: Shell, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(Settings.__init__.__kwdefaults__ or {}, "leave_timeout_ms", 100)
    with cluster() as (group, node):
        group.refuse["LeaveGroup"] = [(grpc.StatusCode.UNAVAILABLE, ())] * 1_000
        with (
            pytest.raises(KeyError, match="no room"),
            shell.member(node.address, on_assigned=full, **QUICK) as member,
        ):
            member.wait_stopped()
    levels = {record.levelname: record.getMessage() for record in said(caplog, logging.WARNING)}
    assert "no room" in levels["ERROR"]
    assert "has not confirmed that member" in levels["WARNING"]
    assert "within 6000 ms" in levels["WARNING"]


@both
def test_an_unknown_outcome_that_a_callback_raises_is_not_taken_for_an_unheard_goodbye(
    shell: Shell,
) -> None:
    def on_revoked(_: Sequence[HeldPartition]) -> None:
        raise OutcomeUnknown("of the user's own commit")

    with cluster() as (_, node):
        member = shell.member(node.address, on_revoked=on_revoked, **QUICK)
        with pytest.raises(OutcomeUnknown, match="user's own"), member:
            owns_all(member)


# --- said once ---


@both
@pytest.mark.parametrize("heard", ["next_owned", "wait_stopped", "commit"])
def test_t5_a_fenced_that_was_caught_is_not_raised_again_at_the_end_of_the_block(
    shell: Shell, heard: str
) -> None:
    with cluster() as (group, node):
        with shell.member(node.address, instance_id="i-1", **QUICK) as member:
            for _ in range(4):
                member.next_owned()
            group.commit_code = ErrorCode.ERROR_CODE_FENCED_INSTANCE_ID
            if heard != "commit":
                group.heartbeat_code = ErrorCode.ERROR_CODE_FENCED_INSTANCE_ID
            call = {
                "next_owned": member.next_owned,
                "wait_stopped": member.wait_stopped,
                "commit": lambda: member.commit({("t", 0): 1}),
            }[heard]
            with pytest.raises(Fenced):
                call()
        with pytest.raises(Fenced):
            member.wait_stopped()  # who asks again is told again


@both
def test_t5_a_fenced_that_nobody_has_heard_of_comes_out_of_the_block(shell: Shell) -> None:
    with (  # noqa: PT012 - from the end of the block
        cluster() as (group, node),
        pytest.raises(Fenced),
        shell.member(node.address, instance_id="i-1", **QUICK) as member,
    ):
        held = [member.next_owned() for _ in range(4)]
        group.heartbeat_code = ErrorCode.ERROR_CODE_FENCED_INSTANCE_ID
        until(lambda: not held[0].owned, "the loss")
        with pytest.raises(OwnershipLost):
            held[0].check()  # says that it is lost, and not that the member is over


@both
def test_the_block_s_own_error_is_kept_and_says_what_had_stopped_the_member(shell: Shell) -> None:
    with (  # noqa: PT012 - from the middle of the block
        cluster() as (_, node),
        pytest.raises(ZeroDivisionError) as caught,
        shell.member(node.address, on_assigned=full, **QUICK) as member,
    ):
        until(lambda: member.stopped, "the end")
        raise ZeroDivisionError
    assert "KeyError('no room')" in "".join(caught.value.__notes__)


@both
def test_another_error_is_not_lost_behind_a_fenced_commit_that_was_caught(shell: Shell) -> None:
    with (  # noqa: PT012 - from the end of the block
        cluster() as (group, node),
        pytest.raises(KeyError, match="no room"),
        shell.member(node.address, instance_id="i-1", on_lost=full, **QUICK) as member,
    ):
        owns_all(member)
        group.commit_code = ErrorCode.ERROR_CODE_FENCED_INSTANCE_ID
        with pytest.raises(Fenced):
            member.commit({("t", 0): 1})
        until(lambda: member.stopped, "the end")


# --- lost is lost ---


@both
def test_s11_a_partition_that_was_lost_is_not_owned_again_under_the_same_grant(
    shell: Shell,
) -> None:
    """Another one comes with on_assigned: whoever still works on the old one must not act."""
    lost: list[HeldPartition] = []
    assigned: list[HeldPartition] = []
    settings = QUICK | {"session_timeout_ms": 1_000}
    with cluster() as (group, node):
        member = shell.member(
            node.address, on_assigned=assigned.extend, on_lost=lost.extend, **settings
        )
        with member:
            owns_all(member)
            group.heartbeat_code = ErrorCode.ERROR_CODE_COORDINATOR_LOAD_IN_PROGRESS
            until(lambda: len(lost) == 4, "the loss by the clock")
            group.heartbeat_code = ErrorCode.ERROR_CODE_NONE
            until(lambda: len(assigned) == 8, "ownership again")
            assert len(group.requests["JoinGroup"]) == 1, "by a heartbeat, at the same grant"
            assert [one.owned for one in assigned] == [False] * 4 + [True] * 4
            with pytest.raises(OwnershipLost, match="no heartbeat was accepted"):
                lost[0].check()


# --- used once ---


@both
def test_a_member_is_used_once(shell: Shell) -> None:
    with cluster() as (_, node):
        member = shell.member(node.address, **QUICK)
        with member:
            owns_all(member)
        assert member.stopped
        with pytest.raises(RuntimeError, match="used once"):
            member.start()
        with pytest.raises(RuntimeError, match="used once"):
            member.__enter__()
        with pytest.raises(Unavailable, match="has stopped"):
            member.commit({("t", 0): 1})


@both
@pytest.mark.parametrize(
    "call", ["next_owned", "wait_stopped", "leave", "restart", "begin_restart"]
)
def test_a_member_that_was_not_started_says_so_and_does_not_wait_for_ever(
    shell: Shell, call: str
) -> None:
    member = shell.member("127.0.0.1:1", **QUICK)
    with pytest.raises(RuntimeError, match="has not been started"):
        getattr(member, call)()


# --- the pause of a fenced member ---


def fence(group: FakeGroup, takeovers: int) -> None:
    group.heartbeat_extras = extras_pb2.ResponseExtras(holder="other", takeovers=takeovers)
    group.heartbeat_code = ErrorCode.ERROR_CODE_FENCED_INSTANCE_ID


@both
def test_t5_a_fenced_member_stops_at_once_and_tells_after_the_pause(
    shell: Shell, caplog: pytest.LogCaptureFixture
) -> None:
    lost: list[int] = []
    with cluster() as (group, node):
        member = shell.member(
            node.address,
            instance_id="i-1",
            on_lost=lambda gone: lost.extend(one.number for one in gone),
            **QUICK,
        )
        member.start()
        held = [member.next_owned() for _ in range(4)]
        fence(group, takeovers=9)  # a pause of 30 s, longer than this test may wait
        until(lambda: lost, "on_lost")
        assert lost == [0, 1, 2, 3]
        assert [one.owned for one in held] == [False] * 4
        assert held[0].lost_reason is not None
        assert held[0].lost_reason.kind == "fenced"
        assert "other" in str(held[0].lost_reason)
        assert isinstance(member.health().error, Fenced)
        assert len(said(caplog, logging.WARNING)) == 1  # at once, and only once
        assert not member.stopped
        member.begin_restart()  # what the first signal does
        with pytest.raises(Fenced) as caught:
            member.wait_stopped()
        assert caught.value.takeovers == 9
        with pytest.raises(Fenced):
            member.restart()
    assert len(said(caplog, logging.WARNING)) == 1


@both
def test_t5_the_end_of_the_block_waits_for_the_pause_too(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that just ends is started again at full speed like one that raises."""
    asked: list[object] = []

    def pause_ms(error: object) -> int:
        asked.append(error)
        return 100

    monkeypatch.setattr("holdfast.client._session.membership.pause_ms", pause_ms)
    with (  # noqa: PT012 - from the end of the block
        cluster() as (group, node),
        pytest.raises(Fenced),
        shell.member(node.address, instance_id="i-1", **QUICK) as member,
    ):
        held = [member.next_owned() for _ in range(4)]
        fence(group, takeovers=2)
        until(lambda: not held[0].owned, "the loss")
    assert member.stopped
    assert asked


def test_t5_a_cancellation_cuts_the_pause_short_and_leaves_nothing_open() -> None:
    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):
            member = Member(node.address, instance_id="i-1", **QUICK)

            async def worker() -> None:
                async with member:
                    await until_async(lambda: member.assignment, "the assignment")
                    fence(group, takeovers=9)
                    await until_async(lambda: member.health().fenced, "the fencing")

            task = asyncio.create_task(worker())
            await until_async(lambda: member.health().fenced, "the fencing")
            for _ in range(50):  # turns of the loop: the end of the block waits by then
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert member.stopped
            with pytest.raises(Unavailable, match="was closed"):
                await member.committed()

    asyncio.run(scenario())


# --- why it was lost ---


@both
def test_a_loss_has_its_reason_on_the_partition_in_the_probe_and_in_one_warning(
    shell: Shell, caplog: pytest.LogCaptureFixture
) -> None:
    reasons: list[str] = []
    with (
        cluster() as (group, node),
        shell.member(
            node.address,
            on_lost=lambda gone: reasons.extend(one.lost_reason.kind for one in gone),
            **QUICK,
        ) as member,
    ):
        (old, *_) = [member.next_owned() for _ in range(4)]
        assert old.lost_reason is None
        assert member.health().lost is None
        group.heartbeat_code = ErrorCode.ERROR_CODE_UNKNOWN_MEMBER_ID
        until(lambda: reasons, "on_lost")
        group.heartbeat_code = ErrorCode.ERROR_CODE_NONE
        assert reasons == ["removed"] * 4
        assert member.health().lost == old.lost_reason
        with pytest.raises(OwnershipLost, match="removed this member"):
            old.check()
    warnings = [record.getMessage() for record in said(caplog, logging.WARNING)]
    assert [line for line in warnings if "has lost t/0, t/1, t/2, t/3" in line] == warnings
    assert len(warnings) >= 1
    assert "has removed this member" in warnings[0]


@both
def test_joining_generation_and_assignment_are_lines_and_a_redirect_is_not(
    shell: Shell, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "holdfast.client")
    with cluster() as (group, node):
        group.refuse["JoinGroup"] = [
            (grpc.StatusCode.UNAVAILABLE, (("holdfast-leader", node.address),))
        ]
        with shell.member(node.address, **QUICK) as member:
            owns_all(member)
    lines = [record.getMessage() for record in said(caplog)]
    assert any(line.endswith("joins: a new process.") for line in lines)
    assert any("is in generation 1 and leads it." in line for line in lines)
    assert any("owns t/0, t/1, t/2, t/3, under token 77." in line for line in lines)
    assert any("lets go of t/0, t/1, t/2, t/3." in line for line in lines)
    assert not any("UNAVAILABLE" in line for line in lines)


# --- a start that reaches nobody ---


@both
@pytest.mark.parametrize("call", ["next_owned", "wait_stopped"])
def test_a_wrong_address_is_told_after_the_start_timeout(shell: Shell, call: str) -> None:
    member = shell.member("127.0.0.1:1", start_timeout_ms=300, **QUICK)
    with (
        pytest.raises(Unavailable, match=r"start_timeout_ms.*127\.0\.0\.1:1: nobody listens"),
        member,
    ):
        getattr(member, call)()
    assert not member.health().live


@both
@pytest.mark.parametrize("wrong", [0, -1, True, "30"])
def test_a_start_timeout_is_a_time_or_none(shell: Shell, wrong: object) -> None:
    with pytest.raises(ValueError, match="start_timeout_ms is 1 to"):
        shell.member("127.0.0.1:1", start_timeout_ms=wrong, **QUICK)
    shell.member("127.0.0.1:1", start_timeout_ms=None, **QUICK)


@both
@pytest.mark.parametrize("name", ["member", "connection"])
@pytest.mark.parametrize("address", ["http://127.0.0.1:7400", "https://a:1", "a:1,b/c:2"])
def test_a_url_is_no_address(shell: Shell, name: str, address: str) -> None:
    with pytest.raises(ValueError, match="is a URL or a path: name the node as host:port"):
        getattr(shell, name)(address, **(QUICK if name == "member" else {}))
