"""What a user of either shell can rely on in the heartbeat protocol: one suite, run against both.

The fake cluster answers by the naive coordinator of the sessions' random walks.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from harness.poll import until
from holdfast.client import (
    Fenced,
    IncompatibleServer,
    InvalidArgument,
    OwnershipLost,
    TopicPartition,
    UnknownMember,
)
from holdfast.v1.errors_pb2 import ErrorCode
from unit.client._session.consumer.coordinator import PARTITIONS
from unit.client.both_shells import Shell, cluster

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.client import Partition
    from unit.client.fake_cluster import FakeGroup

both = pytest.mark.parametrize("shell", list(Shell), ids=lambda shell: shell.value)
QUICK: dict[str, Any] = {"group": "g", "topics": ["t"], "protocol": "consumer"}
CALL = "ConsumerGroupHeartbeat"


def numbers(partitions: Sequence[Partition]) -> list[int]:
    return sorted(partition.number for partition in partitions)


def take(owned: Iterator[Partition], count: int = PARTITIONS) -> list[Partition]:
    return [next(owned) for _ in range(count)]


def epochs(group: FakeGroup) -> list[int]:
    return [request.member_epoch for request in group.requests[CALL]]


@both
@pytest.mark.parametrize(("instance_id", "epoch"), [("i-1", -2), (None, -1)])
def test_a_member_owns_checks_commits_and_restarts(
    shell: Shell, instance_id: str | None, epoch: int
) -> None:
    """S12, S13: each partition has a token of its own, and the end of the block is a restart."""
    revoked: list[int] = []
    with cluster() as (group, node):
        with shell.member(
            node.address,
            instance_id=instance_id,
            on_revoked=lambda gone: revoked.extend(numbers(gone)),
            **QUICK,
        ) as member:
            partitions = take(member.owned())
            assert numbers(partitions) == list(range(PARTITIONS))
            assert len({partition.fencing_token for partition in partitions}) == PARTITIONS
            partitions[0].check()
            member.commit({("t", 0): 5})
            assert member.committed()[TopicPartition("t", 0)].value == 5
            until(lambda: member.health().ready, "the acknowledgement is answered")
            assert member.health().phase == "stable"
        assert revoked == list(range(PARTITIONS))
        with pytest.raises(OwnershipLost):
            partitions[0].check()
        assert epochs(group)[0] == 0
        assert epochs(group)[-1] == epoch
        assert {each.member_id for each in group.requests[CALL]} == {member.member_id}


@both
def test_a_static_member_that_leaves_for_good_says_so(shell: Shell) -> None:
    with cluster() as (group, node):
        with shell.member(node.address, instance_id="i-1", **QUICK) as member:
            take(member.owned())
            member.leave()
        assert epochs(group)[-1] == -1


@both
def test_a_second_member_takes_over_what_the_first_lets_go_of(shell: Shell) -> None:
    """Work is stopped, positions are committed, on_revoked runs, and then others may have it."""
    order: list[str] = []

    def positions(gone: Sequence[Partition]) -> dict[tuple[str, int], int]:
        order.append(f"positions {numbers(gone)} {all(each.revoking for each in gone)}")
        return {each.name: 40 + each.number for each in gone}

    with cluster() as (group, node):

        def on_revoked(gone: Sequence[Partition]) -> None:
            committed = sorted(number for _, number in group.offsets)
            order.append(f"on_revoked {numbers(gone)} {committed}")

        first = shell.member(node.address, positions=positions, on_revoked=on_revoked, **QUICK)
        with first:
            take(first.owned())
            with shell.member(node.address, **QUICK) as second:
                until(lambda: len(second.assignment) == PARTITIONS // 2, "half has moved")
                moved, stayed = numbers(second.assignment), numbers(first.assignment)
                assert order == [f"positions {moved} True", f"on_revoked {moved} {moved}"]
                assert group.offsets["t", moved[0]] == (40 + moved[0], "")
                assert sorted(moved + stayed) == list(range(PARTITIONS))


@both
def test_positions_that_are_refused_keep_nobody_waiting(
    shell: Shell, caplog: pytest.LogCaptureFixture
) -> None:
    revoked: list[int] = []
    with cluster() as (group, node):
        member = shell.member(
            node.address,
            positions=lambda gone: {each.name: 1 for each in gone},
            on_revoked=lambda gone: revoked.extend(numbers(gone)),
            **QUICK,
        )
        with member:
            take(member.owned())
            group.commit_code = ErrorCode.ERROR_CODE_OFFSET_METADATA_TOO_LARGE
        assert revoked == list(range(PARTITIONS))
    assert "are not committed" in caplog.text


@both
def test_another_subscription_is_told_at_once_and_unsubscribing_ends_and_begins(
    shell: Shell,
) -> None:
    with cluster() as (group, node), shell.member(node.address, **QUICK) as member:
        take(member.owned())
        member.subscribe(["t", "u"])
        wanted = [["t"], ["t", "u"]]
        until(lambda: told(group) == wanted, "it is told")
        member.unsubscribe()
        until(lambda: epochs(group)[-1] == -1, "it has left")
        until(lambda: member.health().phase == "unsubscribed", "it was answered")
        assert not member.stopped
        member.subscribe(topic_regex="t.*")
        assert len(take(member.owned())) == PARTITIONS
        assert group.requests[CALL][-1].subscribed_topic_regex in {"", "t.*"}


def told(group: FakeGroup) -> list[list[str]]:
    said = [each for each in group.requests[CALL] if each.HasField("subscribed_topic_names")]
    return [list(each.subscribed_topic_names.names) for each in said]


@both
def test_a_refusal_is_raised_and_another_subscription_heals_it(shell: Shell) -> None:
    """Such as that of a pattern; the member is not stopped by it."""
    with cluster() as (group, node):
        group.consumers.refuses = [ErrorCode.ERROR_CODE_INVALID_REGULAR_EXPRESSION]
        settings = QUICK | {"topic_regex": "(["}
        del settings["topics"]
        with shell.member(node.address, **settings) as member:
            with pytest.raises(InvalidArgument):
                shell.wait(member.next_owned())
            with pytest.raises(InvalidArgument):
                member.wait_stopped()
            assert (member.stopped, member.health().phase) == (False, "fatal")
            assert not member.health().live
            member.subscribe(topic_regex="t.*")
            assert len(take(member.owned())) == PARTITIONS
            assert member.health().live


@both
def test_the_end_of_a_member_that_was_refused_raises_why(shell: Shell) -> None:
    with cluster() as (group, node):
        group.consumers.refuses = [ErrorCode.ERROR_CODE_UNSUPPORTED_ASSIGNOR]
        member = shell.member(node.address, server_assignor="mine", **QUICK)
        with pytest.raises(InvalidArgument), member:
            until(lambda: not member.health().live, "it was refused")
        assert member.stopped


@both
def test_fenced_by_another_process_is_final(shell: Shell) -> None:
    with cluster() as (group, node):
        member = shell.member(node.address, instance_id="i-1", **QUICK)
        member.start()
        take(member.owned())
        group.consumers.refuses = [ErrorCode.ERROR_CODE_FENCED_INSTANCE_ID]
        with pytest.raises(Fenced):
            shell.wait(member.next_owned())
        with pytest.raises(Fenced):
            member.restart()
        assert member.health().fenced is not None


@both
def test_t17_a_program_that_is_stuck_loses_what_it_has_until_it_works_again(shell: Shell) -> None:
    lost: list[Any] = []
    with cluster() as (group, node):
        member = shell.member(node.address, work_timeout_ms=300, on_lost=lost.extend, **QUICK)
        with member:
            take(member.owned())
            until(lambda: member.health().phase == "stale", "nobody called working()")
            until(lambda: len(lost) == PARTITIONS, "on_lost was called")
            assert {each.lost_reason.kind for each in lost} == {"stuck"}
            assert epochs(group)[-1] == -1
            member.working()
            assert len(take(member.owned())) == PARTITIONS


@both
def test_on_lost_runs_after_the_on_revoked_that_it_has_overtaken(shell: Shell) -> None:
    """T-13: what on_revoked runs for fails `check` at once, and is told to be lost after it."""
    order: list[str] = []
    begun, goes_on = threading.Event(), threading.Event()

    def slow(gone: Sequence[Partition]) -> None:
        order.append(f"on_revoked {len(gone)}")
        begun.set()
        goes_on.wait(20)

    async def slow_aio(gone: Sequence[Partition]) -> None:
        import asyncio  # noqa: PLC0415 - of this shell only

        await asyncio.to_thread(slow, gone)

    with cluster() as (group, node):
        member = shell.member(
            node.address,
            on_revoked=slow if shell is Shell.sync else slow_aio,
            on_lost=lambda gone: order.append(f"on_lost {len(gone)}"),
            **QUICK,
        )
        with member:
            partitions = take(member.owned())
            with shell.member(node.address, **QUICK):
                assert begun.wait(20)
                going = [each for each in partitions if each.revoking]
                assert all(each.owned for each in going)
                group.consumers.remove(member.member_id)
                until(lambda: not any(each.owned for each in partitions), "the fence is heard")
                with pytest.raises(OwnershipLost):
                    going[0].check()
                assert order == ["on_revoked 3"]
                goes_on.set()
                until(lambda: len(order) == 2, "on_lost runs")
                assert order == ["on_revoked 3", "on_lost 6"]


@both
def test_a_callback_that_raises_ends_the_member_and_frees_what_it_had(shell: Shell) -> None:
    """Better than Kafka's client, whose member waits to be fenced (T-11)."""

    def on_assigned(_: Sequence[Partition]) -> None:
        raise ZeroDivisionError

    with cluster() as (group, node):
        member = shell.member(node.address, on_assigned=on_assigned, **QUICK)
        member.start()
        with pytest.raises(ZeroDivisionError):
            member.wait_stopped()
        assert epochs(group)[-1] == -1
        assert group.consumers.members == {}
        with pytest.raises(ZeroDivisionError):
            member.restart()


@both
@pytest.mark.parametrize("on_stream", [True, False])
def test_an_older_node_is_told_apart(shell: Shell, *, on_stream: bool) -> None:
    """It knows the Session stream, or neither that nor the call."""
    with cluster() as (group, node):
        group.has_session = on_stream
        group.refuse[CALL] = [(grpc.StatusCode.UNIMPLEMENTED, ())] * 9
        with (
            pytest.raises(IncompatibleServer, match=CALL),
            shell.member(node.address, **QUICK) as member,
        ):
            shell.wait(member.next_owned())


@both
@pytest.mark.parametrize("on_stream", [True, False])
def test_heartbeats_go_on_the_session_stream_if_the_node_has_one(
    shell: Shell, *, on_stream: bool
) -> None:
    with cluster() as (group, node):
        group.has_session = on_stream
        with shell.member(node.address, **QUICK) as member:
            take(member.owned())
        assert bool(group.messages) is on_stream


@both
def test_the_members_of_one_process_share_a_connection(shell: Shell) -> None:
    with cluster() as (group, node):
        with shell.members(node.address, count=3, instance_id="p", **QUICK) as members:
            until(
                lambda: (
                    sorted(n for one in members for n in numbers(one.assignment))
                    == list(range(PARTITIONS))
                ),
                "all are owned",
            )
            assert group.sessions == 1
        left = {each.instance_id: each.member_epoch for each in group.requests[CALL]}
        assert left == {f"p-thread-{number}": -2 for number in (1, 2, 3)}


@both
def test_t19_a_stale_commit_is_sent_again_and_a_refused_one_is_raised(shell: Shell) -> None:
    with cluster() as (group, node), shell.member(node.address, **QUICK) as member:
        take(member.owned())
        group.commit_codes = [ErrorCode.ERROR_CODE_STALE_MEMBER_EPOCH] * 2
        member.commit({("t", 1): 7})
        assert group.offsets["t", 1] == (7, "")
        ids = {each.holdfast.request_id for each in group.requests["OffsetCommit"]}
        assert (len(group.requests["OffsetCommit"]), len(ids)) == (3, 1)
        group.commit_codes = [ErrorCode.ERROR_CODE_UNKNOWN_MEMBER_ID]
        with pytest.raises(UnknownMember):
            member.commit({("t", 1): 8})


@both
def test_what_is_of_the_other_protocol_is_refused(shell: Shell) -> None:
    with cluster() as (_, node), shell.member(node.address, group="g", topics=["t"]) as classic:
        for call in ("unsubscribe", "working"):
            with pytest.raises(RuntimeError, match=f"{call} is of the heartbeat protocol"):
                getattr(classic, call)()
        with pytest.raises(RuntimeError, match="subscribe is of the heartbeat protocol"):
            classic.subscribe(["u"])
