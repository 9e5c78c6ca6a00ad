"""What a node tells of its machine: to readers of the cluster, and only if they ask."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from holdfast.coordinator.model.access import DENY
from holdfast.raft.transport.peer_names import node_uri
from holdfast.server.metrics.node_facts import NodeFacts
from holdfast.server.security.certificates import issue, make_authority
from holdfast.v1 import admin_pb2 as a
from unit.server.nodes import served


def test_a_node_tells_its_machine_its_clock_and_its_certificates(tmp_path: Path) -> None:
    tls = issue(make_authority("c"), tmp_path, "a", node_uri("c", "a"), ["127.0.0.1"], days=10)
    facts = NodeFacts(tmp_path, tls)
    for _ in range(10):
        facts.syncs.add(0.06)
    before = time.time_ns() // 1_000_000
    told = asyncio.run(facts.told())

    assert before <= told.wall_time_ms <= time.time_ns() // 1_000_000
    assert 0 < told.resident_bytes < told.memory_bytes
    assert 0 < told.disk_free_bytes <= told.disk_total_bytes
    assert (told.syncs, told.sync_p99_ms) == (10, 50.0)
    ends = {each.key: each.expires_ms for each in told.certificates}
    assert ends.keys() == {"ca", "certificate"}
    assert 9 * 86_400_000 < ends["certificate"] - before <= 10 * 86_400_000


def test_it_is_told_to_readers_of_the_cluster_who_ask_for_it() -> None:
    """Every client asks for the cluster, and most need no look at files."""

    async def story() -> None:
        async with served() as node:
            asked = a.DescribeClusterRequest(facts=True)
            assert (await node.admin.DescribeCluster(asked)).facts.wall_time_ms > 0
            unasked = await node.admin.DescribeCluster(a.DescribeClusterRequest())
            assert not unasked.HasField("facts")
            node.replica.state = node.replica.state._replace(access_mode=DENY)
            refused = await node.admin.DescribeCluster(asked)
            assert not refused.HasField("facts")
            assert refused.node == "node-1"

    asyncio.run(story())
