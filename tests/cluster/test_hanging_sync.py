"""ADR 18: a follower whose sync hangs for seconds is dropped, dialled again, and costs nobody else.

Before, gRPC's threads answered the leader's pings for it. Every order of what reaches it when it
goes on is gone through on the virtual clock in tests/raft/test_hanging_sync.py.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cluster.load import TOPIC, Place, commit_of
from cluster.processes import INSECURE, PATIENCE_SECONDS, RunningCluster, poll, running
from holdfast.v1.errors_pb2 import ERROR_CODE_NONE
from holdfast.v1.offset_pb2_grpc import OffsetServiceStub

if TYPE_CHECKING:
    from pathlib import Path

HANG_MS = 5_000
"""Longer than the three seconds after which a peer that gives no sign of life is dropped."""


def commit(cluster: RunningCluster, leader: str, offset: int) -> None:
    request = commit_of(Place("g", 0), offset, "")
    stub = OffsetServiceStub(cluster.channel(leader))
    answer = stub.OffsetCommit(request, timeout=PATIENCE_SECONDS)
    assert answer.topics[0].partitions[0].error_code == ERROR_CODE_NONE


def role(cluster: RunningCluster, leader: str, node: str) -> str:
    """A node's part, as this leader sees it; empty if the leader does not answer."""
    seen = cluster.describe(leader)
    return next((n.role for n in seen.nodes if n.name == node), "") if seen else ""


def test_a_follower_whose_sync_hangs_is_dropped_and_costs_no_election(tmp_path: Path) -> None:
    """The leader and its term stay, it answers all the while, and the follower has it all."""
    with running(tmp_path / "c", 3, *INSECURE, "--set", "logger.level=debug") as cluster:
        cluster.create_topic(TOPIC, 1)
        victim, wish = cluster.follower(), tmp_path / "failpoints"
        cluster.stop_gracefully(victim)
        cluster.bring_back(victim, options=("--test-failpoints", str(wish)))
        leader = cluster.leader()
        poll(lambda: role(cluster, leader, victim) == "follower", "it follows")
        before = cluster.settled()

        draft = wish.with_suffix(".new")
        draft.write_text(json.dumps({"sync_delay_ms": HANG_MS}))
        draft.rename(wish)
        commit(cluster, leader, 1)
        dropped = f"the connection to {victim} ended: no sign of life"
        poll(lambda: dropped in cluster.words(leader), "it is dropped")
        wish.unlink()
        commit(cluster, leader, 2)
        after = cluster.settled()

    assert {seen.leader for seen in after} == {leader}
    assert {seen.term for seen in after} == {seen.term for seen in before}
    assert min(seen.applied_index for seen in after) >= before[0].applied_index + 2
    assert len({seen.digest for seen in after}) == 1
