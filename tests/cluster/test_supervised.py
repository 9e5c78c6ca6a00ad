"""A node under systemd: what it tells its supervisor, how it ends, and a flag left in its unit."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import socket
from typing import TYPE_CHECKING

from cluster.load import TOPIC, Place, commit_of
from cluster.processes import INSECURE, PATIENCE_SECONDS, poll, running
from holdfast.cli.ending import STOPPED
from holdfast.v1.errors_pb2 import ERROR_CODE_NONE
from holdfast.v1.offset_pb2_grpc import OffsetServiceStub

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from cluster.processes import RunningCluster


def test_a_node_tells_its_supervisor_that_it_serves_lives_and_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """sd_notify(3): READY=1 when it serves, signs of life that both its threads give, a stop."""
    address = str(tmp_path / "n")
    told: list[str] = []
    with (
        running(tmp_path / "c", 1, *INSECURE) as cluster,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor,
    ):
        supervisor.bind(address)
        supervisor.settimeout(0)

        def heard(message: str, times: int = 1) -> bool:
            with contextlib.suppress(BlockingIOError):
                while True:
                    told.append(supervisor.recv(4096).decode())
            return sum(bool(re.fullmatch(message, each)) for each in told) >= times

        cluster.stop_gracefully("node-1")
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        monkeypatch.setenv("WATCHDOG_USEC", "300000")
        cluster.bring_back("node-1")
        poll(lambda: heard("READY=1"), "it serves")
        poll(lambda: heard("WATCHDOG=1", times=3), "it lives")
        poll(lambda: heard(r"STATUS=leads in term \d+"), "it leads")
        cluster.stop_gracefully("node-1")
        assert heard("STOPPING=1")


def test_a_node_whose_disk_fails_ends_with_the_code_that_no_unit_starts_again(
    tmp_path: Path,
) -> None:
    """`RestartPreventExitStatus=` in deploy/systemd names it: a person must look first."""
    with running(tmp_path / "c", 3, *INSECURE) as cluster:
        cluster.create_topic(TOPIC, 1)
        victim, wish = cluster.follower(), tmp_path / "failpoints"
        cluster.stop_gracefully(victim)
        (process,) = cluster.bring_back(victim, options=("--test-failpoints", str(wish)))
        draft = wish.with_suffix(".new")
        draft.write_text(json.dumps({"sync_fails": True}))
        draft.rename(wish)
        commit(cluster, 1)
        code = process.wait(PATIENCE_SECONDS)

    assert code == STOPPED


def test_s19_a_bootstrap_flag_left_in_a_unit_begins_no_second_cluster(tmp_path: Path) -> None:
    """A disk is swapped under a unit that says --bootstrap: the node rebuilds from its peers."""
    with running(tmp_path / "c", 3, *INSECURE) as cluster:
        cluster.create_topic(TOPIC, 1)
        commit(cluster, 1)
        victim = cluster.follower()
        cluster.kill(victim)
        shutil.rmtree(cluster.data(victim))
        cluster.bring_back(victim, options=("--bootstrap",))
        commit(cluster, 2)
        seen = cluster.settled()

    assert len({each.digest for each in seen}) == 1
    assert {each.cluster_id for each in seen} == {seen[0].cluster_id}
    assert min(each.applied_index for each in seen) >= 3


def commit(cluster: RunningCluster, offset: int) -> None:
    stub = OffsetServiceStub(cluster.channel(cluster.leader()))
    answer = stub.OffsetCommit(commit_of(Place("g", 0), offset, ""), timeout=PATIENCE_SECONDS)
    assert answer.topics[0].partitions[0].error_code == ERROR_CODE_NONE
