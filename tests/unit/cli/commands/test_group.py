"""`holdfast group remove-members` tells when it removed nobody of those that were meant."""

from __future__ import annotations

import asyncio
import json

import pytest
from click.testing import CliRunner, Result

from holdfast.cli.main import main
from holdfast.coordinator.kernel.group_types import new_group
from holdfast.coordinator.model.access import DENY, GROUP, READER, Acl
from holdfast.coordinator.model.events import AccessModeChanged, AclsChanged
from holdfast.coordinator.structures.pmap import PMap
from holdfast.server.config.node_config import ANONYMOUS
from unit.server.consumer_calls import join, with_topics
from unit.server.nodes import served


def removed(*whom: str) -> Result:
    """How the command ended on a group without members."""

    async def story() -> Result:
        async with served() as node:
            groups = PMap({"g": new_group("g")})
            node.replica.state = node.replica.state._replace(groups=groups)
            command = ["group", "remove-members", "g", *whom, "--address", node.address]
            return await asyncio.to_thread(CliRunner().invoke, main, command)

    return asyncio.run(story())


def test_a_prefix_that_nobody_has_is_told_as_a_name_that_nobody_has() -> None:
    """A slip must not look like a success (docs/operations/groups.md)."""
    ended = removed("--instance-prefix", "zz")

    assert ended.exit_code == removed("--instance", "nope").exit_code == 1
    assert "g has no static member whose instance id begins with 'zz'" in ended.output
    assert "removed" not in ended.output


def test_a_program_is_told_it_too() -> None:
    ended = removed("--instance-prefix", "zz", "--json")

    assert ended.exit_code == 1
    assert json.loads(ended.stdout)


@pytest.mark.parametrize(("whom", "code"), [("i1", 0), ("ghost", 1)])
def test_members_of_a_group_of_the_heartbeat_protocol_are_removed(whom: str, code: int) -> None:
    """K-G23, K-K3: the call that looks for the group first does not know it."""

    async def story() -> Result:
        async with served() as node:
            with_topics(node)
            await node.group.ConsumerGroupHeartbeat(join("m1", instance_id="i1"))
            command = ["group", "remove-members", "g", "--instance", whom, "--address"]
            return await asyncio.to_thread(CliRunner().invoke, main, [*command, node.address])

    ended = asyncio.run(story())

    assert ended.exit_code == code
    assert "there is no group" not in ended.output
    assert ("removed 1 member of g: i1" in ended.output) == (not code)


def test_everyone_may_be_nobody() -> None:
    """Whoever says `--all` wants an empty group, and has it."""
    ended = removed("--all")

    assert (ended.exit_code, ended.output) == (0, "removed 0 members of g\n")


def test_explain_tells_of_a_group_of_the_heartbeat_protocol_where_it_stands() -> None:
    """K-K3: DescribeGroups does not know such a group; that must not look as if it were none."""

    async def story() -> Result:
        async with served() as node:
            groups = PMap({"g": new_group("g", "consumer")})
            node.replica.state = node.replica.state._replace(groups=groups)
            command = ["group", "explain", "g", "--address", node.address]
            return await asyncio.to_thread(CliRunner().invoke, main, command)

    ended = asyncio.run(story())

    assert ended.exit_code == 0
    assert ended.output.startswith("g: ")
    assert "holdfast log tail --group g" in ended.output


def test_describe_tells_why_a_group_of_the_heartbeat_protocol_is_not_shown() -> None:
    """Its topics may not be read; that must not look as if there were no such group."""

    async def story() -> Result:
        async with served() as node:
            with_topics(node)
            await node.group.ConsumerGroupHeartbeat(join())
            grant = Acl(ANONYMOUS, READER, GROUP, "*")
            node.replica.slip_in("", AclsChanged((grant,), ()), AccessModeChanged(DENY))
            command = ["group", "describe", "g", "--address", node.address]
            return await asyncio.to_thread(CliRunner().invoke, main, command)

    ended = asyncio.run(story())

    assert ended.exit_code == 1
    assert "topics that no grant lets this principal read" in ended.output
    assert "no group" not in ended.output
