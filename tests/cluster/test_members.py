"""Members against a real node: to static membership and back without a full stop (KIP-345)."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest

from cluster.processes import INSECURE, PATIENCE_SECONDS, running
from harness.poll import until_async
from holdfast.client import Admin, CooperativeAssignor, Fenced, Member, Members

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

TOPIC = "work"
PARTITIONS = 6
SETTINGS: dict[str, Any] = {
    "group": "g",
    "topics": [TOPIC],
    "session_timeout_ms": 30_000,
    "heartbeat_interval_ms": 200,
    "assignors": [CooperativeAssignor()],
}


async def share_out(members: Iterable[Member]) -> None:
    """Wait until each has its equal share."""
    everyone = list(members)
    each = PARTITIONS // len(everyone)
    await until_async(
        lambda: all(len(member.assignment) == each for member in everyone),
        "equal shares",
        within_s=PATIENCE_SECONDS,
    )


async def bounce_to_static_and_back(address: str) -> list[set[str]]:
    """Two processes, restarted one by one: with instance ids, then without; the ids in between."""
    seen = []
    async with AsyncExitStack() as stack, Admin(address) as admin:
        members = {
            name: await stack.enter_async_context(Member(address, **SETTINGS)) for name in "ab"
        }
        await share_out(members.values())
        for static in (True, False):
            for name in "ab":
                await members[name].leave()
                instance_id = f"i-{name}" if static else None
                again = Member(address, instance_id=instance_id, **SETTINGS)
                members[name] = await stack.enter_async_context(again)
                await share_out(members.values())
            described = (await admin.describe_groups("g"))["g"]
            seen.append({member.group_instance_id for member in described.members})
    return seen


async def twins_and_threads(address: str) -> None:
    """A twin fences; the members of a process are listed, restart in place, and go together."""
    async with Members(address, count=2, instance_id="p", **SETTINGS) as members:
        await share_out(members)
        generation = members[0].generation
    members = Members(address, count=2, instance_id="p", **SETTINGS)
    members.start()
    await share_out(members)
    assert {member.generation for member in members} == {generation}  # nothing moved
    async with Member(address, instance_id="p-thread-1", **SETTINGS) as twin:
        await until_async(lambda: twin.assignment, "the twin's share")
        with pytest.raises(Fenced) as caught:
            await members[0].wait_stopped()
        assert caught.value.holder == twin.member_id
        assert caught.value.age_ms is not None
        assert [health.fenced for health in members.health()] == [caught.value, None]
    async with Admin(address) as admin:
        await admin.remove_members("g", instance_ids=["p-thread-1"])
    await share_out([members[1]])
    with pytest.raises(Fenced):  # the other one has ended well before that is told
        await members.restart()


def test_kip345_members_of_a_real_node(tmp_path: Path) -> None:
    with running(tmp_path / "c", 1, *INSECURE) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        (address,) = cluster.addresses
        assert asyncio.run(bounce_to_static_and_back(address)) == [{"i-a", "i-b"}, {""}]
        asyncio.run(twins_and_threads(address))
