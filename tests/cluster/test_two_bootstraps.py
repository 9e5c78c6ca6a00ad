"""S25 f: one id was bootstrapped twice, and a node gets its disk of the first time, in processes.

Neither side hears the other, both say so, and the majority serves on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cluster.processes import INSECURE, RunningCluster, poll, running

if TYPE_CHECKING:
    from pathlib import Path

FOREIGN = "are of two clusters"


def begin_anew(directory: Path, names: list[str], old: Path) -> None:
    """What the operators' page tells: keep the directories, and begin a new, empty cluster."""
    for name in names:
        (directory / name / "data").rename(old / name)
    for left in ("formed", "nodes.json"):
        (directory / left).unlink()


def first_cluster(directory: Path) -> list[str]:
    """A longer log than the second one gets, and a later term."""
    with running(directory, 3, *INSECURE) as cluster:
        for number in range(8):
            cluster.create_topic(f"old-{number}", 1)
        cluster.ask("cluster", "transfer-leadership", "--to", cluster.follower())
        cluster.create_topic("old", 1)
        cluster.settled()
        return cluster.names


def swap(cluster: RunningCluster, name: str, disk: Path, kept: Path) -> None:
    """Give a node another disk, and keep the one that it has."""
    cluster.stop_gracefully(name)
    cluster.data(name).rename(kept)
    disk.rename(cluster.data(name))
    cluster.bring_back(name)


def test_s25f_a_disk_of_an_earlier_bootstrap_is_refused_and_nothing_is_lost(
    tmp_path: Path,
) -> None:
    """It has the longer log and the later term; the right disk is taken back."""
    (tmp_path / "old").mkdir()
    names = first_cluster(tmp_path / "c")
    begin_anew(tmp_path / "c", names, tmp_path / "old")
    with running(tmp_path / "c", 3) as cluster:
        cluster.create_topic("new", 1)
        cluster.settled()
        name = cluster.follower()
        swap(cluster, name, tmp_path / "old" / name, tmp_path / "own")
        poll(lambda: all(FOREIGN in cluster.words(each) for each in names), "all of them say so")
        cluster.create_topic("after", 1)
        topics = cluster.ask("topic", "list").stdout
        swap(cluster, name, tmp_path / "own", tmp_path / "foreign")
        equal = {(seen.applied_index, seen.digest) for seen in cluster.settled()}
        words = "".join(cluster.words(each) for each in names)

    assert "after" in topics
    assert "new" in topics
    assert "old" not in topics
    assert len(equal) == 1
    assert f"node '{name}' and this node" in words
    assert "an older copy" not in words
