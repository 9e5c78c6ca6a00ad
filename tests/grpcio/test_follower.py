"""A follower's answer names the leader, and clients go there, whatever the grpcio.

It comes as trailing metadata, which older versions give in another form. `./dev test grpcio` runs
this file on the oldest and on the newest grpcio, in the nodes as well as in their clients.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from cluster.processes import RunningCluster, holdfast, running
from holdfast.client import Admin, sync

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    """Three nodes with TLS, and one topic."""
    with running(tmp_path_factory.mktemp("follower") / "local", 3) as started:
        started.create_topic("t", 4)
        started.settled()
        yield started


def follower(cluster: RunningCluster) -> str:
    """The address of a node that does not lead."""
    return str(cluster.node(cluster.follower())["client_address"])


def test_a_command_that_asks_a_follower_is_answered(cluster: RunningCluster) -> None:
    tls = str(cluster.directory / "client")
    for command in (("topic", "list"), ("group", "list"), ("offsets", "commit", "c", "t:0=7")):
        done = holdfast(*command, "--address", follower(cluster), "--tls", tls)
        assert done.returncode == 0, done.stderr


def test_admin_of_both_shells_that_asks_a_follower_is_answered(cluster: RunningCluster) -> None:
    async def topics() -> dict[str, int]:
        async with Admin(follower(cluster), credentials=cluster.tls) as admin:
            return await admin.list_topics()

    with sync.Admin(follower(cluster), credentials=cluster.tls) as admin:
        assert admin.list_topics() == {"t": 4}
    assert asyncio.run(topics()) == {"t": 4}


def test_a_member_that_asks_a_follower_owns_partitions(cluster: RunningCluster) -> None:
    with sync.Member(follower(cluster), group="g", topics=["t"], credentials=cluster.tls) as member:
        assert member.next_owned() is not None
