"""S21, S13: an older copy of one node's data directory that was put back, in real processes.

It is found out by what the peers know of the node, says so, rebuilds, and votes again.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from cluster.processes import INSECURE, RunningCluster, poll, running

if TYPE_CHECKING:
    from pathlib import Path


def put_back(cluster: RunningCluster, name: str, copy: Path) -> None:
    """What a person does who 'restores' a node: the directory goes, the copy takes its place."""
    data = cluster.data(name)
    shutil.rmtree(data)
    shutil.copytree(copy, data)


def lead(cluster: RunningCluster, name: str) -> None:
    """Make this node the leader, as an operator does.

    It is asked for again until it is so: the node is refused while it is not up to date, and a
    transfer may come to nothing, as when the node that was told to stand is not elected (S10 d).
    """

    def leads() -> bool:
        if cluster.leader() == name:
            return True
        cluster.ask("cluster", "transfer-leadership", "--to", name)
        return False

    poll(leads, f"{name} leads")


def votes_again(cluster: RunningCluster, name: str, since: int) -> None:
    """The node has rebuilt, and with it alone beside the leader changes are made; all are equal."""
    poll(lambda: "this node votes again" in cluster.words(name)[since:], f"{name} has rebuilt")
    assert len({(seen.applied_index, seen.digest) for seen in cluster.settled()}) == 1
    third = next(n for n in cluster.names if n not in {name, cluster.leader()})
    cluster.kill(third)
    cluster.create_topic("by-the-rebuilt-one", 1)


@pytest.mark.parametrize("led", [False, True], ids=["follower", "leader"])
def test_s21_a_copy_of_one_nodes_directory_is_noticed_and_rebuilt(
    tmp_path: Path, *, led: bool
) -> None:
    """Copied while the node was stopped, put back after changes that it acknowledged, or led."""
    with running(tmp_path / "c", 3, *INSECURE) as cluster:
        cluster.create_topic("before", 1)
        name = cluster.leader() if led else cluster.follower()
        cluster.settled()
        cluster.stop_gracefully(name)
        shutil.copytree(cluster.data(name), tmp_path / "copy")
        cluster.bring_back(name)
        if led:
            lead(cluster, name)
        for number in range(5):
            cluster.create_topic(f"after-{number}", 1)
        cluster.settled()
        cluster.stop_gracefully(name)
        put_back(cluster, name, tmp_path / "copy")
        since = len(cluster.words(name))
        cluster.bring_back(name)
        votes_again(cluster, name, since)
        told = cluster.words(name)[since:]
        topics = cluster.ask("topic", "list").stdout

    assert "an older copy of this node's disk" in told
    assert "The node rebuilds from its peers" in told
    assert [f"after-{number}" in topics for number in range(5)] == [True] * 5


def test_s21_a_copy_that_was_put_back_while_all_nodes_were_stopped_is_noticed(
    tmp_path: Path,
) -> None:
    """What the peers' processes remembered outlives them."""
    with running(tmp_path / "c", 3, *INSECURE) as cluster:
        cluster.create_topic("before", 1)
        cluster.settled()
        name = cluster.follower()
        data = cluster.data(name)
    shutil.copytree(data, tmp_path / "copy")
    with running(tmp_path / "c", 3) as cluster:
        for number in range(5):
            cluster.create_topic(f"after-{number}", 1)
        cluster.settled()
    put_back(cluster, name, tmp_path / "copy")
    since = len(cluster.words(name))
    with running(tmp_path / "c", 3) as cluster:
        votes_again(cluster, name, since)
        told = cluster.words(name)[since:]

    assert "an older copy of this node's disk" in told
