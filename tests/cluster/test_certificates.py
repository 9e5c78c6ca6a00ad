"""Leaf certificates and their authority are replaced under a group: nothing moves, no beat fails.

With `HOLDFAST_TEST_MEMBERS=1000` as many members take part (docs/operations/certificates.md).
"""

from __future__ import annotations

import asyncio
import os
import shutil
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

import grpc
import pytest

from cluster.processes import PATIENCE_SECONDS, RunningCluster, holdfast, running
from harness.poll import until_async
from holdfast.client import Tls
from holdfast.client._rpc import connection_age
from holdfast.client._session.session_io import Failure
from holdfast.client.aio import Admin, Connection, Member
from holdfast.v1 import group_pb2
from holdfast.v1.group_pb2_grpc import GroupServiceStub

if TYPE_CHECKING:
    from pathlib import Path

    from google.protobuf.message import Message

MEMBERS: Final = int(os.environ.get("HOLDFAST_TEST_MEMBERS", "40"))
CONNECTIONS: Final = 4
AGE_MS: Final = 10_000
SETTINGS: Final[dict[str, Any]] = {
    "group": "g",
    "topics": ["work"],
    "session_timeout_ms": 30_000,
    "heartbeat_interval_ms": 1_000,
}


@dataclass
class Group:
    """Static members on a few connections, and what became of their heartbeats."""

    connections: list[Connection]
    members: list[Member] = field(default_factory=list)
    beats: int = 0
    failed: list[str] = field(default_factory=list)
    lost: list[object] = field(default_factory=list)

    def count(self, connection: Connection) -> None:
        """Count each heartbeat of a connection, and keep the reason of each that fails."""
        attempt = connection.heartbeats.attempt

        async def counted(*arguments: Any) -> Message | Failure:  # noqa: ANN401 - as attempt
            answer = await attempt(*arguments)
            self.beats += 1
            if isinstance(answer, Failure):
                self.failed.append(str(answer.error))
            return answer

        connection.heartbeats.attempt = counted  # type: ignore[assignment,method-assign]  # watched

    @property
    def shares(self) -> dict[str | None, tuple[int, list[int]]]:
        """By member: the generation, and the partitions that it owns."""
        return {
            member.instance_id: (member.generation, sorted(p.number for p in member.assignment))
            for member in self.members
        }

    async def shared_out(self) -> None:
        """Wait until each member owns one partition."""
        await until_async(
            lambda: all(len(member.assignment) == 1 for member in self.members),
            "a partition for each",
            within_s=PATIENCE_SECONDS,
        )


async def joined(stack: AsyncExitStack, cluster: RunningCluster, tls: Tls) -> Group:
    """A group of MEMBERS, each with a partition."""
    async with Admin(cluster.addresses, credentials=tls) as admin:
        await admin.create_topics({"work": MEMBERS})
    connections = [Connection(cluster.addresses, credentials=tls) for _ in range(CONNECTIONS)]
    group = Group([await stack.enter_async_context(each) for each in connections])
    for connection in connections:
        group.count(connection)
    for number in range(MEMBERS):
        member = Member(
            connections[number % CONNECTIONS],
            instance_id=f"i-{number}",
            on_revoked=group.lost.append,
            on_lost=group.lost.append,
            **SETTINGS,
        )
        member.start()
        group.members.append(member)
        stack.push_async_callback(member.restart)
    await group.shared_out()
    return group


def files(folder: Path) -> Tls:
    """The files of a client in a folder."""
    return Tls(folder / "ca.pem", folder / "certificate.pem", folder / "key.pem")


async def certs(directory: Path, *step: str) -> None:
    """Do a step of `holdfast certs`."""
    done = await asyncio.to_thread(holdfast, "certs", *step, "--dir", str(directory))
    assert done.returncode == 0, done.stderr


async def change(cluster: RunningCluster, taken: list[None], *step: str) -> None:
    """Do a step, and wait until all nodes and clients have taken the new files."""
    before, told = len(taken), {name: times_in_force(cluster, name) for name in cluster.names}
    await certs(cluster.directory, *step)
    await until_async(
        lambda: all(times_in_force(cluster, name) > told[name] for name in told),
        f"nodes have taken {step}",
        within_s=PATIENCE_SECONDS,
    )
    await until_async(
        lambda: len(taken) - before >= CONNECTIONS,
        f"clients have taken {step}",
        within_s=PATIENCE_SECONDS,
    )


def times_in_force(cluster: RunningCluster, name: str) -> int:
    """How often a node has said that it took new files."""
    return cluster.words(name).count("new certificates are in force")


def open_stream(cluster: RunningCluster, node: str, tls: Tls) -> Any:  # noqa: ANN401 - grpc's call
    """Open a stream to the node that leads, which the client never ends."""
    address = cluster.node(node)["client_address"]
    channel = grpc.secure_channel(address, tls.credentials())
    asked: SimpleQueue[group_pb2.SessionRequest | None] = SimpleQueue()
    stream: Any = GroupServiceStub(channel).Session(iter(asked.get, None))
    assert stream.initial_metadata() is not None
    stream.add_done_callback(lambda _: asked.put(None))
    return stream


async def is_let_in(cluster: RunningCluster, folder: Path) -> bool:
    """Whether a new connection of a client with the files of a folder is served."""
    asked = [part for each in cluster.addresses for part in ("--address", each)]
    arguments = ("group", "list", *asked, "--tls", str(folder))
    return (await asyncio.to_thread(holdfast, *arguments)).returncode == 0


async def is_cut_off_while_revoked(cluster: RunningCluster, leader: str, folder: Path) -> None:
    """Revoke a client's certificate: its stream ends, and no node lets it in; then lift that."""
    certificate = str(folder / "certificate.pem")
    stream = await asyncio.to_thread(open_stream, cluster, leader, files(folder))
    await asked_of(cluster, "revoke", certificate, "--reason", "stolen")
    await until_async(lambda: not stream.is_active(), "the end", within_s=PATIENCE_SECONDS)
    assert stream.code() is grpc.StatusCode.UNAUTHENTICATED
    assert "is revoked (stolen)" in stream.details()
    assert not await is_let_in(cluster, folder)
    await asked_of(cluster, "unrevoke", certificate)
    assert await is_let_in(cluster, folder)


async def asked_of(cluster: RunningCluster, *step: str) -> None:
    """Do a step of `holdfast certs` that asks the cluster."""
    directory = str(cluster.directory)
    done = await asyncio.to_thread(holdfast, "certs", *step, "--cluster", directory)
    assert done.returncode == 0, done.stderr


def test_authority_and_leaves_are_replaced_under_members(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No heartbeat fails and no partition moves; then the old certificates are refused."""
    monkeypatch.setattr(connection_age, "LOOK_S", 0.25)
    options: tuple[str, ...] = (
        "--set",
        f"tls.connection_age_ms={AGE_MS}",
        "--set",
        "logger.level=info",
    )
    options += ("--set", "group.initial_rebalance_delay_ms=1000")
    if MEMBERS > 200:
        options += ("--set", f"group.max_size={MEMBERS}")

    async def story() -> None:
        taken: list[None] = []
        look = connection_age.FileWatch.look

        def looked(watch: connection_age.FileWatch) -> bool:
            is_new = look(watch)
            taken.extend([None] * is_new)
            return is_new

        monkeypatch.setattr(connection_age.FileWatch, "look", looked)
        with running(tmp_path / "c", 3, *options) as cluster:
            assert cluster.tls is not None
            old, client = tmp_path / "old", cluster.directory / "client"
            shutil.copytree(client, old)
            leader, term = cluster.leader(), cluster.settled()[0].term
            async with AsyncExitStack() as stack:
                group = await joined(stack, cluster, cluster.tls)
                shares, beats = group.shares, group.beats
                await certs(cluster.directory, "issue", "client", "laptop")
                await is_cut_off_while_revoked(cluster, leader, cluster.directory / "laptop")
                await change(cluster, taken, "authority", "next")
                await certs(cluster.directory, "authority", "switch")
                await change(cluster, taken, "renew")
                shutil.copy(client / "ca.pem", old)  # so that the old client trusts the nodes
                assert await is_let_in(cluster, old)
                stream = await asyncio.to_thread(open_stream, cluster, leader, files(old))
                await change(cluster, taken, "authority", "finish")
                assert not await is_let_in(cluster, old)
                await until_async(
                    lambda: not stream.is_active(), "the end", within_s=PATIENCE_SECONDS
                )
                enough = group.beats + 2 * MEMBERS
                await until_async(
                    lambda: group.beats >= enough, "more heartbeats", within_s=PATIENCE_SECONDS
                )
                assert group.shares == shares
                assert group.failed == []
                assert group.lost == []
                assert group.beats > beats
            cluster.connect_anew()
            assert (cluster.leader(), cluster.settled()[0].term) == (leader, term)
            for name in cluster.names:
                assert "is trusted no more" in cluster.words(name)
            assert "holdfast://client/local still shows a certificate" in cluster.words(leader)

    asyncio.run(story())
