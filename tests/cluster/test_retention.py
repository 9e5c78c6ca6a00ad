"""S24: real nodes cut their history off, and one that was away follows them when it is back."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import grpc
import pytest

from cluster.processes import holdfast, running
from cluster.test_log import CALL_SECONDS, SMALL_SEGMENTS, whole_log
from harness.poll import until
from holdfast.storage.segments.checkpoint import checkpoints_in, read_checkpoint
from holdfast.v1 import extras_pb2 as x
from holdfast.v1 import log_pb2 as lg
from holdfast.v1.log_pb2_grpc import LogServiceStub

if TYPE_CHECKING:
    from pathlib import Path

    from cluster.processes import RunningCluster
    from holdfast.coordinator.model.ids import Position

CHILDREN_S = 120.0
"""What is folded is so at the lowest priority, on a machine that has much to do."""


def digests(cluster: RunningCluster, node: str) -> set[tuple[Position, bytes]]:
    """Place and digest of each checkpoint of a node; one may be removed at this moment."""
    found: set[tuple[Position, bytes]] = set()
    for place, path in checkpoints_in(cluster.data(node) / "segments"):
        with suppress(FileNotFoundError):
            found.add((place, read_checkpoint(path).digest))
    return found


def shared(cluster: RunningCluster) -> set[tuple[Position, bytes]]:
    """The checkpoints that all nodes have."""
    return set.intersection(*(digests(cluster, name) for name in cluster.names))


def test_s24_all_nodes_cut_their_history_off_alike_also_one_that_was_away(tmp_path: Path) -> None:
    with running(tmp_path / "c", 3, *SMALL_SEGMENTS) as cluster:
        for number in range(20):
            cluster.create_topic(f"t{number}", 1)
        cluster.settled()
        away = cluster.follower()
        present = [name for name in cluster.names if name != away]
        cluster.kill(away)
        on = "log.retention_ms=0", "log.retention_min_ms=0", "log.retention_check_interval_ms=200"
        assert cluster.ask("settings", "set", *on).returncode == 0
        until(
            lambda: all(digests(cluster, name) for name in present),
            "both cut their history off",
            within_s=CHILDREN_S,
        )
        assert cluster.ask("settings", "set", "log.retention_ms=-1").returncode == 0
        cluster.bring_back(away)
        cluster.settled()
        until(
            lambda: bool(shared(cluster)) and _alike(cluster),
            "the history begins at the same place on all nodes",
            within_s=CHILDREN_S,
        )
        with pytest.raises(grpc.RpcError) as refused:
            LogServiceStub(cluster.channel(away)).ReadEvents(
                lg.ReadEventsRequest(start=x.Position(index=1)), timeout=CALL_SECONDS
            )
        cluster.kill(*cluster.names)
        folders = [("--node-dir", str(cluster.data(name))) for name in cluster.names]
        verified = holdfast("log", "verify", *(each for pair in folders for each in pair))

    assert refused.value.code() == grpc.StatusCode.OUT_OF_RANGE
    assert "retention has cut off" in (refused.value.details() or "")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert "behind the checkpoint at" in verified.stdout


def _alike(cluster: RunningCluster) -> bool:
    """Compare the histories; while one is being cut off, a reader of it is told to begin anew."""
    try:
        logs = [whole_log(cluster, name) for name in cluster.names]
    except grpc.RpcError as error:
        if error.code() != grpc.StatusCode.OUT_OF_RANGE:
            raise
        return False
    return logs[0] == logs[1] == logs[2]
