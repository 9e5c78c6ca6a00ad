"""`Partition.revoking` and `wait_revoked` in both shells, and `Member.run` for threads."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from harness.poll import until
from holdfast.client import OwnershipLost, sync
from holdfast.v1.errors_pb2 import ErrorCode
from unit.client.both_shells import Shell, cluster

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unit.client.fake_cluster import FakeGroup

WITHIN_S = 20
QUICK: dict[str, Any] = {
    "group": "g",
    "topics": ["t"],
    "session_timeout_ms": 6_000,
    "heartbeat_interval_ms": 20,
}
REBALANCE = ErrorCode.ERROR_CODE_REBALANCE_IN_PROGRESS


def goodbyes(group: FakeGroup) -> int:
    releases = [one for one in group.requests["Heartbeat"] if one.holdfast.release]
    return len(releases) + len(group.requests["LeaveGroup"])


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


@pytest.mark.parametrize("error", [KeyError("no room"), SystemExit(3)])
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
            pytest.raises(expected, match=r"no room|SystemExit"),
            sync.Member(node.address, **QUICK) as member,
        ):
            member.run(handler)
        assert goodbyes(group) == 1
    with cluster() as (_, node), sync.Member(node.address, **QUICK) as member:
        until(lambda: member.assignment, "the loop's thread lives on")


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
