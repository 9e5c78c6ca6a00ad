"""`Member.run` for asyncio: handlers that are told to stop, waited for, and then let go of."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import pytest

from harness.poll import until_async
from holdfast.client import Fenced, Member, OwnershipLost, Partition
from holdfast.client.aio import handlers
from holdfast.v1 import extras_pb2, group_pb2
from holdfast.v1.errors_pb2 import ErrorCode
from unit.client.fake_cluster import fake_cluster, said
from unit.client.run_parts import QUICK, goodbyes, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unit.client.fake_cluster import FakeGroup

REBALANCE = ErrorCode.ERROR_CODE_REBALANCE_IN_PROGRESS


async def announce(group: FakeGroup, member: Member) -> None:
    """One rebalance, told unasked."""
    await until_async(lambda: group.requests["HeartbeatStream"], "a heartbeat")
    push = group_pb2.HeartbeatPush(
        group_id="g",
        member_id=member.member_id,
        generation_id=member.generation,
        error_code=REBALANCE,
    )
    await group.pushes.put(push)


def test_s12_handlers_are_told_awaited_and_joined_before_the_group_hears_of_it() -> None:
    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):
            steps: list[str] = []
            ends = asyncio.Event()
            sent: list[tuple[int, int]] = []

            async def handler(partition: Partition) -> None:
                steps.append("begin")
                await partition.wait_revoked()
                await ends.wait()  # slow
                partition.check()  # it may still commit
                sent.append((len(group.requests["JoinGroup"]), goodbyes(group)))
                steps.append("end")

            member = Member(
                node.address, on_revoked=lambda gone: steps.append(f"-{len(gone)}"), **QUICK
            )
            async with member:
                running = asyncio.create_task(member.run(handler))
                await until_async(lambda: len(steps) == 4, "the handlers")
                await announce(group, member)
                await until_async(lambda: member.health().phase == "revoking", "the rebalance")
                beats = len(group.requests["HeartbeatStream"])
                await until_async(
                    lambda: len(group.requests["HeartbeatStream"]) > beats + 3, "heartbeats go on"
                )
                assert steps == ["begin"] * 4
                ends.set()
                await until_async(lambda: steps.count("begin") == 8, "the handlers again")
                member.begin_restart()
                await running
            per_life = ["begin"] * 4 + ["end"] * 4 + ["-4"]
            assert steps == per_life * 2
            assert sent == [(1, 0)] * 4 + [(2, 0)] * 4
            assert goodbyes(group) == 1

    run(scenario())


def test_a_handler_that_raises_ends_the_member_with_its_error_after_leaving() -> None:
    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):
            others: list[bool] = []

            async def handler(partition: Partition) -> None:
                if partition.number == 2:
                    raise KeyError("no room")
                await partition.wait_revoked()
                partition.check()
                others.append(goodbyes(group) == 0)

            async with Member(node.address, **QUICK) as member:
                with pytest.raises(KeyError, match="no room"):
                    await member.run(handler)
                assert others == [True] * 3
                assert goodbyes(group) == 1
                assert member.stopped

    run(scenario())


def test_a_second_handler_that_raises_is_not_swallowed(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with fake_cluster() as (_, (node,)):

            async def handler(partition: Partition) -> None:
                raise KeyError(f"of {partition.number}")

            async with Member(node.address, **QUICK) as member:
                with pytest.raises(KeyError):
                    await member.run(handler)

    run(scenario())
    logged = [repr(record.exc_info) for record in said(caplog, logging.ERROR)]
    assert {f"of {number}" in " ".join(logged) for number in range(4)} == {True}


def test_a_handler_that_returns_early_is_done_until_the_next_assignment() -> None:
    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):
            begun: list[int] = []

            async def handler(partition: Partition) -> None:
                begun.append(partition.number)

            async with Member(node.address, **QUICK) as member:
                running = asyncio.create_task(member.run(handler))
                await until_async(lambda: len(begun) == 4, "the handlers")
                assert len(member.assignment) == 4, "owned on"
                assert not running.done()
                group.heartbeat_code = REBALANCE
                await until_async(lambda: len(group.requests["JoinGroup"]) > 1, "the second join")
                group.heartbeat_code = ErrorCode.ERROR_CODE_NONE
                await until_async(lambda: len(begun) >= 8, "the handlers again")
                await member.leave()
                await running

    run(scenario())


@pytest.mark.parametrize("fenced", [True, False])
def test_handlers_of_lost_partitions_are_cancelled(fenced: bool) -> None:  # noqa: FBT001 - a table of cases
    """Nothing that they could still do would count; whoever does not look must not act on."""

    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):
            cancelled: list[int] = []
            begun: list[int] = []

            async def handler(partition: Partition) -> None:
                begun.append(partition.number)
                try:
                    await asyncio.Event().wait()  # it never looks
                except asyncio.CancelledError:
                    cancelled.append(partition.number)
                    raise

            async with Member(node.address, instance_id="i", **QUICK) as member:
                running = asyncio.create_task(member.run(handler))
                await until_async(lambda: len(begun) == 4, "the handlers")
                unknown = ErrorCode.ERROR_CODE_UNKNOWN_MEMBER_ID
                fencing = ErrorCode.ERROR_CODE_FENCED_INSTANCE_ID
                group.heartbeat_extras = extras_pb2.ResponseExtras(holder="other")
                group.heartbeat_code = fencing if fenced else unknown
                await until_async(lambda: len(cancelled) == 4, "the cancellation")
                if fenced:
                    with pytest.raises(Fenced):
                        await running
                else:
                    group.heartbeat_code = ErrorCode.ERROR_CODE_NONE
                    await until_async(lambda: len(begun) >= 8, "the handlers again")
                    running.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await running

    run(scenario())


def test_a_handler_that_notices_the_loss_by_check_does_not_end_the_member() -> None:
    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):
            begun: list[int] = []
            ended: list[int] = []

            async def handler(partition: Partition) -> None:
                begun.append(partition.number)
                try:
                    await partition.wait_revoked()
                except asyncio.CancelledError:
                    ended.append(partition.number)
                    partition.check()  # OwnershipLost

            async with Member(node.address, **QUICK) as member:
                running = asyncio.create_task(member.run(handler))
                await until_async(lambda: len(begun) == 4, "the handlers")
                group.heartbeat_code = ErrorCode.ERROR_CODE_UNKNOWN_MEMBER_ID
                await until_async(lambda: len(ended) == 4, "the loss")
                group.heartbeat_code = ErrorCode.ERROR_CODE_NONE
                await until_async(lambda: len(begun) >= 8, "the handlers again")
                await member.leave()
                await running

    run(scenario())


def test_run_that_is_cancelled_cancels_its_handlers_and_waits_for_them() -> None:
    """As a TaskGroup does; and Ctrl-C under asyncio.run is such a cancellation."""

    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):
            begun: list[int] = []
            ended: list[bool] = []

            async def handler(partition: Partition) -> None:
                begun.append(partition.number)
                try:
                    await asyncio.Event().wait()
                finally:
                    await asyncio.sleep(0)
                    ended.append(partition.owned and goodbyes(group) == 0)

            async with Member(node.address, **QUICK) as member:
                running = asyncio.create_task(member.run(handler))
                await until_async(lambda: len(begun) == 4, "the handlers")
                running.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await running
                assert ended == [True] * 4
            assert goodbyes(group) == 1

    run(scenario())


def test_s11_handlers_that_do_not_stop_are_told_of_and_cancelled_when_ownership_ends(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rebalance timeout passes: the group goes on without us, and people read why."""
    monkeypatch.setattr(handlers, "SLOW_S", 0.05)

    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):
            begun: list[int] = []
            cancelled: list[int] = []

            async def handler(partition: Partition) -> None:
                begun.append(partition.number)
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    cancelled.append(partition.number)
                    raise

            settings = QUICK | {"rebalance_timeout_ms": 500}
            async with Member(node.address, **settings) as member:
                running = asyncio.create_task(member.run(handler))
                await until_async(lambda: len(begun) == 4, "the handlers")
                group.heartbeat_code = REBALANCE
                await until_async(lambda: len(cancelled) == 4, "the cancellation")
                group.heartbeat_code = ErrorCode.ERROR_CODE_NONE
                await until_async(lambda: len(begun) >= 8, "the handlers again")
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)

    run(scenario())
    lines = [record.getMessage() for record in said(caplog, logging.WARNING)]
    assert any("handlers of t/0, t/1, t/2, t/3 have not ended" in line for line in lines)
    assert any("letting go has taken 0.4 s" in line for line in lines)


def test_run_takes_one_handler_at_a_time_and_an_async_one() -> None:
    async def scenario() -> None:
        async with fake_cluster() as (_, (node,)), Member(node.address, **QUICK) as member:

            async def handler(partition: Partition) -> None:
                await partition.wait_revoked()

            running = asyncio.create_task(member.run(handler))
            await until_async(lambda: member.assignment, "the assignment")
            with pytest.raises(RuntimeError, match="one handler at a time"):
                await member.run(handler)
            await member.leave()
            await running
        async with fake_cluster() as (_, (node,)):
            member = Member(node.address, **QUICK)
            with pytest.raises(TypeError, match="run takes an async function"):
                async with member:
                    await member.run(lambda _: None)  # type: ignore[arg-type, return-value]  # that is the point
        with pytest.raises(RuntimeError, match="has not been started"):
            await Member("127.0.0.1:1", **QUICK).run(handler)

    run(scenario())


def test_on_revoked_that_is_cancelled_from_inside_does_not_hang_the_member() -> None:
    """`task.cancel(); await task` raises CancelledError in the callback, which told nobody."""

    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):

            async def on_revoked(_: Sequence[Partition]) -> None:
                task = asyncio.create_task(asyncio.Event().wait())
                await asyncio.sleep(0)
                task.cancel()
                await task

            with pytest.raises(RuntimeError, match="on_revoked was cancelled from inside"):
                async with Member(node.address, on_revoked=on_revoked, **QUICK) as member:
                    await until_async(lambda: member.assignment, "the assignment")
            assert goodbyes(group) == 1

    run(scenario())


def test_a_refusal_in_a_task_group_of_the_handler_is_one_all_the_same() -> None:
    """A TaskGroup raises an ExceptionGroup; the partition was lost, and that is all."""

    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):
            begun: list[int] = []
            raised: list[type[Exception]] = []

            async def work(partition: Partition) -> None:
                await partition.wait_revoked()
                partition.check()

            async def handler(partition: Partition) -> None:
                begun.append(partition.number)
                try:
                    async with asyncio.TaskGroup() as tasks:
                        tasks.create_task(work(partition))
                except ExceptionGroup as error:
                    raised.append(type(error.exceptions[0]))
                    raise

            async with Member(node.address, **QUICK) as member:
                running = asyncio.create_task(member.run(handler))
                await until_async(lambda: len(begun) == 4, "the handlers")
                group.heartbeat_code = ErrorCode.ERROR_CODE_UNKNOWN_MEMBER_ID
                await until_async(lambda: len(group.requests["JoinGroup"]) > 1, "the second join")
                group.heartbeat_code = ErrorCode.ERROR_CODE_NONE
                await until_async(lambda: len(begun) >= 8 or running.done(), "the handlers again")
                assert set(raised) == {OwnershipLost}
                await member.leave()
                await running

    run(scenario())


def test_a_handler_that_is_cancelled_from_inside_ends_the_member_loudly() -> None:
    """Else its partition would be owned on, with nobody who works on it."""

    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):

            async def handler(_: Partition) -> None:
                task = asyncio.create_task(asyncio.Event().wait())
                await asyncio.sleep(0)
                task.cancel()
                await task

            async with Member(node.address, **QUICK) as member:
                with pytest.raises(
                    RuntimeError, match=r"handler of t/\d was cancelled from inside"
                ):
                    await member.run(handler)
            assert goodbyes(group) == 1

    run(scenario())


@pytest.mark.parametrize("call", ["leave", "restart", "wait_stopped"])
@pytest.mark.parametrize("where", ["handler", "on_assigned"])
def test_what_would_wait_for_itself_is_refused(call: str, where: str) -> None:
    """The member stops when no code of the program runs any more: so that code cannot wait."""

    async def scenario() -> None:
        async with fake_cluster() as (group, (node,)):

            async def ask(_: object) -> None:
                await getattr(member, call)()

            async def idle(partition: Partition) -> None:
                await partition.wait_revoked()

            told: dict[str, Any] = {"on_assigned": ask} if where == "on_assigned" else {}
            member = Member(node.address, **told, **QUICK)
            async with member:
                with pytest.raises(RuntimeError, match=f"{call} waits until.*wait for itself"):
                    await member.run(ask if where == "handler" else idle)
            assert goodbyes(group) == 1

    run(scenario())
