"""`holdfast log seal` on real nodes: what was written a moment ago is sealed on each (S22)."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from cluster.processes import holdfast, in_process, running
from harness.poll import until
from holdfast.coordinator.model.ids import Position
from holdfast.storage.segments.segments import read_manifest, segments_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cluster.processes import RunningCluster

CHILDREN_S = 240.0
"""Segments are written at the lowest priority, on a machine that has much to do."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    """Three nodes with TLS that refuse what no grant allows."""
    with running(tmp_path_factory.mktemp("sealing") / "c", 3) as made:
        yield made


def seal(cluster: RunningCluster, *options: str) -> dict[str, Any]:
    """Ask for a boundary, in a process of its own; wait until each node has sealed."""
    where = options or ("--cluster", str(cluster.directory))
    done = holdfast("log", "seal", "--json", "--timeout", "0", *where)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    until(
        lambda: all(place(told) in ends(cluster, name) for name in cluster.names),
        f"every node has sealed up to {place(told)}",
        within_s=CHILDREN_S,
    )
    return told


def place(told: dict[str, Any]) -> Position:
    return Position(int(told["sealed"]["index"]), int(told["sealed"].get("ordinal", 0)))


def ends(cluster: RunningCluster, name: str) -> list[Position]:
    """Where the segments of a node end."""
    folder = cluster.data(name) / "segments"
    return [Position(*read_manifest(each).last) for each in segments_in(folder)]


def test_s22_what_is_new_can_be_published_and_verified_from_each_node(
    cluster: RunningCluster, tmp_path: Path
) -> None:
    """S22: no node is stopped for it, and nobody waits a day. All have the same segments."""
    cluster.create_topic("a", 1)
    first = seal(cluster)
    cluster.create_topic("b", 1)
    second = seal(cluster)

    assert [first["already"], second["already"]] == [False, False]
    again = cluster.ask("log", "seal")  # waits for what the nodes tell
    assert again.stdout.endswith(f"is sealed on {', '.join(cluster.names)}\n"), again.stderr
    for name in cluster.names:
        assert ends(cluster, name) == [place(first), place(second)]
        made = ("--node-dir", str(cluster.data(name)), "--to", str(tmp_path / name))
        assert in_process("log", "publish", *made).returncode == 0
    copies = [each for name in cluster.names for each in ("--node-dir", str(tmp_path / name))]
    verified = in_process("log", "verify", *copies)
    assert verified.returncode == 0, verified.stdout + verified.stderr


def test_s22_two_at_once_set_one_boundary(cluster: RunningCluster) -> None:
    cluster.create_topic("c", 1)
    with ThreadPoolExecutor(2) as both:
        answers = list(both.map(seal, [cluster, cluster]))

    assert sorted(each["already"] for each in answers) == [False, True]
    assert place(answers[0]) == place(answers[1])
    assert {ends(cluster, name)[-1] for name in cluster.names} == {place(answers[0])}


def test_a_node_that_does_not_lead_sends_the_command_to_the_one_that_does(
    cluster: RunningCluster,
) -> None:
    cluster.create_topic("d", 1)
    at = cluster.node(cluster.follower())["client_address"]
    told = seal(cluster, "--address", at, "--tls", str(cluster.directory / "client"))

    assert told["already"] is False


def test_who_is_no_operator_of_the_cluster_is_refused(cluster: RunningCluster) -> None:
    """The sentence says what is missing; the right of an operator is enough."""
    folder = str(cluster.directory)
    issued = in_process("certs", "issue", "--dir", folder, "client", "archive")
    assert issued.returncode == 0, issued.stderr
    where = ("--address", ",".join(cluster.addresses), "--tls", str(cluster.directory / "archive"))
    before = {name: ends(cluster, name) for name in cluster.names}
    refused = in_process("log", "seal", *where)

    assert refused.returncode == 1
    assert "operator" in refused.stderr
    assert {name: ends(cluster, name) for name in cluster.names} == before

    granted = cluster.ask("acl", "grant", "holdfast://client/archive", "operator", "--on-cluster")
    assert granted.returncode == 0, granted.stderr
    assert seal(cluster, *where)["already"] is False
