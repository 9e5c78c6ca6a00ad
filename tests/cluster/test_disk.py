"""Full and damaged disks under real nodes: refused or rebuilt, told in a sentence, nothing lost.

What the journal does at every byte is tested in tests/storage; here whole processes meet it.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import grpc

from cluster.load import TOPIC, Place, commit_of
from cluster.processes import INSECURE, PATIENCE_SECONDS, RunningCluster, poll, refused, running
from cluster.statuses import failed
from holdfast.v1 import group_pb2 as g
from holdfast.v1 import offset_pb2 as o
from holdfast.v1.errors_pb2 import ERROR_CODE_NONE, ERROR_CODE_UNKNOWN_MEMBER_ID
from holdfast.v1.group_pb2_grpc import GroupServiceStub
from holdfast.v1.offset_pb2_grpc import OffsetServiceStub

if TYPE_CHECKING:
    from pathlib import Path

PLACE = Place("kept", 0)
MARK = "these words are looked for in the file of the journal"
BAD = bytes([MARK.encode()[0] ^ 0xFF]) + MARK.encode()[1:]
ROOM_LEFT = 200_000
"""Bytes by which the journal may still grow: some commits fit, and not many."""
MORE_THAN_ANY_DISK = 1 << 62


def commit(cluster: RunningCluster, offset: int, words: str = "", *, at: str = "") -> None:
    """Commit at the leader, or at a node whether it leads or not; acknowledged."""
    request = commit_of(PLACE, offset, "")
    request.topics[0].partitions[0].committed_metadata = words
    stub = OffsetServiceStub(cluster.channel(at or cluster.leader()))
    answer = stub.OffsetCommit(request, timeout=PATIENCE_SECONDS)
    assert answer.topics[0].partitions[0].error_code == ERROR_CODE_NONE


def committed(cluster: RunningCluster) -> int:
    """What the leader says."""
    group = o.OffsetFetchRequestGroup(group_id=PLACE.group)
    stub = OffsetServiceStub(cluster.channel(cluster.leader()))
    answer = stub.OffsetFetch(o.OffsetFetchRequest(groups=[group]), timeout=PATIENCE_SECONDS)
    return int(answer.groups[0].topics[0].partitions[0].committed_offset)


def flip(journal: Path) -> list[Path]:
    """Damage every copy of the marked record in the journal, as a bad sector would.

    It is in a file of the tail, or in the environment, or on the way in both; tells where.
    """
    flipped = [file for file in sorted(journal.iterdir()) if MARK.encode() in file.read_bytes()]
    assert flipped, "the record is in the journal"
    for file in flipped:
        file.write_bytes(file.read_bytes().replace(MARK.encode(), BAD))
    return flipped


def test_s20_below_the_reserve_changes_are_refused_and_all_else_goes_on(tmp_path: Path) -> None:
    """S20: RESOURCE_EXHAUSTED that says what to do; reads, heartbeats and the data are there."""
    with running(tmp_path / "c", 1, *INSECURE) as cluster:
        cluster.create_topic(TOPIC, 1)
        commit(cluster, 1)
        cluster.kill("node-1")
        reserve = f"node.disk_reserve_bytes={MORE_THAN_ANY_DISK}"
        cluster.bring_back("node-1", options=("--set", reserve))
        full = failed(lambda: commit(cluster, 2))
        beat = GroupServiceStub(cluster.channel("node-1")).Heartbeat(
            g.HeartbeatRequest(group_id="g", member_id="m"), timeout=PATIENCE_SECONDS
        )
        during = committed(cluster)
        cluster.stop_gracefully("node-1")
        cluster.bring_back("node-1")
        commit(cluster, 3)
        after = committed(cluster)

    assert full.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "space" in full.details
    assert full.trailing["holdfast-outcome"] == "not-applied"
    assert beat.error_code == ERROR_CODE_UNKNOWN_MEMBER_ID
    assert (during, after) == (1, 3)


def test_a_damaged_journal_is_set_aside_and_rebuilt_from_the_peers(tmp_path: Path) -> None:
    """S19, S21: of three, the damaged node says so, keeps the damage, and has everything again."""
    with running(tmp_path / "c", 3, *INSECURE) as cluster:
        cluster.create_topic(TOPIC, 1)
        commit(cluster, 1, MARK)
        victim = cluster.follower()
        cluster.settled()
        cluster.kill(victim)
        flip(cluster.data(victim) / "raft")
        commit(cluster, 2)
        cluster.bring_back(victim)
        healed = {(seen.applied_index, seen.digest) for seen in cluster.settled()}
        poll(lambda: role(cluster, victim) == "follower", "its vote and its acks count again")
        third = next(n for n in cluster.names if n not in {victim, cluster.leader()})
        cluster.kill(third)
        commit(cluster, 3)  # with the rebuilt node as the majority's other half
        offset = committed(cluster)
        aside = [path.name for path in cluster.data(victim).glob("*.damaged-*")]
        words = cluster.words(victim)

    assert len(healed) == 1
    assert offset == 3
    assert sorted(aside) == ["raft.damaged-1", "state.damaged-1"]
    assert "damaged" in words
    assert "Traceback" not in words


def role(cluster: RunningCluster, name: str) -> str:
    """A node's part, as the leader sees it."""
    seen = cluster.describe(cluster.leader())
    assert seen is not None
    return next(node.role for node in seen.nodes if node.name == name)


def test_a_single_node_with_a_damaged_journal_is_refused_and_loses_nothing(tmp_path: Path) -> None:
    """S19, S21: nobody to rebuild from, so one sentence, and not a byte is touched."""
    with running(tmp_path / "c", 1, *INSECURE) as cluster:
        cluster.create_topic(TOPIC, 1)
        commit(cluster, 1, MARK)
        cluster.kill("node-1")
        flipped = flip(cluster.data("node-1") / "raft")
        damaged = [file.read_bytes() for file in flipped]
        sentence = refused("node", "--config", str(cluster.file("node-1")))
        untouched = [file.read_bytes() for file in flipped] == damaged
        unflip(flipped)
        cluster.bring_back("node-1")
        offset = committed(cluster)

    assert "damaged" in sentence
    assert "backup" in sentence
    assert untouched
    assert offset == 1


def unflip(flipped: list[Path]) -> None:
    """The sectors can be read again."""
    for file in flipped:
        file.write_bytes(file.read_bytes().replace(BAD, MARK.encode()))


def test_s21_a_journal_cut_short_never_kills_the_node(tmp_path: Path) -> None:
    """S21: LMDB maps the file, so reading past its end is SIGBUS; the child dies, not the node."""
    with running(tmp_path / "c", 1, *INSECURE) as cluster:
        cluster.create_topic(TOPIC, 1)
        cluster.kill("node-1")
        journal = cluster.data("node-1") / "raft" / "data.mdb"
        whole = journal.read_bytes()
        journal.write_bytes(whole[: len(whole) // 2])
        sentence = refused("node", "--config", str(cluster.file("node-1")))

    assert "damaged" in sentence


def test_a_disk_that_fills_up_under_the_journal_stops_the_node_and_loses_nothing(
    tmp_path: Path,
) -> None:
    """S5, S20: when even a batch in flight finds no room, nothing of it is acknowledged.

    The process may not grow its files any more (RLIMIT_FSIZE): what ENOSPC is to a real disk.
    """
    with running(tmp_path / "c", 1, *INSECURE) as cluster:
        cluster.create_topic(TOPIC, 1)
        commit(cluster, 1)
        size = (cluster.data("node-1") / "raft" / "data.mdb").stat().st_size
        cluster.limit_file_size("node-1", size + ROOM_LEFT)
        acked: list[int] = []
        status = failed(lambda: commit_without_end(cluster, acked))
        poll(lambda: cluster.describe("node-1") is None, "the node stopped")
        words = cluster.words("node-1")
        cluster.bring_back("node-1")
        offset = committed(cluster)

    assert status.trailing.get("holdfast-outcome") != "not-applied"
    assert offset >= max(acked, default=1)
    assert "could not make a batch durable" in words
    assert "Traceback" not in words


def commit_without_end(cluster: RunningCluster, acked: list[int]) -> None:
    """Commit until it fails."""
    for offset in itertools.count(2):
        commit(cluster, offset, "x" * 3_000, at="node-1")
        acked.append(offset)
