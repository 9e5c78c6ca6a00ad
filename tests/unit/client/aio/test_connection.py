"""A connection that members share: what becomes of them and of it at the end."""

from __future__ import annotations

import asyncio

import pytest

from harness.poll import until_async
from holdfast.client import Connection, Member, Unavailable
from unit.client.fake_cluster import fake_cluster

WITHIN_S = 20


def test_a_member_ends_loudly_when_its_connection_is_closed_under_it() -> None:
    """Else it would live on, on channels that nobody closes."""

    async def scenario() -> None:
        async with fake_cluster() as (_, (node,)), asyncio.timeout(WITHIN_S):
            connection = Connection(node.address)
            member = Member(connection, group="g", topics=["t"], heartbeat_interval_ms=20)
            member.start()
            await until_async(lambda: member.assignment, "the assignment")
            await connection.close()
            with pytest.raises(Unavailable, match="connection was closed"):
                await member.wait_stopped()
            assert member.assignment == ()

    asyncio.run(scenario())
