"""`holdfast cluster wait` ends with 0 once the cluster is whole, else with what is missing."""

from __future__ import annotations

import asyncio

from click.testing import CliRunner, Result

from holdfast.cli.ending import UNREACHED
from holdfast.cli.main import main
from unit.server.nodes import served


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
