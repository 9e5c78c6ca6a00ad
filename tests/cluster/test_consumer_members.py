"""Members of the heartbeat protocol on three real nodes: bounces, a failover, a death (KIP-848).

What members decide is gone through in memory (unit/client/_session/consumer); here it meets
processes, sockets and disks.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from cluster.processes import INSECURE, PATIENCE_SECONDS, RunningCluster, running
from harness.poll import until_async
from holdfast.client import Admin, HoldfastError, Member

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

TOPIC = "work"
PARTITIONS = 6
SESSION_MS = 3_000
SETTINGS = {
    "group.consumer_min_heartbeat_interval_ms": 100,
    "group.consumer_heartbeat_interval_ms": 100,
    "group.consumer_min_session_timeout_ms": SESSION_MS,
}


def member(cluster: RunningCluster, group: str, **options: Any) -> Member:  # noqa: ANN401 - Member's own
    return Member(cluster.addresses, group=group, topics=[TOPIC], protocol="consumer", **options)


def tokens(members: Iterable[Member]) -> dict[int, int]:
    """Who owns what does not matter; under which token it is owned does."""
    return {each.number: each.fencing_token for one in members for each in one.assignment}


async def share_out(members: Iterable[Member]) -> None:
    """Wait until each has its equal share, and has acknowledged it."""
    everyone = list(members)
    each = PARTITIONS // len(everyone)
    await until_async(
        lambda: all(len(one.assignment) == each and one.health().ready for one in everyone),
        "equal shares",
        within_s=PATIENCE_SECONDS,
    )


async def bounce(cluster: RunningCluster) -> None:
    """S12: static members that are restarted one by one move nothing, and keep every token."""
    async with AsyncExitStack() as stack:
        members = {}
        for name in "abc":
            made = member(cluster, "bounce", instance_id=f"i-{name}")
            members[name] = await stack.enter_async_context(made)
        await share_out(members.values())
        before, epochs = tokens(members.values()), {one.generation for one in members.values()}
        for name in "abc":
            had = {each.name for each in members[name].assignment}
            await members[name].restart()
            again = member(cluster, "bounce", instance_id=f"i-{name}")
            members[name] = await stack.enter_async_context(again)
            await share_out(members.values())
            assert {each.name for each in members[name].assignment} == had
        assert tokens(members.values()) == before
        assert {one.generation for one in members.values()} == epochs


async def failover(cluster: RunningCluster) -> None:
    """Kill -9 of the leader under members: nothing moves, and the group goes on at its heir."""
    gone: list[int] = []
    async with AsyncExitStack() as stack:
        members = []
        for instance_id in ("i-1", None):
            made = member(cluster, "failover", instance_id=instance_id, on_lost=gone.extend)
            members.append(await stack.enter_async_context(made))
        await share_out(members)
        before = tokens(members)
        dead = await asyncio.to_thread(cluster.leader)
        await asyncio.to_thread(cluster.kill, dead)
        await asyncio.to_thread(cluster.leader, other_than=dead)
        for one in members:
            await one.commit({each.name: 7 for each in one.assignment})
        assert tokens(members) == before
        third = await stack.enter_async_context(member(cluster, "failover"))
        await share_out([*members, third])
        kept = tokens(members)
        assert kept.items() <= before.items()
        assert all(token > max(before.values()) for token in tokens([third]).values())
        assert gone == []
        await asyncio.to_thread(cluster.bring_back, dead)


async def death(cluster: RunningCluster) -> None:
    """K-N11 bettered: the successor of a process that died without a word waits for its place."""
    async with Admin(cluster.addresses) as admin:
        await admin.alter_settings({"group.consumer_session_timeout_ms": SESSION_MS}, group="death")
    dying = member(cluster, "death", instance_id="i-1")
    dying.start()
    await share_out([dying])
    before = tokens([dying])
    dying._session.abort(HoldfastError("it died, as was wished"))
    async with member(cluster, "death", instance_id="i-1") as successor:
        await share_out([successor])
        after = tokens([successor])
    assert after.keys() == before.keys()
    assert min(after.values()) > max(before.values()), "S13: a new owner, a higher token"


async def late_targets(cluster: RunningCluster) -> None:
    """K-M20: a child of the leader computes each target, and the next leader starts its own."""
    async with Admin(cluster.addresses) as admin:
        await admin.alter_settings({"group.consumer_inline_work": 0}, group="late")
    async with AsyncExitStack() as stack:
        members = [await stack.enter_async_context(member(cluster, "late")) for _ in range(2)]
        await share_out(members)
        dead = await asyncio.to_thread(cluster.leader)
        third = await stack.enter_async_context(member(cluster, "late"))
        await asyncio.to_thread(cluster.kill, dead)
        await asyncio.to_thread(cluster.leader, other_than=dead)
        await share_out([*members, third])
        await asyncio.to_thread(cluster.bring_back, dead)


def test_kip848_members_of_real_nodes(tmp_path: Path) -> None:
    with running(tmp_path / "c", 3, *INSECURE) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)

        async def stories() -> None:
            async with Admin(cluster.addresses) as admin:
                results = await admin.alter_settings(SETTINGS)
                assert set(results.values()) == {None}
            for story in (bounce, failover, late_targets, death):
                await story(cluster)

        asyncio.run(stories())
