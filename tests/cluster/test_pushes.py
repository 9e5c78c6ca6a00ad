"""Members of the heartbeat protocol are told to beat: no rebalance waits for an interval (KIP-848).

The interval is ten minutes here, so whatever comes about comes by pushes and by what members do of
themselves; it is judged by the number of heartbeats, and not by time.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest

from cluster.processes import INSECURE, PATIENCE_SECONDS, RunningCluster, running
from harness.poll import until_async
from holdfast.client import Admin, Member
from holdfast.v1 import group_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from google.protobuf.message import Message

    from holdfast.client._session.session_io import Failure, Send

TOPIC = "work"
PARTITIONS = 6
INTERVAL_MS = 600_000
SETTINGS = {
    "group.consumer_max_heartbeat_interval_ms": INTERVAL_MS,
    "group.consumer_heartbeat_interval_ms": INTERVAL_MS,
    "group.consumer_max_session_timeout_ms": 4 * INTERVAL_MS,
    "group.consumer_session_timeout_ms": 4 * INTERVAL_MS,
}
GIVES = 2
"""Heartbeats of who gives something up: one that is told so, one that says that it has."""
TAKES = 2
"""Heartbeats of who takes something: one that is given it, one that says that it has it."""


class Counted(Member):
    """A member that counts its heartbeats; those at a node that does not lead are none."""

    beats = 0

    async def _attempt(self, send: Send) -> Message | Failure:
        result = await super()._attempt(send)
        self.beats += isinstance(result, group_pb2.ConsumerGroupHeartbeatResponse)
        return result


def member(cluster: RunningCluster, **options: Any) -> Counted:  # noqa: ANN401 - Member's own
    return Counted(cluster.addresses, group="g", topics=[TOPIC], protocol="consumer", **options)


async def shared(members: Iterable[Counted], partitions: int = PARTITIONS) -> int:
    """Wait until each has its share, and has said so; the heartbeats since the last time."""
    everyone = list(members)
    each = partitions // len(everyone)
    await until_async(
        lambda: all(len(one.assignment) == each and one.health().ready for one in everyone),
        f"{each} partitions for each of {len(everyone)}",
        within_s=PATIENCE_SECONDS,
    )
    beats = sum(one.beats for one in everyone)
    for one in everyone:
        one.beats = 0
    return beats


async def scaling(cluster: RunningCluster) -> None:
    """One more, one less, more partitions; each costs as many heartbeats as there are moves."""
    async with Admin(cluster.addresses) as admin, AsyncExitStack() as stack:
        assert set((await admin.alter_settings(SETTINGS)).values()) == {None}
        await admin.create_topics({TOPIC: PARTITIONS})
        first = await stack.enter_async_context(member(cluster))
        await shared([first])
        second = await stack.enter_async_context(member(cluster))
        assert await shared([first, second]) <= 1 * GIVES + (1 + TAKES)
        async with member(cluster) as third:
            assert await shared([first, second, third]) <= 2 * GIVES + (1 + TAKES)
        assert await shared([first, second]) <= 2 * TAKES
        await admin.create_partitions({TOPIC: PARTITIONS + 2})
        assert await shared([first, second], PARTITIONS + 2) <= 2 * TAKES


@pytest.mark.parametrize("nodes", [1, 3])
def test_kip848_no_rebalance_waits_for_a_heartbeat_interval(tmp_path: Path, nodes: int) -> None:
    with running(tmp_path / "c", nodes, *INSECURE) as cluster:
        cluster.leader()
        asyncio.run(scaling(cluster))
