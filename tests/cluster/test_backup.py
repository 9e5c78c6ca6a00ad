"""Backups of real nodes: taken while they serve, resumed, added to, and verified byte by byte."""

from __future__ import annotations

import json
import shutil
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from cluster.processes import INSECURE, holdfast, in_process, poll, refused, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cluster.processes import RunningCluster

SMALL_SEGMENTS = ("--set", "log.segment_events_max=8")


def create(cluster: RunningCluster, directory: Path, *options: str) -> dict[str, Any]:
    """Back the cluster up; what the command says."""
    done = cluster.ask("backup", "create", "--to", str(directory), "--json", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _sealed(cluster: RunningCluster, name: str) -> bool:
    return len(list(cluster.data(name).glob("segments/*/manifest.json"))) > 1


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningCluster, Path]]:
    """A cluster with history, in segments and not, and a backup of it."""
    folder = tmp_path_factory.mktemp("backup")
    with running(folder / "c", 3, *INSECURE, *SMALL_SEGMENTS) as cluster:
        for number in range(20):
            cluster.create_topic(f"t{number}", 1)
        poll(lambda: all(map(partial(_sealed, cluster), cluster.names)), "segments are sealed")
        create(cluster, folder / "b")
        yield cluster, folder / "b"


def test_a_backup_is_of_a_follower_and_names_position_and_digest(
    taken: tuple[RunningCluster, Path], tmp_path: Path
) -> None:
    """S3: two nodes that have applied the same entries give the same digest and chain."""
    cluster, _ = taken
    indexes = {each.applied_index for each in cluster.settled()}
    leader, follower = cluster.leader(), cluster.follower()

    by_itself = create(cluster, tmp_path / "a")
    of_leader = create(cluster, tmp_path / "l", "--node", leader)
    of_follower = create(cluster, tmp_path / "f", "--node", follower)

    assert by_itself["node"] != leader
    assert (of_leader["node"], of_follower["node"]) == (leader, follower)
    assert {of_leader["index"], of_follower["index"]} == indexes
    assert of_leader["digest"] == of_follower["digest"]
    assert of_leader["chain"] == of_follower["chain"]
    heads = {each.digest.hex() for each in cluster.settled()}
    assert heads == {of_leader["chain"]}


def test_what_is_there_is_not_fetched_again(
    taken: tuple[RunningCluster, Path], tmp_path: Path
) -> None:
    """A second backup in the same directory keeps the segments of the first as they are."""
    cluster, first = taken
    directory = tmp_path / "b"
    shutil.copytree(first, directory)
    kept = {file: file.stat().st_ino for file in directory.glob("segments-*/*/*")}
    for number in range(20, 30):
        cluster.create_topic(f"t{number}", 1)
    cluster.settled()

    told = create(cluster, directory)

    assert kept
    assert {file: file.stat().st_ino for file in kept} == kept
    assert len(told["segments"]) >= len({file.parent for file in kept})
    assert len(list(directory.glob("state-*"))) == 1
    assert holdfast("backup", "verify", str(directory)).returncode == 0


def test_a_good_backup_says_nothing_but_its_answer(
    taken: tuple[RunningCluster, Path], tmp_path: Path
) -> None:
    """The end of a call that came late was a traceback of gRPC on standard error."""
    cluster, _ = taken
    where = "--cluster", str(cluster.directory)

    done = holdfast("backup", "create", "--to", str(tmp_path / "b"), *where)

    assert (done.returncode, done.stderr) == (0, "")


def test_a_broken_transfer_goes_on(taken: tuple[RunningCluster, Path], tmp_path: Path) -> None:
    """What has arrived of a segment is not asked for again, and the whole is verified."""
    cluster, first = taken
    node = json.loads((first / "manifest.json").read_text())["node"]
    directory = tmp_path / "b"
    segment = min((first / "segments-0").iterdir())
    arrived = directory / "incoming" / segment.name
    arrived.mkdir(parents=True)
    whole = min(segment.glob("bucket-*"))
    (arrived / whole.name).write_bytes(whole.read_bytes()[:-5])
    begun = json.dumps({"node": node, "copy_id": "gone"})
    (directory / "incoming" / "copy.json").write_text(begun)
    inode = (arrived / whole.name).stat().st_ino

    told = create(cluster, directory)

    assert told["node"] == node
    assert (directory / "segments-0" / segment.name / whole.name).stat().st_ino == inode


def test_another_clusters_backup_and_a_foreign_directory_are_left_alone(
    taken: tuple[RunningCluster, Path], tmp_path: Path
) -> None:
    cluster, first = taken
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years")
    with running(tmp_path / "other", 1, *INSECURE) as other:
        before = (first / "manifest.json").read_bytes()
        foreign = other.ask("backup", "create", "--to", str(first))
        strange = other.ask("backup", "create", "--to", str(mine))

    assert foreign.returncode == strange.returncode == 1
    assert "never takes the place of another cluster's" in foreign.stderr
    assert (first / "manifest.json").read_bytes() == before
    assert "thesis.txt" in strange.stderr
    assert [file.name for file in mine.iterdir()] == ["thesis.txt"]
    assert cluster.ask("backup", "create", "--to", str(first)).returncode == 0


def test_any_damage_is_found(taken: tuple[RunningCluster, Path], tmp_path: Path) -> None:
    """A flipped byte in each file, a missing file, a manifest cut off: refused with a sentence."""
    _, first = taken
    directory = tmp_path / "b"
    shutil.copytree(first, directory)
    assert in_process("backup", "verify", str(directory)).returncode == 0
    state = next(directory.glob("state-*"))
    segments = sorted(directory.glob("segments-*/*/*"))
    for file in (state, segments[0], segments[-1], directory / "manifest.json"):
        sound = file.read_bytes()
        flipped = bytearray(sound)
        flipped[len(sound) // 2] ^= 0x01
        file.write_bytes(flipped)
        assert file.name in refused("backup", "verify", str(directory), run=in_process)
        file.unlink()
        assert file.name in refused("backup", "verify", str(directory), run=in_process)
        file.write_bytes(sound[: len(sound) // 2])
        assert file.name in refused("backup", "verify", str(directory), run=in_process)
        file.write_bytes(sound)
    assert holdfast("backup", "verify", str(directory)).returncode == 0


def test_inspect_tells_what_the_manifest_says(taken: tuple[RunningCluster, Path]) -> None:
    _, directory = taken
    manifest = json.loads((directory / "manifest.json").read_text())

    told = holdfast("backup", "inspect", str(directory))

    assert told.returncode == 0
    for each in ("cluster_id", "node", "digest", "chain"):
        assert manifest[each] in told.stdout
    assert f"index {manifest['index']}" in told.stdout
