"""`Partition.revoking` and `wait_revoked` in both shells, and `Member.run` for threads."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any

import pytest

from harness.poll import until
from holdfast.client import OwnershipLost, sync
from holdfast.client._session.lease import Lease
from holdfast.client.sync.threads import UserThread
from holdfast.v1.errors_pb2 import ErrorCode
from unit.client.both_shells import Shell, cluster
from unit.client.run_parts import QUICK, WITHIN_S, goodbyes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unit.client.fake_cluster import FakeGroup

REBALANCE = ErrorCode.ERROR_CODE_REBALANCE_IN_PROGRESS


# --- revoking, wait_revoked ---


def test_s12_the_obvious_program_with_threads_ends_at_each_revoke() -> None:
    """`owned` stays true until the callback has returned: for the work in hand, not for loops."""
    threads: dict[int, threading.Thread] = {}
    seen: list[tuple[bool, bool]] = []

    def work(partition: sync.Partition) -> None:
        while not partition.revoking:
            partition.wait_revoked(5)
        seen.append((partition.owned, partition.revoking))

    def on_assigned(new: Sequence[sync.Partition]) -> None:
        for partition in new:
            threads[partition.number] = threading.Thread(target=work, args=[partition])
            threads[partition.number].start()

    def on_revoked(gone: Sequence[sync.Partition]) -> None:
        for partition in gone:
            threads.pop(partition.number).join(WITHIN_S)

    with cluster() as (group, node):
        with sync.Member(
            node.address, on_assigned=on_assigned, on_revoked=on_revoked, **QUICK
        ) as member:
            until(lambda: len(threads) == 4, "the threads")
            group.heartbeat_code = REBALANCE
            until(lambda: len(group.requests["JoinGroup"]) > 1, "the second join")
            group.heartbeat_code = ErrorCode.ERROR_CODE_NONE
            until(lambda: len(member.assignment) == 4, "the second assignment")
        assert set(seen) == {(True, True)}, "told while still owned, for a last commit"
        assert len(seen) >= 8
        assert threads == {}


@pytest.mark.parametrize("shell", list(Shell), ids=lambda shell: shell.value)
def test_wait_revoked_ends_with_its_time_a_revoke_and_a_loss(shell: Shell) -> None:
    def wait(partition: Any, timeout_ms: int | None = None) -> bool:  # noqa: ANN401 - of either shell
        return bool(shell.wait(partition.wait_revoked(timeout_ms)))

    with cluster() as (group, node), shell.member(node.address, **QUICK) as member:
        first, *_ = [member.next_owned() for _ in range(4)]
        assert not first.revoking
        assert not wait(first, 1)
        group.heartbeat_code = REBALANCE
        assert wait(first)
        assert first.revoking
        assert first.lost_reason is None, "it was let go of as asked"
        group.heartbeat_code = ErrorCode.ERROR_CODE_NONE
        second, *_ = [member.next_owned() for _ in range(4)]
        group.heartbeat_code = ErrorCode.ERROR_CODE_UNKNOWN_MEMBER_ID
        assert wait(second)
        assert second.revoking
        group.heartbeat_code = ErrorCode.ERROR_CODE_NONE
        until(lambda: second.lost_reason is not None, "the reason")


# --- run, threads ---


def test_s12_threads_are_told_and_joined_before_the_group_hears_of_it() -> None:
    steps: list[str] = []
    names: set[str] = set()
    ends = threading.Event()

    with cluster() as (group, node):

        def handler(partition: sync.Partition) -> None:
            names.add(threading.current_thread().name)
            steps.append("begin")
            partition.wait_revoked()
            ends.wait(WITHIN_S)
            partition.check()
            assert goodbyes(group) == 0
            steps.append("end")

        settings = QUICK | {"instance_id": "i-1"}
        with sync.Member(
            node.address, on_revoked=lambda gone: steps.append(f"-{len(gone)}"), **settings
        ) as member:
            until_threads(lambda: steps.count("begin") == 4, member, handler, group, ends)
        assert steps == ["begin"] * 4 + ["end"] * 4 + ["-4"]
        assert names == {f"holdfast t/{number}" for number in range(4)}
        assert goodbyes(group) == 1


def until_threads(
    begun: Any,  # noqa: ANN401 - a condition
    member: sync.Member,
    handler: Any,  # noqa: ANN401 - a handler
    group: FakeGroup,
    ends: threading.Event,
) -> None:
    """Run, and end as a signal would, when all have begun."""

    def stop() -> None:
        until(begun, "the handlers")
        member.begin_restart()
        until(lambda: member.health().phase == "revoking", "the end begins")
        assert goodbyes(group) == 0
        ends.set()

    stopper = threading.Thread(target=stop)
    stopper.start()
    member.run(handler)
    stopper.join(WITHIN_S)


@pytest.mark.parametrize(
    "error",
    [KeyError("no room"), SystemExit(3), StopIteration(), CancelledError()],
    ids=lambda error: type(error).__name__,
)
def test_a_thread_that_raises_ends_the_member_with_its_error_after_leaving(
    error: BaseException,
) -> None:
    def handler(partition: sync.Partition) -> None:
        if partition.number == 1:
            raise error
        partition.wait_revoked()

    expected = KeyError if isinstance(error, KeyError) else RuntimeError
    with cluster() as (group, node):
        with (
            pytest.raises(expected, match=r"no room|SystemExit|StopIteration|CancelledError"),
            sync.Member(node.address, **QUICK) as member,
        ):
            member.run(handler)
        assert goodbyes(group) == 1
    with cluster() as (_, node), sync.Member(node.address, **QUICK) as member:
        until(lambda: member.assignment, "the loop's thread lives on")


@pytest.mark.parametrize("error", [StopIteration(), CancelledError()], ids=repr)
def test_what_asyncio_would_swallow_of_a_callback_in_a_thread_ends_the_member(
    error: Exception,
) -> None:
    """`next(empty)`, or the result of a cancelled future: the thread's error must not get lost."""

    def on_assigned(_: Sequence[sync.Partition]) -> None:
        raise error

    with cluster() as (group, node):
        member = sync.Member(node.address, on_assigned=on_assigned, **QUICK)
        member.start()
        until(lambda: member.stopped, "the end")
        with pytest.raises(RuntimeError, match=type(error).__name__):
            member.wait_stopped()
        assert goodbyes(group) == 1


def test_a_thread_of_a_lost_partition_is_waited_for_before_it_is_worked_on_again() -> None:
    """Nobody can cancel a thread; two of one partition would be two owners in one process."""
    active: dict[int, int] = {}
    most: list[int] = []
    begun: list[int] = []
    may_end = threading.Event()

    def handler(partition: sync.Partition) -> None:
        number = partition.number
        active[number] = active.get(number, 0) + 1
        begun.append(number)
        most.append(active[number])
        partition.wait_revoked()
        may_end.wait(WITHIN_S)
        active[number] -= 1
        partition.check()  # OwnershipLost the first time: no error of the member's

    with cluster() as (group, node), sync.Member(node.address, **QUICK) as member:
        runner = threading.Thread(target=member.run, args=[handler])
        runner.start()
        until(lambda: len(begun) == 4, "the handlers")
        group.heartbeat_code = ErrorCode.ERROR_CODE_UNKNOWN_MEMBER_ID
        until(lambda: len(group.requests["JoinGroup"]) > 1, "the second join")
        group.heartbeat_code = ErrorCode.ERROR_CODE_NONE
        until(lambda: member.health().phase == "stable", "the second assignment")
        assert len(begun) == 4
        may_end.set()
        until(lambda: len(begun) >= 8, "the handlers again")
        member.leave()
        runner.join(WITHIN_S)
        assert set(most) == {1}


def test_ownership_lost_of_a_partition_that_is_owned_is_an_error_like_any_other() -> None:
    def handler(_: sync.Partition) -> None:
        raise OwnershipLost("of something else")

    with (
        cluster() as (_, node),
        pytest.raises(OwnershipLost, match="something else"),
        sync.Member(node.address, **QUICK) as member,
    ):
        member.run(handler)


@pytest.mark.parametrize("call", ["leave", "restart", "wait_stopped"])
@pytest.mark.parametrize("where", ["handler", "on_assigned"])
def test_what_would_wait_for_itself_is_refused(call: str, where: str) -> None:
    """A thread cannot be cancelled: it would wait for ever, and so would all that wait for it."""

    def ask(_: object) -> None:
        getattr(member, call)()

    def idle(partition: sync.Partition) -> None:
        partition.wait_revoked()

    with cluster() as (group, node):
        told: dict[str, Any] = {"on_assigned": ask} if where == "on_assigned" else {}
        member = sync.Member(node.address, **told, **QUICK)
        with (
            pytest.raises(RuntimeError, match=f"{call} waits until.*wait for itself"),
            member,
        ):
            member.run(ask if where == "handler" else idle)
        assert goodbyes(group) == 1


# --- asked from threads of the user ---


def test_s11_a_thread_that_asks_while_the_loop_forgets_gets_an_answer() -> None:
    class Torn(Lease):
        """The loop's thread forgets after the first look."""

        def __getattribute__(self, name: str) -> Any:  # noqa: ANN401 - of any attribute
            value = super().__getattribute__(name)
            if name == "_accepted_ms":
                self._accepted_ms = None
            return value

    lease = Torn(10_000, 60_000)
    lease.confirmed(5)
    assert lease.ends_at_ms == 8_005
    assert lease.ends_at_ms is None


def test_the_assignment_can_be_asked_for_while_the_loop_changes_it() -> None:
    with cluster() as (_, node), sync.Member(node.address, **QUICK) as member:
        until(lambda: len(member.assignment) == 4, "the assignment")
        held = member._member._partitions._held
        last = [*held][-1]

        class Going(sync.Partition):
            """The loop's thread takes another away while this one is looked at."""

            @property
            def owned(self) -> bool:
                held.pop(last, None)
                return True

        one = member.assignment[0]
        held[one.name] = Going(one.topic, one.number, one.grant, one._session)
        assert len(member.assignment) >= 3


def test_callbacks_are_called_also_after_the_end_of_the_block_was_interrupted() -> None:
    """A second Ctrl-C ends the wait, not the member: who still waits for it would for ever."""

    async def scenario() -> None:
        thread = UserThread("callbacks")
        async with asyncio.timeout(WITHIN_S):
            assert await thread.call(lambda: 1) == 1
            thread.close()
            assert await thread.call(lambda: 2) == 2
        thread.close()

    asyncio.run(scenario())
