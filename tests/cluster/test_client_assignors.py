"""Members of a real node that compute its targets, and who takes over from the dead (KIP-848).

What may go wrong between a member and its assignor is gone through in memory
(unit/client/test_client_assignors.py); here are processes, and one that is killed as it computes.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from cluster.processes import INSECURE, PATIENCE_SECONDS, RunningCluster, running
from harness.children import environment
from harness.poll import until_async, until_told
from holdfast.client import Admin, ClientAssignor, GroupMember, Member, StickyAssignor, Targets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

TOPIC = "work"
PARTITIONS = 6
SESSION_MS = 3_000
SETTINGS = {
    "group.consumer_min_heartbeat_interval_ms": 100,
    "group.consumer_heartbeat_interval_ms": 100,
    "group.consumer_min_session_timeout_ms": SESSION_MS,
    "group.consumer_session_timeout_ms": SESSION_MS,
}
DYING = f"""
import asyncio, sys, threading
from holdfast.client import ClientAssignor, Member

class Dies(ClientAssignor):
    name = "all-to-one"
    metadata = b"greedy"
    def assign(self, members, partition_counts):
        print("computes", flush=True)
        threading.Event().wait()

async def main():
    options = dict(group="g", topics=[{TOPIC!r}], protocol="consumer", client_assignors=[Dies()])
    async with Member(sys.argv[1], **options) as member:
        await member.wait_stopped()

asyncio.run(main())
"""


class AllToOne(ClientAssignor):
    """Gives everything to the one that says `greedy`, or else to the first; it counts its turns."""

    name = "all-to-one"

    def __init__(self, metadata: bytes = b"") -> None:
        self.metadata = metadata
        self.turns = 0
        self.heard: list[bytes | None] = []

    def assign(
        self, members: Sequence[GroupMember], partition_counts: Mapping[str, int]
    ) -> Targets:
        self.turns += 1
        owner = max(members, key=lambda member: member.metadata == b"greedy")
        everything = {topic: range(count) for topic, count in partition_counts.items()}
        return Targets({owner.member_id: everything}, {owner.member_id: b"all of it"})

    def on_assignment(
        self, assignment: Mapping[str, Sequence[int]], metadata: bytes | None, version: int
    ) -> None:
        del assignment, version
        self.heard.append(metadata)


class Broken(AllToOne):
    """One of a bad release; its process is well otherwise."""

    def assign(
        self, members: Sequence[GroupMember], partition_counts: Mapping[str, int]
    ) -> Targets:
        del members, partition_counts
        self.turns += 1
        raise KeyError("no zone")


class Gated(ClientAssignor):
    """Shares out as the sticky assignor does, once the test lets it."""

    name = "gated"

    def __init__(self) -> None:
        self.began, self.may_go_on = threading.Event(), threading.Event()
        self.may_go_on.set()

    def assign(
        self, members: Sequence[GroupMember], partition_counts: Mapping[str, int]
    ) -> Targets:
        self.began.set()
        assert self.may_go_on.wait(PATIENCE_SECONDS)
        return Targets(StickyAssignor().assign(members, partition_counts))


def member(addresses: str, assignor: ClientAssignor | None) -> Member:
    if assignor is None:
        return Member(addresses, group="g", topics=[TOPIC], protocol="consumer")
    return Member(
        addresses, group="g", topics=[TOPIC], protocol="consumer", client_assignors=[assignor]
    )


@contextmanager
def dying(addresses: str) -> Iterator[subprocess.Popen[str]]:
    """A process of its own, whose assignor says when it begins, and never ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", DYING, addresses],
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


async def shares(shown: Mapping[Member, int], what: str) -> None:
    await until_async(
        lambda: all(len(one.assignment) == count for one, count in shown.items()),
        what,
        within_s=PATIENCE_SECONDS,
    )


async def story(addresses: str) -> None:
    async with Admin(addresses) as admin:
        results = await admin.alter_settings(SETTINGS)
        assert set(results.values()) == {None}
    with dying(addresses) as process:
        assert process.stdout is not None
        line = await asyncio.to_thread(process.stdout.readline)
        assert line == "computes\n", "alone in its group, it is the chosen one"
        async with AsyncExitStack() as stack:
            humble, greedy = AllToOne(), AllToOne(b"greedy")
            first = await stack.enter_async_context(member(addresses, humble))
            await until_async(lambda: first.generation > 0, "it waits for the one that computes")
            assert humble.turns == 0
            process.kill()
            await shares(
                {first: PARTITIONS}, "the dead one's session is over, and another computes"
            )
            assert humble.turns > 0
            assert humble.heard[-1] == b"all of it"

            second = await stack.enter_async_context(member(addresses, greedy))
            await shares({first: 0, second: PARTITIONS}, "as the assignor says")
            assert greedy.heard[-1] == b"all of it"

            third = await stack.enter_async_context(member(addresses, None))
            each = PARTITIONS // 3
            await shares(dict.fromkeys((first, second, third), each), "the service's equal shares")
            await until_async(
                lambda: humble.heard[-1] is greedy.heard[-1] is None, "not their target any more"
            )


async def failover_amid_a_target(cluster: RunningCluster, lost: list[object]) -> None:
    """Kill -9 of the leader after PrepareAssignment, before the target is handed in."""
    addresses = ",".join(cluster.addresses)
    async with Admin(addresses) as admin:
        assert set((await admin.alter_settings(SETTINGS)).values()) == {None}
    gates = [Gated() for _ in range(3)]
    options: dict[str, Any] = {
        "group": "g", "topics": [TOPIC], "protocol": "consumer", "on_lost": lost.extend,
    }  # fmt: skip
    async with AsyncExitStack() as stack:
        members = []
        for gate in gates[:2]:
            made = Member(addresses, client_assignors=[gate], **options)
            members.append(await stack.enter_async_context(made))
        await shares(dict.fromkeys(members, PARTITIONS // 2), "the first target")
        held = {each.number: each.fencing_token for one in members for each in one.assignment}
        for gate in gates:
            gate.began.clear()
            gate.may_go_on.clear()
        third = Member(addresses, client_assignors=[gates[2]], **options)
        members.append(await stack.enter_async_context(third))
        await until_async(
            lambda: any(gate.began.is_set() for gate in gates), "one computes", within_s=60
        )
        leader = await asyncio.to_thread(cluster.leader)
        await asyncio.to_thread(cluster.kill, leader)
        for gate in gates:
            gate.may_go_on.set()
        await shares(dict.fromkeys(members, PARTITIONS // 3), "the target that was under way")
        now = {each.number: each.fencing_token for one in members for each in one.assignment}
        assert now.keys() == held.keys(), "each partition has one owner"
        moved = {each.number for each in third.assignment}
        assert {n: held[n] for n in held if n not in moved} == {
            n: now[n] for n in now if n not in moved
        }, "who stays keeps its token"
        assert all(now[number] > max(held.values()) for number in moved)


def test_kip848_a_failover_amid_a_target_fences_nobody_and_loses_nothing(tmp_path: Path) -> None:
    """S13, S16: the new leader knows who computes; what comes counts, or is asked for anew."""
    lost: list[object] = []
    with running(tmp_path / "c", 3, *INSECURE) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        asyncio.run(failover_amid_a_target(cluster, lost))
    assert lost == []


def test_kip848_members_of_a_real_node_compute_its_targets(tmp_path: Path) -> None:
    with running(tmp_path / "c", 1, *INSECURE) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        asyncio.run(story(",".join(cluster.addresses)))


def history(cluster: RunningCluster) -> str:
    return cluster.ask("log", "tail", "--group", "g").stdout


async def with_a_bad_release(cluster: RunningCluster) -> None:
    """Three processes fail, and the last one that comes does not; nobody's time is ever over.

    A failure counts if it is told before somebody else joins, for that raises the epoch: hence
    the good one comes when the log has one.
    """
    addresses = ",".join(cluster.addresses)
    async with Admin(addresses) as admin:
        assert set((await admin.alter_settings(SETTINGS)).values()) == {None}
    good = AllToOne()
    async with AsyncExitStack() as stack:
        members = [await stack.enter_async_context(member(addresses, Broken())) for _ in range(3)]
        await until_told(
            asks=partial(asyncio.to_thread, lambda: "KeyError('no zone')" in history(cluster)),
            what="the log says why one was relieved",
            within_s=PATIENCE_SECONDS,
        )
        members.append(await stack.enter_async_context(member(addresses, good)))
        await until_async(
            lambda: sum(len(one.assignment) for one in members) == PARTITIONS,
            "each that fails says so, and the good one is asked",
            within_s=PATIENCE_SECONDS,
        )
    assert good.turns > 0


def test_adr58_one_good_process_of_a_bad_release_computes_at_once(tmp_path: Path) -> None:
    """The rebalance timeout is five minutes; and the log says why the others were relieved."""
    with running(tmp_path / "c", 1, *INSECURE) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        asyncio.run(with_a_bad_release(cluster))
        assert "AssignmentRequested" in history(cluster)
