"""Hostile callers on raw sockets: no crash, no hang, bounded memory, and honest callers are served.

What honest callers notice in milliseconds `./dev bench hostile` measures; here nothing is timed.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cluster.load import TOPIC, Place, commit_of
from cluster.processes import PATIENCE_SECONDS, RunningCluster, running
from harness.children import environment
from harness.hostile import KINDS
from holdfast.v1 import errors_pb2 as e
from holdfast.v1.offset_pb2_grpc import OffsetServiceStub

if TYPE_CHECKING:
    from collections.abc import Iterator

GROWTH_MAX = 128 << 20
"""Bytes that a node may grow by under attack: far above what it does, far below a leak's."""
CHANGES = 200
PORTS = ("client_address", "peer_address")
SLOW_ELECTIONS = ("--set", "raft.election_min_ms=4000", "--set", "raft.election_max_ms=8000")
"""A machine that is busy with other things must not be taken for harm that attackers did."""


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    """A cluster of three with mutual TLS, as it runs in earnest."""
    with running(tmp_path_factory.mktemp("hostile") / "c", 3, *SLOW_ELECTIONS) as cluster:
        cluster.create_topic(TOPIC, 4)
        yield cluster


@contextlib.contextmanager
def attacked(cluster: RunningCluster, address: str) -> Iterator[None]:
    """Keep all kinds of attack up against one port, with a client's certificate and without."""
    shown = [str(part) for part in cluster.content["tls"].values()]
    command = [sys.executable, "-m", "harness.hostile", address, "2", *shown]
    attackers = subprocess.Popen(
        command, cwd=Path(__file__).parents[1], env=environment(), stdout=subprocess.PIPE
    )
    try:
        assert attackers.stdout is not None
        assert attackers.stdout.readline() == b"under attack\n"
        yield
        assert attackers.poll() is None, "the attackers gave up, so nothing was shown"
    finally:
        attackers.kill()
        attackers.communicate()


def memory_of(pid: int) -> int:
    """What a process holds that no file backs, bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("RssAnon:")]
    return int(line.split()[1]) * 1024


@pytest.mark.parametrize("port", PORTS)
def test_hostile_callers_harm_nobody(three: RunningCluster, port: str) -> None:
    """Every honest change is accepted, in the same term, while ten kinds of attack go on."""
    leader = three.leader()
    node = three.node(leader)
    before, memory = three.describe(leader), memory_of(node["pid"])
    stub = OffsetServiceStub(three.channel(leader))
    with attacked(three, node[port]):
        codes = [
            stub.OffsetCommit(commit_of(Place("honest", 0), n, ""), timeout=PATIENCE_SECONDS)
            .topics[0]
            .partitions[0]
            .error_code
            for n in range(CHANGES)
        ]
    after = three.describe(leader)

    assert codes == [e.ERROR_CODE_NONE] * CHANGES
    assert before is not None
    assert after is not None
    assert (after.leader, after.term) == (before.leader, before.term)
    assert memory_of(node["pid"]) - memory < GROWTH_MAX
    assert all("Traceback" not in three.words(name) for name in three.names)


def test_there_are_attackers_of_many_kinds() -> None:
    """A suite that has lost its attackers would pass."""
    assert len(KINDS) >= 10
