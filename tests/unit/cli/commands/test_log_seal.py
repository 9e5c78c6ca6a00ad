"""`holdfast log seal` asks for a boundary, and waits until each node has sealed up to it (S22)."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from holdfast.cli.commands import log
from holdfast.cli.connect import Cluster
from holdfast.cli.ending import UNREACHED
from holdfast.cli.main import main
from holdfast.cli.nodes import sealing
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import extras_pb2 as x
from holdfast.v1 import log_pb2 as lg
from unit.server.nodes import Served, served, topic

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

BOUNDARY = x.Position(index=7, ordinal=1)
BEFORE = x.Position(index=7)


def on_a_node(
    *options: str, prepare: Callable[[Served], Awaitable[None]] = topic
) -> tuple[Result, str]:
    """How the command ended on one node of a cluster, and where its log ended before."""

    async def story() -> tuple[Result, str]:
        async with served() as node:
            await prepare(node)
            last = node.replica.records[-1].position
            command = ["log", "seal", "--timeout", "0", "--address", node.address, *options]
            return await asyncio.to_thread(CliRunner().invoke, main, command), "{}.{}".format(*last)

    return asyncio.run(story())


def test_the_boundary_is_told() -> None:
    ended, last = on_a_node()

    assert ended.exit_code == 0
    assert ended.output == (
        f"a boundary is set: all up to {last} is being sealed, on one node after another\n"
    )


def test_programs_get_the_answer_as_the_contract_has_it() -> None:
    ended, last = on_a_node("--json")

    told = json.loads(ended.stdout)
    assert f"{told['sealed']['index']}.{told['sealed'].get('ordinal', 0)}" == last
    assert told["already"] is False
    assert told["holdfast"]["position"]["index"]


def test_where_nothing_came_nothing_is_done_and_that_is_no_failure() -> None:
    async def sealed_before(node: Served) -> None:
        await node.log.SealLog(lg.SealLogRequest())

    ended, _ = on_a_node(prepare=sealed_before)

    assert ended.exit_code == 0
    assert ended.output.startswith("nothing came since the last boundary: all up to 2.")


class Nodes:
    """Three nodes, and what each tells at each look; the last answers are told for ever."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *looks: tuple[Any, Any, Any]) -> None:
        self.looks = list(looks)
        self.now = 0.0
        monkeypatch.setattr(Cluster, "change", lambda *_: lg.SealLogResponse(sealed=BOUNDARY))
        monkeypatch.setattr(Cluster, "on_every_node", self.look)
        monkeypatch.setattr(sealing, "time", self)
        monkeypatch.setattr(log, "time", self)

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def look(self, *_: object) -> list[tuple[str, a.DescribeClusterResponse | None]]:
        told = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        nodes = [a.DescribedNode(name=f"n{n}", client_address=f"h:{n}") for n in (1, 2, 3)]
        return [(f"h:{n}", answer(f"n{n}", nodes, one)) for n, one in enumerate(told, 1)]


def answer(
    name: str, nodes: list[a.DescribedNode], told: object
) -> a.DescribeClusterResponse | None:
    """What a node answers: None not at all, "" without facts, 0 without having sealed.

    Other text is what keeps it from that.
    """
    if told is None:
        return None
    response = a.DescribeClusterResponse(node=name, nodes=nodes)
    if isinstance(told, x.Position):
        response.facts.history.sealed.CopyFrom(told)
    elif told and isinstance(told, str):
        response.facts.history.sealing_problem = told
    elif told == 0:
        response.facts.history.segment_bytes = 0
        response.facts.wall_time_ms = 1
    return response


def asked(*options: str) -> Result:
    command = ["log", "seal", "--address", "h:1,h:2,h:3", *options]
    return CliRunner().invoke(main, command)


def test_it_waits_for_every_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """S22: they seal one after another; one may have a later boundary already."""
    beyond = x.Position(index=9)
    nodes = Nodes(
        *(monkeypatch, (BOUNDARY, 0, None), (BOUNDARY, BEFORE, 0), (beyond, BOUNDARY, BOUNDARY))
    )
    ended = asked()

    assert ended.exit_code == 0
    assert ended.output == "a boundary is set: all up to 7.1 is sealed on n1, n2, n3\n"
    assert nodes.now > 0


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (None, "n2 does not answer"),
        ("", "n2 tells readers of the cluster alone"),
        (0, "n2 has sealed nothing, or its version does not tell it"),
        (BEFORE, "n2 has sealed up to 7.0"),
        ("the sealed segment X cannot be read", "n2 says: the sealed segment X cannot be read"),
    ],
)
def test_a_node_that_is_late_is_named_with_what_is_known_of_it(
    told: object, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who goes on to publish must not take silence for done."""
    Nodes(monkeypatch, (BOUNDARY, told, BOUNDARY))
    ended = asked("--timeout", "2")

    assert ended.exit_code == UNREACHED
    assert "the boundary 7.1 is set" in ended.stderr
    assert why in ended.stderr
    assert "n1" not in ended.stderr
    assert "n3" not in ended.stderr


def test_a_refusal_is_told_and_nobody_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = Nodes(monkeypatch, (BOUNDARY, BOUNDARY, BOUNDARY))
    refused = lg.SealLogResponse(
        error_code=e.ERROR_CODE_CLUSTER_AUTHORIZATION_FAILED,
        holdfast=x.ResponseExtras(message="'x' is not operator on the cluster"),
    )
    monkeypatch.setattr(Cluster, "change", lambda *_: refused)
    monkeypatch.setattr(Cluster, "on_every_node", lambda *_: pytest.fail("nothing is sealed"))
    ended = asked()

    assert ended.exit_code == 1
    assert "'x' is not operator on the cluster" in ended.stderr
    assert nodes.now == 0
