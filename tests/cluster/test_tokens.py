"""A member with bearer tokens outlives its tokens and the leading node, and keeps what it owns."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from cluster.processes import PATIENCE_SECONDS, running
from harness.issuer import AUDIENCE, ISSUER, Issuer
from harness.poll import until_async
from holdfast.cli.local_cluster.layout import free_ports
from holdfast.client import Tls
from holdfast.client.aio import Admin, Member

if TYPE_CHECKING:
    from pathlib import Path

    from cluster.processes import RunningCluster

TOKEN_SECONDS = 8.0
NODES = 3


def settings(keys: Path, ports: list[int]) -> list[str]:
    """What makes the nodes take tokens, as options of `cluster start`."""
    pairs = {"tokens.issuer": ISSUER, "tokens.audience": AUDIENCE, "tokens.keys": str(keys)}
    pairs["tokens.leeway_ms"] = "0"
    for number, port in enumerate(ports, 1):
        pairs[f"cluster.peers.node-{number}.token_address"] = f"127.0.0.1:{port}"
    return [word for pair in pairs.items() for word in ("--set", "=".join(pair))]


@pytest.mark.cluster
def test_a_member_with_short_tokens_keeps_its_partition_through_a_failover(tmp_path: Path) -> None:
    """It is told the addresses of ports for tokens alone, and no call fails for a token's end."""
    issuer, keys, ports = Issuer(), tmp_path / "keys.json", [*free_ports(NODES)]
    keys.write_bytes(issuer.key_set())
    at = [f"127.0.0.1:{port}" for port in ports]
    with running(tmp_path / "c", NODES, *settings(keys, ports)) as cluster:
        cluster.create_topic("work", 1)
        for right in (("member", "--group", "g"), ("reader", "--topic", "work")):
            assert cluster.ask("acl", "grant", "jwt:indexer", *right).returncode == 0
        given = asyncio.run(scenario(cluster, issuer, at))
    assert given > 1, "the token was never renewed"


def test_a_command_with_a_token_that_is_over_ends_with_the_nodes_words(tmp_path: Path) -> None:
    """It shows this token and no other: going on until nobody has served it hides the cause."""
    issuer, keys, ports = Issuer(), tmp_path / "keys.json", [*free_ports(1)]
    keys.write_bytes(issuer.key_set())
    token = tmp_path / "token"
    token.write_text(issuer.token("indexer", -60.0))
    with running(tmp_path / "c", 1, *settings(keys, ports)) as cluster:
        cluster.leader()
        to = ("--address", f"127.0.0.1:{ports[0]}", "--tls", str(cluster.directory / "client"))
        done = cluster.run("topic", "list", *to, "--token-file", str(token))

    assert done.returncode == 1
    assert "no node served" not in done.stderr
    assert "token" in done.stderr


async def scenario(cluster: RunningCluster, issuer: Issuer, at: list[str]) -> int:
    """Join by one address, lose the leader, and go on; returns how many tokens were shown."""
    given, lost = list[str](), list[object]()

    def give() -> str:
        given.append(issuer.token("indexer", TOKEN_SECONDS))
        return given[-1]

    assert cluster.tls is not None
    tls = Tls(cluster.tls.ca, token=give)
    async with Admin(at[0], credentials=tls) as admin:
        assert await admin.list_topics() == {"work": 1}
    member = Member(
        at[0],
        credentials=tls,
        group="g",
        topics=["work"],
        instance_id="i",
        session_timeout_ms=30_000,
        heartbeat_interval_ms=500,
        on_revoked=lost.append,
        on_lost=lost.append,
    )
    async with member:
        await until_async(lambda: member.assignment, "its partition", within_s=PATIENCE_SECONDS)
        generation = member.generation
        endpoints = member._caller.endpoints
        await until_async(lambda: len(endpoints.addresses) == NODES, "all nodes")
        assert set(endpoints.addresses) == set(at)
        before = await asyncio.to_thread(cluster.leader)
        await asyncio.to_thread(cluster.kill, before)
        after = await asyncio.to_thread(cluster.leader, other_than=before)
        leads = at[cluster.names.index(after)]
        await until_async(
            lambda: endpoints.current == leads, "it follows", within_s=PATIENCE_SECONDS
        )
        renewed = len(given) + 2
        await until_async(
            lambda: len(given) >= renewed, "two more tokens", within_s=PATIENCE_SECONDS
        )
        health = member.health()
        assert (health.error, lost) == (None, [])
        assert (len(member.assignment), member.generation) == (1, generation)
    return len(given)
