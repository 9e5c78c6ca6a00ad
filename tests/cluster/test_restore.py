"""S13, S19: all disks are lost, and the cluster goes on from a backup, above all earlier tokens."""

from __future__ import annotations

import asyncio
import json
import shutil
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from cluster.processes import (
    INSECURE,
    PATIENCE_SECONDS,
    RunningCluster,
    holdfast,
    poll,
    refused,
    running,
)
from harness.poll import until_async
from holdfast.client import Member
from holdfast.runtime.backup.copy_state import copy_state

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

TOPIC = "work"
PARTITIONS = 4
SETTINGS: dict[str, Any] = {
    "group": "g",
    "topics": [TOPIC],
    "session_timeout_ms": 30_000,
    "heartbeat_interval_ms": 200,
}


class Store:
    """A store as users have it: it knows the newest token of each partition, and refuses others."""

    def __init__(self) -> None:
        self.newest: dict[int, int] = {}

    def write(self, partition: int, token: int) -> bool:
        """Whether the write is accepted."""
        if token < self.newest.get(partition, 0):
            return False
        self.newest[partition] = token
        return True


def tokens(members: Iterable[Member]) -> dict[int, int]:
    """What the members own, with their tokens."""
    return {p.number: p.fencing_token for member in members for p in member.assignment}


async def share_out(members: Iterable[Member], above: int = 0) -> dict[int, int]:
    """Wait until all partitions are owned, each with a token above that; the tokens."""
    everyone = list(members)

    def shared() -> bool:
        held = tokens(everyone)
        return len(held) == PARTITIONS and min(held.values()) > above

    await until_async(shared, "all partitions are owned", within_s=PATIENCE_SECONDS)
    return tokens(everyone)


def take_backup(cluster: RunningCluster, to: Path) -> dict[str, Any]:
    done = cluster.ask("backup", "create", "--to", str(to), "--json")
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def lose_all_disks(cluster: RunningCluster, keep: Path) -> None:
    """Kill all nodes and remove their directories; that of node-3 is kept elsewhere."""
    cluster.kill(*cluster.names)
    shutil.copytree(cluster.data("node-3"), keep)
    for name in cluster.names:
        shutil.rmtree(cluster.data(name))


def restore(cluster: RunningCluster, backup: Path, *names: str) -> dict[str, Any]:
    targets = [f"--to={name}={cluster.data(name)}" for name in names]
    words = (str(backup), "--json", "--recovery-number=1", *targets)
    done = holdfast("backup", "restore", *words)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


async def disaster(cluster: RunningCluster, folder: Path) -> tuple[Store, Mapping[int, int]]:
    """Two members own all, a third comes after the backup; then all disks are lost.

    The members live on through all of it. Returns the store, which knows the tokens that were lost
    with the disks, and the tokens of the end.
    """
    store = Store()
    async with AsyncExitStack() as stack:
        members = [
            await stack.enter_async_context(Member(cluster.addresses, **SETTINGS)) for _ in "ab"
        ]
        before = await share_out(members)
        taken = await asyncio.to_thread(take_backup, cluster, folder / "b")
        members.append(await stack.enter_async_context(Member(cluster.addresses, **SETTINGS)))
        lost = await share_out(members, above=max(before.values()))
        assert all(store.write(*each) for each in lost.items())
        await asyncio.to_thread(lose_all_disks, cluster, folder / "old")
        await asyncio.to_thread(come_back, cluster, folder, taken)
        held = await share_out(members, above=max(lost.values()))
    return store, held


def come_back(cluster: RunningCluster, folder: Path, taken: Mapping[str, Any]) -> None:
    """Restore two nodes; what lies on their disks is what the manifest says."""
    told = restore(cluster, folder / "b", "node-1", "node-2")
    assert told["recovery_number"] == 1
    for name in ("node-1", "node-2"):
        out = folder / f"{name}.state"
        there = copy_state(cluster.data(name) / "state", folder / f"{name}.copy", out)
        assert (there.index, there.digest) == (taken["index"], taken["digest"])
    cluster.bring_back("node-1", "node-2")


def test_s13_after_a_restore_a_store_accepts_the_new_owners_only(tmp_path: Path) -> None:
    """The digest at the backup's position is the backup's; then one event lifts every token."""
    with running(tmp_path / "c", 3, *INSECURE) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        store, held = asyncio.run(disaster(cluster, tmp_path))

        newest = dict(store.newest)
        assert all(held[partition] > newest[partition] for partition in newest)
        assert all(store.write(*each) for each in held.items())
        assert not any(store.write(*each) for each in newest.items())
        kept = json.loads((tmp_path / "b" / "manifest.json").read_text())["index"]
        printed = cluster.ask("log", "tail", "--json", "--from", str(kept + 1)).stdout
        events = [json.loads(line) for line in printed.splitlines()]
        raised = [at for at, each in enumerate(events) if "recovery_number_raised" in str(each)]
        assert len(raised) == 1
        assert not any(each["group_id"] for each in events[: raised[0]])
        an_old_disk_is_refused_and_a_new_one_rebuilds(cluster, tmp_path / "old")


def an_old_disk_is_refused_and_a_new_one_rebuilds(cluster: RunningCluster, old: Path) -> None:
    """S19: a disk from before the restore is no member, with its longer log and higher term."""
    shutil.copytree(old, cluster.data("node-3"))
    cluster.bring_back("node-3")
    poll(lambda: "from before the cluster was restored" in cluster.words("node-3"), "it is told")
    cluster.create_topic("without-it", 1)
    assert "from before the cluster was restored" in cluster.ask("cluster", "status").stdout
    alone = cluster.describe("node-3")
    assert alone is not None
    assert alone.recovery_number == 0
    cluster.stop_gracefully("node-3")
    shutil.rmtree(cluster.data("node-3"))
    cluster.bring_back("node-3", options=("--rebuild",))
    assert {seen.recovery_number for seen in cluster.settled()} == {1}
    poll(lambda: "this node votes again" in cluster.words("node-3"), "it has rebuilt")
    cluster.kill("node-1")
    cluster.create_topic("by-the-rebuilt-one", 1)


def test_what_cannot_be_restored_changes_nothing(tmp_path: Path) -> None:
    """Data is never overwritten, a damaged backup not used, a recovery number not used twice."""
    with running(tmp_path / "c", 1, *INSECURE) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        take_backup(cluster, tmp_path / "b")
    backup, new = tmp_path / "b", tmp_path / "n1"
    data = cluster.directory / "node-1" / "data"
    assert "it holds data" in refused("backup", "restore", str(backup), f"--to=node-1={data}")
    state = next(backup.glob("state-*"))
    sound = state.read_bytes()
    state.write_bytes(sound[:-1])
    restoring = ("backup", "restore", str(backup))
    one = (*restoring, "--recovery-number=1")
    assert "Nothing was restored" in refused(*one, f"--to=n1={new}")
    assert not new.exists()
    state.write_bytes(sound)
    unsaid = refused(*restoring, f"--to=n1={new}")
    assert "give --recovery-number 1. Nothing was restored" in unsaid
    assert "recovery number:  1" in holdfast(*one, f"--to=n1={tmp_path / '1'}").stdout
    seen = f"--above-token={(4 << 48) + 7}"
    done = holdfast(*restoring, seen, f"--to=n1={tmp_path / '5'}")
    assert "recovery number:  5" in done.stdout
    again = f"--to=n1={new}"
    assert "was used before" in refused(*restoring, again, "--recovery-number=5")
    both = holdfast(*restoring, again, "--recovery-number=6", seen)
    assert both.returncode == 2
    assert "Give one of them" in both.stderr
    assert not new.exists()
    read = holdfast("log", "verify", "--json", f"--node-dir={tmp_path / '5'}")
    assert json.loads(read.stdout)["nodes"][0]["recovery_number"] == 5


def test_s13_one_survivor_goes_on_and_lost_disks_that_return_are_refused(tmp_path: Path) -> None:
    """`recover` keeps all that the survivor has, asks before, and raises the recovery number."""
    with running(tmp_path / "c", 3, *INSECURE) as cluster:
        for number in range(5):
            cluster.create_topic(f"t{number}", 1)
        cluster.settled()
        survivor, lost, gone = cluster.names
        recover = ("node", "recover", "--from-survivor", "--config", str(cluster.file(survivor)))
        cluster_id = cluster.content["cluster_id"]
        seed = f"--seed={lost}={cluster.data(lost)}"
        confirmed = ("--yes-i-lost-the-majority", cluster_id)
        assert "it holds data" in refused(*recover, seed, *confirmed)
        cluster.kill(*cluster.names[1:])
        shutil.move(cluster.data(lost), tmp_path / "old")
        assert "uses it" in refused(*recover, seed, *confirmed)
        cluster.kill(survivor)
        assert "2 of 3 nodes have to go on" in refused(*recover, *confirmed)
        assert "nobody confirms it" in refused(*recover, seed)
        assert "not the id" in refused(*recover, seed, "--yes-i-lost-the-majority", "other")
        done = holdfast(*recover, seed, *confirmed)
        assert done.returncode == 0, done.stderr
        assert "recovery number:  1" in done.stdout
        assert "knows recovery number 0, so the cluster goes on with 1" in done.stdout
        cluster.bring_back(survivor, lost)
        poll(lambda: _number(cluster, cluster.leader()) == 1, "the number is raised")
        cluster.create_topic("after", 1)
        topics = cluster.ask("topic", "list").stdout
        assert all(name in topics for name in ("t0", "t4", "after"))
        poll(lambda: {_number(cluster, each) for each in (survivor, lost)} == {1}, "on both")
        cluster.bring_back(gone)
        earlier = "from before the cluster was restored"
        poll(lambda: earlier in cluster.words(gone), "the lost disk is refused")


def _number(cluster: RunningCluster, node: str) -> int:
    """The recovery number that a node has applied; -1 if it does not answer."""
    seen = cluster.describe(node)
    return seen.recovery_number if seen else -1
