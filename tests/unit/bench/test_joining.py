"""The part of the row `backup` about a new node: it is called joined when it has applied all."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from bench import commands, joining
from bench.nodes import Node
from bench.rig import Bench, Running, Say
from bench.sizes import QUICK
from bench.steady import Steady
from holdfast.v1.admin_pb2 import DescribeClusterResponse

if TYPE_CHECKING:
    from pathlib import Path

_CONFIG = """
[cluster.peers.node-1]
peer_address = "127.0.0.1:1"
client_address = "127.0.0.1:2"

[cluster.peers.node-4]
peer_address = "127.0.0.1:7"
client_address = "127.0.0.1:8"
"""


def test_it_has_joined_when_it_has_applied_what_was_committed_when_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order of docs/operations/nodes.md: laid out, started with --rebuild, then added."""
    (home := tmp_path / "node-4").mkdir()
    (home / "node.toml").write_text(_CONFIG)
    did: list[tuple[str, ...]] = []
    applied = [None, 0, 99, 100]
    leader = Node("node-1", "127.0.0.1:2", 1, tmp_path / "node-1")

    async def run(_: Bench, *words: str) -> None:
        did.append(words)

    async def find_leader() -> Node:
        return leader

    async def describe(node: Node) -> DescribeClusterResponse | None:
        if node is leader:
            return DescribeClusterResponse(commit_index=100)
        assert node.address == "127.0.0.1:8"
        told = applied.pop(0)
        return None if told is None else DescribeClusterResponse(applied_index=told)

    async def during(_: object, _seconds: float) -> list[float]:
        return []

    def launch(node: Node, *options: str) -> None:
        did.append((node.name, *options))

    monkeypatch.setattr(commands, "run", run)
    talk = type(
        "T", (), {"find_leader": staticmethod(find_leader), "describe": staticmethod(describe)}
    )
    cluster = type("C", (), {"nodes": (leader,), "launch": staticmethod(launch)})
    running: Any = cast("Any", Running)(cluster, talk)
    steady = cast("Steady", type("S", (), {"during": during})())

    entries = asyncio.run(joining._join(Bench(QUICK, tmp_path, Say()), running, steady))

    assert entries == 100
    assert not applied
    assert did == [
        ("cluster", "add-node", "--dir", str(tmp_path), "--name", "node-4"),
        ("node-4", "--rebuild"),
        (
            *("node", "add", "node-4", "--peer", "127.0.0.1:7", "--client", "127.0.0.1:8"),
            *("--cluster", str(tmp_path)),
        ),
    ]
