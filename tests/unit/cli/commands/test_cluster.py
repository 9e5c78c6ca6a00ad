"""`holdfast cluster wait` ends with 0 once the cluster is whole, else with what is missing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from click.testing import CliRunner, Result

from holdfast.cli.ending import UNREACHED
from holdfast.cli.main import main
from holdfast.server.config.cluster_file import NAME, ClusterFile, NodeEntry, write
from unit.server.nodes import served

if TYPE_CHECKING:
    from pathlib import Path


def waited(*, leads: bool) -> Result:
    """How the command ended on one node, which leads or does not; it looks once."""

    async def story() -> Result:
        async with served() as node:
            if not leads:
                node.replica.step_down()
            command = ["cluster", "wait", "--timeout", "0", "--address", node.address]
            return await asyncio.to_thread(CliRunner().invoke, main, command)

    return asyncio.run(story())


def test_a_whole_cluster_is_not_waited_for() -> None:
    ended = waited(leads=True)

    assert (ended.exit_code, ended.output) == (0, "")


def test_what_is_missing_is_told_when_the_time_is_over() -> None:
    ended = waited(leads=False)

    assert ended.exit_code == UNREACHED
    assert "the cluster is not whole after 0 s: none of these nodes leads" in ended.output


def test_a_cluster_that_is_not_there_in_time_is_named(tmp_path: Path) -> None:
    """A local cluster writes cluster.json when it serves; until then there is nobody to ask."""
    ended = CliRunner().invoke(
        main, ["cluster", "wait", "--timeout", "0", "--cluster", str(tmp_path)]
    )

    assert ended.exit_code == UNREACHED
    assert str(tmp_path / "cluster.json") in ended.output


def test_a_cluster_that_is_being_started_is_waited_for(tmp_path: Path) -> None:
    """cluster.json comes after the command has begun to look for it."""

    async def story() -> Result:
        async with served() as node:
            command = ["cluster", "wait", "--cluster", str(tmp_path)]
            waiting = asyncio.ensure_future(asyncio.to_thread(CliRunner().invoke, main, command))
            await asyncio.sleep(0)
            entry = NodeEntry("node-1", node.address, "127.0.0.1:1", 1, str(tmp_path))
            write(tmp_path / NAME, ClusterFile("c", (entry,), None))
            return await waiting

    ended = asyncio.run(story())

    assert (ended.exit_code, ended.output) == (0, "")
