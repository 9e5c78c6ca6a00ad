"""A short run of `holdfast chaos`: every kind of fault that is quick, once; nothing is violated.

`./dev chaos --minutes 20` is the long one. Here it is used as the product that it is: on a cluster
that it starts itself, where proxies stand between the nodes, and on one that runs already.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cluster.load import TOPIC, Place, commit_of
from cluster.processes import INSECURE, PATIENCE_SECONDS, running
from harness.children import environment
from holdfast.v1.offset_pb2_grpc import OffsetServiceStub

QUICK = (
    "kill-leader",
    "pause-leader",
    "pause-follower-kill-leader",
    "transfer",
    "seal-and-kill",
    "partition",
    "leader-alone",
    "one-way",
    "bridge",
    "resets",
    "cut-messages",
    "disk-full",
    "flip-bits",
    "client-pause",
    "client-kill",
)
RUN_SECONDS_MAX = 400.0
"""For a machine that is busy with other things; on an idle one it takes a fourth of that."""
ALL_INVARIANTS = {f"I{number}" for number in (*range(1, 13), 17)}


class Done(NamedTuple):
    """A run's exit code, its report, and what it said to people."""

    code: int
    report: dict[str, Any]
    said: str


def chaos(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "holdfast.cli", "chaos", *arguments],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
        check=False,
    )


def judged(*arguments: str) -> Done:
    done = chaos("--json", *arguments)
    assert done.stdout, done.stderr
    return Done(done.returncode, json.loads(done.stdout), done.stderr)


# --- a cluster of its own ---


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """Each quick kind once, in an order that the seed decides."""
    seed = random.randrange(1 << 31)
    out = tmp_path_factory.mktemp("chaos") / "out"
    kinds = ("--kinds", ",".join(QUICK))
    print(f"again with: holdfast chaos --rounds 1 --seed {seed} {' '.join(kinds)}")
    return judged("--rounds", "1", "--seed", str(seed), *kinds, "--out", str(out))


def test_nothing_is_violated(run: Done) -> None:
    """Safety rules S1-S23 under real faults, judged by INV-1 to INV-12 and INV-17."""
    assert run.report["violations"] == []
    assert run.report["wrong"] == [], run.said
    assert run.report["undecided"] == []
    assert run.code == 0


def test_every_kind_struck(run: Done) -> None:
    assert run.report["faults"] == dict.fromkeys(sorted(QUICK), 1)


def test_every_invariant_had_something_to_judge_but_expiry(run: Done) -> None:
    """A check without anything to look at proves nothing; whether somebody expires, is chance."""
    assert set(run.report["checked"]) == ALL_INVARIANTS
    assert set(run.report["unjudged"]) <= {"I12"}


def test_s22_what_was_sealed_was_compared(run: Done) -> None:
    """S22: all nodes have the same segments; a run without any would prove nothing."""
    assert run.report["segments"] >= 3


def test_s22_calls_have_had_the_log_sealed(run: Done) -> None:
    """S22: the leader sets boundaries by itself, too; so nothing else shows that no call failed."""
    assert run.report["boundaries_asked_for"] > 0


def test_failovers_were_measured(run: Done) -> None:
    """From the kill to the first change that was begun after it and accepted."""
    assert run.report["failover_s"]["count"] in {2, 3}
    assert run.report["elections"] >= 4


# --- a cluster that runs already ---


def test_a_running_cluster_is_broken_judged_and_left_as_it_was(tmp_path: Path) -> None:
    """Only by faults that need no proxy; its own groups and topics are gone afterwards."""
    with running(tmp_path / "c", 3) as cluster:
        cluster.create_topic("orders", 3)
        place = ("--cluster", str(cluster.directory), "--yes")
        done = judged(*place, "--rounds", "1", "--kinds", "kill-leader,transfer,partition")
        cluster.settled()
        groups = cluster.ask("group", "list", "--json").stdout
        topics = cluster.ask("topic", "list", "--json").stdout

    assert done.code == 0, done.report
    assert done.report["faults"] == {"kill-leader": 1, "transfer": 1}
    assert done.report["left_out"] == ["partition"]
    assert "proxies" in done.report["missing"]["proxy"]
    assert "chaos-" not in groups
    assert "orders" in topics
    assert "chaos-" not in topics


def test_a_cluster_with_somebodys_groups_is_left_alone(tmp_path: Path) -> None:
    """Unless the operator says that they may suffer."""
    with running(tmp_path / "c", 3, *INSECURE) as cluster:
        cluster.create_topic(TOPIC, 1)
        stub = OffsetServiceStub(cluster.channel(cluster.leader()))
        stub.OffsetCommit(commit_of(Place("payments", 0), 1, ""), timeout=PATIENCE_SECONDS)
        refused = chaos("--cluster", str(cluster.directory), "--yes", "--kinds", "kill-leader")

    assert refused.returncode == 2
    assert "payments" in refused.stderr
    assert "--other-groups" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_without_consent_or_with_one_node_nothing_is_broken(tmp_path: Path) -> None:
    """Of one node, a fault is the end: there is nothing to be found out."""
    with running(tmp_path / "c", 1, *INSECURE) as cluster:
        asked = chaos("--cluster", str(cluster.directory))
        alone = chaos("--cluster", str(cluster.directory), "--yes")

    assert (asked.returncode, alone.returncode) == (2, 2)
    assert "on purpose" in asked.stderr
    assert "three or five" in alone.stderr


def test_a_kind_that_does_not_exist_and_a_cluster_that_does_not_run_are_refused(
    tmp_path: Path,
) -> None:
    unknown = chaos("--kinds", "earthquake")
    nowhere = chaos("--cluster", str(tmp_path), "--yes")

    assert (unknown.returncode, nowhere.returncode) == (2, 2)
    assert "earthquake" in unknown.stderr
    assert "holdfast cluster start" in nowhere.stderr


def test_the_kinds_are_listed_with_what_is_missing_here() -> None:
    listed = chaos("--list")
    names = {line.split()[0] for line in listed.stdout.splitlines() if line}

    assert listed.returncode == 0
    assert names >= {*QUICK, "wall-clock", "sync-error"}
