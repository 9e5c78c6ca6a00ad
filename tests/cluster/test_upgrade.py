"""A newer version joins a running cluster, and each node can go back until the upgrade is ended.

This version is the older one; the newer one is a test build (`harness.next_version`) with a new
event, a new field of the state and a new message between nodes.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from cluster.load import PARTITIONS, TOPIC, Load
from cluster.processes import INSECURE, RunningCluster, poll, running
from harness.next_version import build
from holdfast.coordinator.model.levels import LEVEL_MAX
from upgrades.judge import problems
from upgrades.plan import Kind, plan
from upgrades.rolling import COMMITS, REST_S, rolled

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

NAMES = ("node-1", "node-2", "node-3")
SEED = 231
"""Of short rounds: one node goes up and back, then two, then all to the end of the upgrade."""


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The environment of a node of the next version."""
    return build(tmp_path_factory.mktemp("next"))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RunningCluster]:
    with running(tmp_path / "c", 3, *INSECURE) as started:
        started.create_topic(TOPIC, PARTITIONS)
        yield started


def replace(
    cluster: RunningCluster, name: str, version: Mapping[str, str] | None, load: Load
) -> None:
    """Stop a node as an operator does, and start it as another version."""
    cluster.stop_gracefully(name)
    cluster.environment = version
    cluster.bring_back(name)
    load.await_more(COMMITS)


def says(cluster: RunningCluster, name: str, words: str) -> bool:
    return words in cluster.words(name)


def test_three_rounds_move_nothing_and_lose_nothing(
    tmp_path: Path, newer: Mapping[str, str]
) -> None:
    """S3, S5, S15: under load, and each node can go back until the upgrade is ended.

    `./dev upgrades` runs as many rounds as are asked for, and judges the longest gap as well.
    """
    rounds = plan(SEED, 3, NAMES)
    assert [each.kind for each in rounds] == [Kind.PART, Kind.PART, Kind.END]

    with rolled(tmp_path / "c", newer) as rolling:
        rows = [rolling.run(planned) for planned in rounds]

    assert [problem for row in rows for problem in problems(row)] == []
    assert [row.changes >= COMMITS * row.restarts for row in rows] == [True] * 3


def test_who_is_away_keeps_an_upgrade_from_its_end_and_is_named(
    cluster: RunningCluster, newer: Mapping[str, str]
) -> None:
    """It could come back as an older version, which could not read what was written meanwhile."""
    away = cluster.follower()
    with Load(cluster.addresses, cluster.tls, pause_s=REST_S) as load:
        for name in cluster.names:
            replace(cluster, name, newer, load)
    cluster.stop_gracefully(away)

    refused = cluster.ask("cluster", "upgrade", "finish")
    seen = cluster.ask("cluster", "upgrade", "status")

    assert refused.returncode == 1
    assert f"the leader is not connected with {away!r}" in refused.stderr
    assert "`finish` would be refused" in seen.stdout
    assert {one.level for name in cluster.names if (one := cluster.describe(name))} == {LEVEL_MAX}


def test_messages_of_a_newer_protocol_go_to_newer_nodes_alone(
    cluster: RunningCluster, newer: Mapping[str, str]
) -> None:
    """A node of this version would end the connection for one."""
    first, second, third = cluster.names
    cluster.environment = newer
    for name in (first, second):
        cluster.stop_gracefully(name)
        cluster.bring_back(name)
        cluster.settled()

    for one, said in (
        (first, f"the next version is connected with {third}"),
        (second, f"the next version is connected with {third}"),
        (first, f"noticed {second}"),
        (second, f"noticed {first}"),
    ):
        poll(partial(says, cluster, one, said), f"{one} says: {said}")
    cluster.create_topic("more", 1)
    cluster.settled()
    assert all("sent cannot be read" not in cluster.words(name) for name in cluster.names)
