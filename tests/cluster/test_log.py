"""The event log of real nodes: read from any, watched through a crash, verified at rest."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cluster.processes import INSECURE, holdfast, running
from holdfast.v1 import log_pb2 as lg
from holdfast.v1.extras_pb2 import Position
from holdfast.v1.log_pb2_grpc import LogServiceStub

if TYPE_CHECKING:
    from pathlib import Path

    from cluster.processes import RunningCluster

SMALL_SEGMENTS = ("--set", "log.segment_events_max=8")
CALL_SECONDS = 20.0


def whole_log(cluster: RunningCluster, node: str) -> list[bytes]:
    """Every record that a node serves, by small pages."""
    stub, found = LogServiceStub(cluster.channel(node)), list[bytes]()
    page = stub.ReadEvents(lg.ReadEventsRequest(events_max=3), timeout=CALL_SECONDS)
    while not page.end:
        found += [record.SerializeToString(deterministic=True) for record in page.records]
        page = stub.ReadEvents(
            lg.ReadEventsRequest(events_max=3, start=page.next), timeout=CALL_SECONDS
        )
    return found + [record.SerializeToString(deterministic=True) for record in page.records]


def test_every_node_serves_the_same_log_and_a_watch_goes_on_elsewhere(tmp_path: Path) -> None:
    """A watch is resumable; S3: positions are the same everywhere. Sealing happens meanwhile."""
    with running(tmp_path / "c", 3, *INSECURE, *SMALL_SEGMENTS) as cluster:
        leader = cluster.leader()
        watch = LogServiceStub(cluster.channel(leader)).Watch(
            lg.WatchRequest(start=Position(index=1)), timeout=CALL_SECONDS
        )
        for number in range(20):
            cluster.create_topic(f"t{number}", 1)
        seen, start = [], Position()
        for message in watch:
            seen += [record.SerializeToString(deterministic=True) for record in message.records]
            start = message.next
            if len(seen) >= 10:
                break
        cluster.kill(leader)
        other = cluster.leader(other_than=leader)
        rest = LogServiceStub(cluster.channel(other)).ReadEvents(
            lg.ReadEventsRequest(start=start), timeout=CALL_SECONDS
        )
        seen += [record.SerializeToString(deterministic=True) for record in rest.records]
        cluster.bring_back(leader)
        cluster.settled()

        logs = [whole_log(cluster, name) for name in cluster.names]
        assert logs[0] == logs[1] == logs[2]
        assert seen == logs[0][: len(seen)]
        assert len(seen) >= 20
        printed = cluster.ask("log", "tail", "--from", "1", "--json").stdout.splitlines()
        assert [json.loads(line)["position"] for line in printed]
        assert len(printed) == len(logs[0])


def test_stopped_nodes_are_verified_and_exported(tmp_path: Path) -> None:
    """After kill -9 the newest records are in the journal alone (S18); they are not left out."""
    with running(tmp_path / "c", 3, *INSECURE, *SMALL_SEGMENTS) as cluster:
        for number in range(20):
            cluster.create_topic(f"t{number}", 1)
        cluster.settled()
        live = whole_log(cluster, cluster.names[0])
        cluster.create_topic("last", 1)  # what was committed before it is known to be, on disk
        cluster.settled()
        busy = holdfast("log", "export", "--node-dir", str(cluster.data("node-1")), "--out", "x")
        cluster.kill(*cluster.names)
        folders = [cluster.data(name) for name in cluster.names]
        options = [part for folder in folders for part in ("--node-dir", str(folder))]
        verified = holdfast("log", "verify", *options)
        exported = holdfast(
            *("log", "export", "--node-dir", str(folders[0]), "--out", str(folders[0] / "tail"))
        )

    assert busy.returncode == 1
    assert "Stop the node first" in busy.stderr
    assert verified.returncode == 0, verified.stdout + verified.stderr
    counts = [int(line.split()[1]) for line in verified.stdout.splitlines()]
    assert len(counts) == 3
    assert min(counts) >= len(live)
    assert exported.returncode == 0, exported.stderr
    assert list((folders[0] / "tail").glob("*/manifest.json"))
