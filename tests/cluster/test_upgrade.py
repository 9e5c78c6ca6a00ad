"""A newer version joins a running cluster, and each node can go back until the upgrade is ended.

This version is the older one; the newer one is a test build (`harness.next_version`) with a new
event, a new field of the state and a new message between nodes.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from cluster.kept import behind, fetched
from cluster.load import PARTITIONS, TOPIC, Load
from cluster.processes import INSECURE, RunningCluster, poll, running
from harness.next_version import LEVEL, RELEASE, build
from holdfast.coordinator.model.levels import LEVEL_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

REST_S = 0.02
COMMITS = 50
"""So many changes are acknowledged after each step before the next one."""


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


def versions(cluster: RunningCluster) -> dict[str, tuple[str, int]]:
    """What each node tells of itself: whether it is the next version, and the level in force."""
    told = cluster.settled()
    return {one.node: ("next" if one.version == RELEASE else "this", one.level) for one in told}


def test_nodes_are_upgraded_under_load_and_go_back_until_the_upgrade_is_ended(
    cluster: RunningCluster, newer: Mapping[str, str]
) -> None:
    """S3, S5: nothing acknowledged is lost, no partition moves, and digests stay equal."""
    first, second, third = cluster.names
    with Load(cluster.addresses, cluster.tls, pause_s=REST_S) as load:
        load.await_crew()
        for name in (first, second):
            replace(cluster, name, newer, load)
        refused = cluster.ask("cluster", "upgrade", "finish")
        assert refused.returncode == 1
        assert f"node {third!r} runs Holdfast" in refused.stderr
        assert f"whose newest level is {LEVEL_MAX}" in refused.stderr
        replace(cluster, third, newer, load)
        for name in (first, second, third):
            replace(cluster, name, None, load)
        assert set(versions(cluster).values()) == {("this", LEVEL_MAX)}

        for name in (first, second, third):
            replace(cluster, name, newer, load)
        cluster.create_topic("before", 1)
        ended = cluster.ask("cluster", "upgrade", "finish")
        assert ended.stdout == f"level {LEVEL} is in force\n", ended.stderr
        cluster.create_topic("after", 1)
        load.await_more(COMMITS)
    assert set(versions(cluster).values()) == {("next", LEVEL)}
    assert load.lost == []
    assert behind(fetched(cluster), load.witness) == set()

    cluster.stop_gracefully(first)
    cluster.environment = None
    assert f"its state is of a newer level than {LEVEL_MAX}" in cluster.try_to_start(first)
    cluster.environment = newer
    cluster.bring_back(first)
    assert len({one.digest for one in cluster.settled()}) == 1


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
