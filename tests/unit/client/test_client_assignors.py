"""Assignors that run in members, in both shells, against a real node; only its log is in memory.

What a user's assignor can do to its member and to its group, and what it cannot (T-20, T-21).
"""

from __future__ import annotations

import asyncio
import gc
import logging
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from harness.poll import until
from holdfast.client import ClientAssignor, GroupMember, StickyAssignor, Targets, sync
from holdfast.client.sync.threads import LoopThread
from holdfast.coordinator.model.events import LevelRaised
from unit.client.both_shells import Shell
from unit.client.fake_cluster import said
from unit.server.nodes import served

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

both = pytest.mark.parametrize("shell", list(Shell), ids=lambda shell: shell.value)
QUICK: dict[str, Any] = {"group": "g", "topics": ["t"], "protocol": "consumer"}
PARTITIONS = 6
EVEN, ODD = {0, 2, 4}, {1, 3, 5}
SETTINGS = {
    "group.consumer_min_heartbeat_interval_ms": 50,
    "group.consumer_heartbeat_interval_ms": 50,
}
PATIENCE_MS = 1_500
"""A rebalance timeout after which another member is asked."""
_NODE = LoopThread()


@contextmanager
def node() -> Iterator[str]:
    """A node with a topic, served by a thread of its own: its address."""
    running = served()
    found = _NODE.run(running.__aenter__())
    try:
        found.replica.slip_in("", LevelRaised(2))
        with sync.Admin(found.address) as admin:
            admin.alter_settings(SETTINGS)
            admin.create_topics({"t": PARTITIONS})
        yield found.address
    finally:
        _NODE.run(running.__aexit__(None, None, None))


class Heard(NamedTuple):
    """One call of `on_assignment`."""

    assignment: dict[str, list[int]]
    metadata: bytes | None
    version: int
    thread: str


class Sides(ClientAssignor):
    """Gives even partitions to who says `even`, odd ones to who says `odd`, or to anyone."""

    name = "sides"
    versions = (1, 3)
    version = 2

    def __init__(self, side: str) -> None:
        self.metadata = side.encode()
        self.heard: list[Heard] = []
        self.calls = 0
        self.threads: set[str] = set()

    def assign(
        self, members: Sequence[GroupMember], partition_counts: Mapping[str, int]
    ) -> Targets:
        self.calls += 1
        self.threads.add(threading.current_thread().name)
        shares: dict[str, dict[str, list[int]]] = {}
        for number in range(partition_counts["t"]):
            side = b"odd" if number % 2 else b"even"
            takers = [each for each in members if each.metadata == side] or members
            shares.setdefault(takers[0].member_id, {"t": []})["t"].append(number)
        return Targets(shares, {each.member_id: b"to " + each.metadata for each in members})

    def on_assignment(
        self, assignment: Mapping[str, Sequence[int]], metadata: bytes | None, version: int
    ) -> None:
        given = {topic: list(numbers) for topic, numbers in assignment.items()}
        self.heard.append(Heard(given, metadata, version, threading.current_thread().name))


def numbers(member: Any) -> set[int]:  # noqa: ANN401 - of either shell
    return {partition.number for partition in member.assignment}


def owned_by_all(*members: Any) -> bool:  # noqa: ANN401 - as above
    return set().union(*map(numbers, members)) == set(range(PARTITIONS))


@both
def test_kip848_the_target_is_the_assignors_and_each_member_hears_its_metadata(
    shell: Shell,
) -> None:
    even, odd = Sides("even"), Sides("odd")
    with (
        node() as address,
        shell.member(address, client_assignors=[even], **QUICK) as first,
        shell.member(address, client_assignors=[odd], **QUICK) as second,
    ):
        until(lambda: (numbers(first), numbers(second)) == (EVEN, ODD), "sides")
        until(lambda: bool(even.heard and odd.heard), "both have heard")
        until(lambda: odd.heard[-1].assignment == {"t": [1, 3, 5]}, "with what it owns")
        assert (even.heard[-1].metadata, odd.heard[-1].metadata) == (b"to even", b"to odd")
        assert odd.heard[-1].version == 3, "the newest that all members understand"
        assert {"holdfast-assignor"} >= even.threads | odd.threads, "never in the event loop"
        if shell is Shell.sync:
            assert {each.thread for each in even.heard} == {"holdfast-callbacks"}


@both
def test_other_metadata_is_told_and_moves_partitions(shell: Shell) -> None:
    even, odd = Sides("even"), Sides("odd")
    with (
        node() as address,
        shell.member(address, client_assignors=[even], **QUICK) as first,
        shell.member(address, client_assignors=[odd], **QUICK) as second,
    ):
        until(lambda: (numbers(first), numbers(second)) == (EVEN, ODD), "sides")
        even.metadata, odd.metadata = b"odd", b"even"
        first.update_assignors()
        second.update_assignors()
        until(lambda: (numbers(first), numbers(second)) == (ODD, EVEN), "the sides are changed")


@both
def test_a_new_reason_asks_for_another_target_and_moves_nothing_by_itself(shell: Shell) -> None:
    assignor = Sides("even")
    with node() as address, shell.member(address, client_assignors=[assignor], **QUICK) as member:
        until(lambda: owned_by_all(member), "all of it")
        epoch, calls = member.generation, assignor.calls
        assignor.reason = 7
        member.update_assignors()
        until(lambda: member.generation > epoch, "another target")
        assert assignor.calls == calls + 1
        assert owned_by_all(member)


@both
def test_a_member_without_the_assignor_has_the_service_compute_and_it_hears_so(
    shell: Shell,
) -> None:
    assignor = Sides("even")
    with node() as address, shell.member(address, client_assignors=[assignor], **QUICK) as first:
        until(lambda: owned_by_all(first), "all of it")
        with shell.member(address, **QUICK) as second:
            until(lambda: len(numbers(second)) == PARTITIONS // 2, "the service's uniform shares")
            until(lambda: assignor.heard[-1].metadata is None, "not its target any more")


@both
def test_an_assignor_of_the_classic_protocol_can_do_the_work(shell: Shell) -> None:
    """What members own until now is what a sticky one asks for."""

    class Sticky(ClientAssignor):
        name = "sticky"

        def assign(
            self, members: Sequence[GroupMember], partition_counts: Mapping[str, int]
        ) -> Targets:
            return Targets(StickyAssignor().assign(members, partition_counts))

    with (
        node() as address,
        shell.member(address, client_assignors=[Sticky()], **QUICK) as first,
    ):
        until(lambda: owned_by_all(first), "all of it")
        with shell.member(address, client_assignors=[Sticky()], **QUICK) as second:
            until(lambda: len(numbers(second)) == PARTITIONS // 2, "half of it")
            until(lambda: len(numbers(first)) == PARTITIONS // 2, "the other half")


@both
def test_a_coroutine_is_awaited_in_the_event_loop(shell: Shell) -> None:
    """Of either of the two, in either shell: one that nobody awaits would hear nothing."""

    class Asking(Sides):
        async def assign(  # type: ignore[override]  # Awaitable[Targets], as the interface allows
            self, members: Sequence[GroupMember], partition_counts: Mapping[str, int]
        ) -> Targets:
            await asyncio.sleep(0)
            return Sides.assign(self, members, partition_counts)

        async def on_assignment(  # type: ignore[override]  # as above
            self, assignment: Mapping[str, Sequence[int]], metadata: bytes | None, version: int
        ) -> None:
            await asyncio.sleep(0)
            Sides.on_assignment(self, assignment, metadata, version)

    assignor = Asking("even")
    with (
        node() as address,
        shell.member(address, client_assignors=[assignor], **QUICK) as member,
    ):
        until(lambda: owned_by_all(member), "all of it")
        until(lambda: bool(assignor.heard), "it has heard")
        assert assignor.threads == {assignor.heard[-1].thread}, "that of the loop"


# --- what goes wrong -----------------------------------------------------------------------------


class Bad(Sides):
    """One that does what a test says, until that says that it is well."""

    def __init__(self, how: Any) -> None:  # noqa: ANN401 - gets the members, may give anything
        super().__init__("even")
        self.how = how

    def assign(
        self, members: Sequence[GroupMember], partition_counts: Mapping[str, int]
    ) -> Targets:
        good = super().assign(members, partition_counts)
        if self.how is None:
            return good
        made: Targets = self.how(members)
        return made


def _raises(_: Sequence[GroupMember]) -> Targets:
    raise ZeroDivisionError("no zone")


def _ends_its_thread(_: Sequence[GroupMember]) -> Targets:
    sys.exit(3)


def _stops(_: Sequence[GroupMember]) -> Targets:
    raise StopIteration


def _cancels(_: Sequence[GroupMember]) -> Targets:
    raise asyncio.CancelledError


def _twice(members: Sequence[GroupMember]) -> Targets:
    return Targets({members[0].member_id: {"t": [0, 0]}})


def _to_a_stranger(_: Sequence[GroupMember]) -> Targets:
    return Targets({"a-stranger": {"t": [0]}})


def _unwanted(members: Sequence[GroupMember]) -> Targets:
    return Targets({members[0].member_id: {"not-wanted": [0]}})


def _not_there(members: Sequence[GroupMember]) -> Targets:
    return Targets({members[0].member_id: {"t": [PARTITIONS]}})


def _of_no_version(members: Sequence[GroupMember]) -> Targets:
    return Targets({}, {members[0].member_id: b"x"}, version=9)


BAD = {
    "raises": (_raises, "ZeroDivisionError('no zone')"),
    "ends its thread": (_ends_its_thread, "SystemExit(3)"),
    "stops": (_stops, "StopIteration"),
    "cancels": (_cancels, "CancelledError"),
    "nothing": (lambda _: None, "assign returned None"),
    "a list": (lambda _: Targets([1, 2]), "what it returned is not"),  # type: ignore[arg-type]  # that is it
    "a text": (
        lambda m: Targets({m[0].member_id: {"t": "all"}}),  # type: ignore[dict-item]  # as above
        "what it returned is not",
    ),
    "no number": (lambda m: Targets({m[0].member_id: {"t": [1 << 40]}}), "what it returned is not"),
    "no bytes": (
        lambda m: Targets({}, {m[0].member_id: "x"}),  # type: ignore[dict-item]  # that is it
        "what it returned is not",
    ),
    "no version": (lambda _: Targets({"x": {}}, version="1"), "what it returned is not"),  # type: ignore[arg-type]  # that is it
    "twice": (_twice, "INVALID_REQUEST"),
    "to a stranger": (_to_a_stranger, "a-stranger"),
    "unwanted": (_unwanted, "not-wanted"),
    "not there": (_not_there, "INVALID_REQUEST"),
    "of no version": (_of_no_version, "version 9"),
}


@pytest.mark.parametrize("name", BAD)
def test_t20_a_bad_target_is_told_and_the_member_lives_and_is_asked_again(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    how, words = BAD[name]
    assignor = Bad(how)
    with (
        node() as address,
        Shell.sync.member(address, client_assignors=[assignor], **QUICK) as member,
    ):
        until(lambda: words in caplog.text, f"the log tells it: {words}")
        assert member.health().live
        assert numbers(member) == set()
        assignor.how = None
        until(lambda: owned_by_all(member), "it was asked again", within_s=20)
    (first, *_) = [each for each in said(caplog, logging.ERROR) if words in each.getMessage()]
    assert "is to compute the target of the group, and has none" in first.getMessage()
    assert "Now the service asks another member" in first.getMessage()  # ADR 57


@both
def test_t20_who_hangs_is_relieved_by_another_member_and_hangs_nothing_else(
    shell: Shell, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its heartbeats go on, what it owns it keeps, and it can leave while its thread hangs."""
    monkeypatch.setattr("holdfast.client.aio.computing.SLOW_S", 0.1)
    gone = threading.Event()
    hangs = Bad(lambda _: gone.wait() and None)
    settings = QUICK | {"rebalance_timeout_ms": PATIENCE_MS}
    try:
        with node() as address, ExitStack() as stack:
            first = shell.member(address, client_assignors=[hangs], **settings)
            stack.enter_context(first)
            until(lambda: "has made no target for" in caplog.text, "the log tells that it is slow")
            healthy = Sides("odd")
            second = shell.member(address, client_assignors=[healthy], **settings)
            stack.enter_context(second)
            until(lambda: owned_by_all(first, second), "another computes", within_s=20)
            assert hangs.calls == 1, "one computation at a time"
            assert first.health().live
            assert numbers(first) == EVEN
    finally:
        gone.set()


def test_a_process_whose_assignor_hangs_ends_all_the_same() -> None:
    """Threads of the client are daemons."""
    program = """
import asyncio, sys, threading
from holdfast.client import ClientAssignor, Member
begun = threading.Event()

class Hangs(ClientAssignor):
    name = "hangs"
    def assign(self, members, partition_counts):
        begun.set()
        threading.Event().wait()

async def main():
    options = dict(group="g", topics=["t"], protocol="consumer", client_assignors=[Hangs()])
    async with Member(sys.argv[1], **options):
        await asyncio.to_thread(begun.wait)

asyncio.run(main())
"""
    with node() as address:
        ended = subprocess.run([sys.executable, "-c", program, address], timeout=60, check=False)
    assert ended.returncode == 0


@both
def test_it_is_changed_while_it_computes_and_the_target_is_the_new_ones(shell: Shell) -> None:
    """What the older one has made is of the past, wherever it has got to."""
    begun, goes_on = threading.Event(), threading.Event()

    class Slow(Sides):
        def assign(
            self, members: Sequence[GroupMember], partition_counts: Mapping[str, int]
        ) -> Targets:
            made = super().assign(members, partition_counts)
            begun.set()
            goes_on.wait(20)
            return made

    slow, other = Slow("even"), Sides("odd")
    with node() as address, ExitStack() as stack:
        first = stack.enter_context(shell.member(address, client_assignors=[slow], **QUICK))
        assert begun.wait(20)
        second = stack.enter_context(shell.member(address, client_assignors=[other], **QUICK))
        slow.metadata, other.metadata = b"odd", b"even"
        first.update_assignors()
        second.update_assignors()
        until(lambda: second.generation > 0, "it is in the group")
        goes_on.set()
        until(lambda: (numbers(first), numbers(second)) == (ODD, EVEN), "by the newest metadata")


@both
def test_t11_an_on_assignment_that_raises_ends_the_member(shell: Shell) -> None:
    """It is a callback, and a program that has not heard what it should must not act."""

    class Deaf(Sides):
        def on_assignment(
            self, assignment: Mapping[str, Sequence[int]], metadata: bytes | None, version: int
        ) -> None:
            del assignment, metadata, version
            raise ZeroDivisionError

    with node() as address:
        member = shell.member(address, client_assignors=[Deaf("even")], **QUICK)
        member.start()
        with pytest.raises(ZeroDivisionError):
            member.wait_stopped()
        with pytest.raises(ZeroDivisionError):
            member.restart()


@both
def test_metadata_that_cannot_be_is_refused_where_it_is_told(shell: Shell) -> None:
    assignor = Sides("even")
    with node() as address, shell.member(address, client_assignors=[assignor], **QUICK) as member:
        assignor.reason = 128
        with pytest.raises(ValueError, match="reason of client assignor 'sides' is 0 to 127"):
            member.update_assignors()
        assert member.health().live


@both
def test_members_of_one_process_share_an_assignor_object(shell: Shell) -> None:
    assignor = Sides("even")
    with (
        node() as address,
        shell.members(address, count=2, client_assignors=[assignor], **QUICK) as members,
    ):
        until(lambda: owned_by_all(*members), "all of it")
        until(lambda: {each.metadata for each in assignor.heard} >= {b"to even"}, "it has heard")
    gc.collect()
