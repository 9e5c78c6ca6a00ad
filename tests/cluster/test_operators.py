"""What an operator does to a real cluster with the command: explain, remove, set offsets, stop.

Members are processes of their own, so that dead ones are dead as in life: killed, and silent.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cluster.processes import INSECURE, PATIENCE_SECONDS, poll, running
from harness.children import environment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cluster.processes import RunningCluster

MEMBER = """
import asyncio, sys
from holdfast.client import Member

async def main(address, name):
    member = Member(
        address, group="g", topics=["t"], instance_id=name,
        session_timeout_ms=600_000, heartbeat_interval_ms=200,
    )
    async with member:
        async for _ in member.owned():
            pass

asyncio.run(main(*sys.argv[1:]))
"""
CLOSES = MEMBER.replace("pass", "break")
"""Takes what it is given, and leaves the block: a restart that is announced (S12)."""

NAMES = ("w-0", "w-1", "w-2", "w-3")


@contextmanager
def workers(cluster: RunningCluster) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """A process a member; those that still run at the end are killed."""
    started = {
        name: subprocess.Popen(
            [sys.executable, "-c", MEMBER, cluster.addresses[0], name], env=environment()
        )
        for name in NAMES
    }
    try:
        yield started
    finally:
        for process in started.values():
            process.kill()
            process.wait()


def described(cluster: RunningCluster) -> dict[str, Any]:
    answer = cluster.ask("group", "describe", "g", "--rebalances", "10", "--json")
    found: dict[str, Any] = json.loads(answer.stdout)["groups"][0]
    return found


def settled(cluster: RunningCluster, members: int) -> dict[str, Any]:
    """The group once it is stable with so many members."""
    seen: dict[str, Any] = {}

    def is_settled() -> bool:
        seen.update(described(cluster))
        return seen["group_state"] == "Stable" and len(seen["members"]) == members

    poll(is_settled, f"a stable group of {members}")
    return seen


def rebalances(cluster: RunningCluster) -> int:
    """How many join phases the log has of the group."""
    log = cluster.ask("log", "tail", "--group", "g", "--json").stdout.splitlines()
    return sum("rebalance_started" in json.loads(line)["event"] for line in log)


def test_two_dead_static_members_are_removed_by_one_rebalance(tmp_path: Path) -> None:
    """KIP-345: one command, one rebalance, and the cluster says afterwards what it was."""
    with running(tmp_path / "c", 3, *INSECURE) as cluster:
        cluster.create_topic("t", 8)
        with workers(cluster) as processes:
            before = settled(cluster, len(NAMES))
            for name in ("w-2", "w-3"):
                processes[name].kill()
                processes[name].wait()
            count = rebalances(cluster)
            named = ("--instance", "w-2", "--instance", "w-3")
            removed = cluster.ask("group", "remove-members", "g", *named, "--reason", "disk lost")
            after = settled(cluster, 2)
            explained = cluster.ask("group", "explain", "g", "--last", "1").stdout

            assert removed.returncode == 0, removed.stderr
            assert removed.stdout == "removed 2 members of g: w-2, w-3\n"
            assert rebalances(cluster) == count + 1
        old, new = before["holdfast"]["generation_id"], after["holdfast"]["generation_id"]

        assert new == old + 1
        assert f"generation {old} -> {new}" in explained
        assert "w-2, w-3 removed by operator anonymous (rule G23): disk lost" in explained
        assert "removed w-2, w-3" in explained
        last = after["holdfast"]["rebalances"][0]
        held = {
            (name, part["topic"], number)
            for member in before["members"]
            if (name := member["group_instance_id"]) in {"w-2", "w-3"}
            for part in member["holdfast"]["assigned_partitions"]
            for number in part["partitions"]
        }
        moved = {(m["before"], m["topic"], m["partition"]) for m in last["moves"]}
        assert last["moved"] == len(held) == 4
        assert moved == held, "sticky members keep what they had; only the dead ones' shares move"


def test_static_members_that_have_closed_are_removed_without_their_names(tmp_path: Path) -> None:
    """S12, K-G24: to restart announced and to be retired after all is an ordinary day."""
    with running(tmp_path / "c", 1, *INSECURE) as cluster:
        cluster.create_topic("t", 1)
        for whom in (("--instance-prefix", "w-"), ("--all",)):
            command = [sys.executable, "-c", CLOSES, cluster.addresses[0], "w-0"]
            subprocess.run(command, env=environment(), check=True, timeout=PATIENCE_SECONDS)
            (member,) = described(cluster)["members"]
            removed = cluster.ask("group", "remove-members", "g", *whom)

            assert member["holdfast"]["released"], "else the test shows nothing"
            assert removed.returncode == 0, removed.stderr
            assert removed.stdout == "removed 1 member of g: w-0\n"


def test_offsets_by_the_command(tmp_path: Path) -> None:
    """Set with a dry run first, listed, reset, deleted; refused parts say so with exit code 1."""
    with running(tmp_path / "c", 1, *INSECURE) as cluster:
        cluster.create_topic("t", 2)
        dry = cluster.ask("offsets", "commit", "tool", "t:0=5", "--dry-run")
        nothing = cluster.ask("offsets", "list", "tool", "--json")
        done = cluster.ask("offsets", "commit", "tool", "t:0=5", "t:1=17", "--metadata", "hello")
        refused = cluster.ask("offsets", "commit", "tool", "t:0=6", "t:9=1", "--dry-run")
        partly = cluster.ask("offsets", "commit", "tool", "t:0=6", "t:9=1")
        slip = cluster.ask("offsets", "delete", "tool", "t:0", "typo")
        cluster.ask("offsets", "reset", "tool", "--topic", "t:1", "--shift-by", "-20")
        listed = json.loads(cluster.ask("offsets", "list", "tool", "--json").stdout)
        deleted = cluster.ask("offsets", "delete", "tool", "t:0")
        left = cluster.ask("offsets", "list", "tool").stdout
        wrong = cluster.ask("offsets", "commit", "tool", "t=5")
        typo = cluster.ask("offsets", "list", "tool", "--topic", "typo")
        some = cluster.ask("offsets", "list", "tool", "--topic", "t", "--topic", "t:9")
        program = cluster.ask("offsets", "list", "tool", "--topic", "typo", "--json")
        cluster.ask("offsets", "delete", "tool", "t")
        none = cluster.ask("offsets", "list", "tool")

    assert "nothing was changed" in dry.stdout
    assert json.loads(nothing.stdout)["groups"][0]["topics"] == []
    assert (done.returncode, done.stdout) == (0, "committed 2 offsets\n")
    assert (partly.returncode, partly.stdout) == (1, "committed 1 offset\n")
    assert "t:9: UNKNOWN_TOPIC_OR_PARTITION" in partly.stderr
    assert (refused.returncode, refused.stderr) == (1, partly.stderr), "a dry run tells the truth"
    assert slip.returncode == 1
    assert "no committed offset of typo, so nothing was done" in slip.stderr
    parts = listed["groups"][0]["topics"][0]["partitions"]
    assert [part["committed_offset"] for part in parts] == [6, 0], "a shift stops at 0"
    assert deleted.returncode == 0
    assert [line.split()[:3] for line in left.splitlines()[1:]] == [["t", "1", "0"]]
    assert wrong.returncode == 2
    assert (typo.returncode, typo.stdout) == (1, ""), "no table of nothing"
    assert "group tool has no committed offset of typo" in typo.stderr
    assert [line.split()[:3] for line in some.stdout.splitlines()[1:]] == [["t", "1", "0"]]
    assert (some.returncode, "no committed offset of t:9" in some.stderr) == (1, True)
    answered = json.loads(program.stdout)["groups"][0]
    assert (program.returncode, answered["topics"][0]["partitions"]) == (0, [])
    assert (none.returncode, none.stdout) == (0, "group tool has no committed offset\n")


def test_a_stop_that_was_asked_for_is_no_failure_even_if_a_node_died(tmp_path: Path) -> None:
    """The death was reported when it happened; the command did what it was told."""
    with running(tmp_path / "c", 3, *INSECURE) as cluster:
        victim = cluster.leader()
        cluster.kill(victim)
        out = tmp_path / "c.out"
        poll(lambda: f"{victim} died" in out.read_text(), "the report")
        cluster.process.send_signal(signal.SIGINT)

        assert cluster.process.wait(PATIENCE_SECONDS) == 0


def test_a_name_that_is_not_there_is_told(tmp_path: Path) -> None:
    """Kafka answers quietly (K-G1, K-J16); an operator who mistyped a name must hear of it."""
    with running(tmp_path / "c", 1, *INSECURE) as cluster:
        asked = {
            command: cluster.ask(*command.split())
            for command in (
                "group remove-members nope --all",
                "group remove-members nope --instance a",
                "offsets list nope",
                "offsets reset nope --to-offset 1",
                "log tail --group nope",
                "group describe nope",
            )
        }
        early = cluster.ask("settings", "set", "--group", "nope", "group.max_size=5")
        described = cluster.ask("group", "remove-members", "nope", "--all", "--json")
        ahead = cluster.ask("log", "tail", "--from", "99999")

    for command, done in asked.items():
        assert done.returncode == 1, command
        assert done.stdout == "", command
        assert "there is no group 'nope'" in done.stderr, command
        assert done.stderr.count("nope") == 1, command
    assert early.returncode == 0, "settings may come before their group"
    assert "there is no group 'nope' yet" in early.stderr
    assert "there is no group 'nope'" in json.loads(described.stdout)["error"]
    assert ahead.returncode == 1
    assert "the log ends at" in ahead.stderr


def test_what_became_of_each_topic_is_told(tmp_path: Path) -> None:
    """Each has its own result, for people and for programs."""
    with running(tmp_path / "c", 1, *INSECURE) as cluster:
        made = cluster.ask("topic", "create", "t", "--partitions", "2", "--json")
        grown = cluster.ask("topic", "grow", "t", "--partitions", "3", "--json")
        plan = cluster.ask("offsets", "commit", "g", "t:0=5", "t:9=1", "--dry-run", "--json")
        bounds = cluster.ask("settings", "list", "group.max_size").stdout
        deleted = cluster.ask("topic", "delete", "t", "nope")

    assert json.loads(made.stdout)["topics"][0]["name"] == "t"
    assert json.loads(grown.stdout)["results"][0]["error_code"] == "NONE"
    assert json.loads(plan.stdout) == {
        "dry_run": True,
        "offsets": [{"topic": "t", "partition": 0, "offset": None, "new_offset": 5}],
        "unknown": [{"topic": "t", "partition": 9}],
    }
    assert "1 to 1000000" in bounds
    assert (deleted.returncode, deleted.stdout) == (1, "deleted t\n")
    assert "'nope'" in deleted.stderr


def test_a_dead_node_keeps_its_name(tmp_path: Path) -> None:
    """cluster.json knows who does not answer."""
    with running(tmp_path / "c", 3, *INSECURE) as cluster:
        victim = cluster.follower()
        cluster.kill(victim)
        told = cluster.ask("cluster", "status").stdout

    head, *lines = (line.split() for line in told.splitlines())
    seen = [dict(zip(head, line, strict=False)) for line in lines if line[:1] == [victim]]
    assert [(each["NODE"], each["ROLE"]) for each in seen] == [(victim, "silent")]
