"""How a call ends a command: which sentence, which exit code, and what is never done twice (S5)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from click.testing import CliRunner, Result

from holdfast.cli import connect
from holdfast.cli.connect import Cluster
from holdfast.cli.main import main
from holdfast.cli.target import Target
from holdfast.client._rpc import retries
from holdfast.client._rpc.clock import boot_ms
from unit.client.fake_cluster import fake_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from unit.client.fake_cluster import FakeGroup

COMMIT = ("offsets", "commit", "g", "t:0=7")
TRANSFER = ("cluster", "transfer-leadership", "--to", "node-2", "--timeout", "0")
NOT_APPLIED = (("holdfast-outcome", "not-applied"),)
UNKNOWN = (("holdfast-outcome", "unknown"),)

Ending = tuple[grpc.StatusCode, tuple[tuple[str, str], ...]]


def ended(
    command: Sequence[str],
    method: str,
    *endings: Ending,
    nodes: int = 1,
    before: Callable[[FakeGroup, str], None] = lambda *_: None,
) -> tuple[Result, list[Any]]:
    """How a command ends whose first calls of a method end so, and the requests that were sent.

    `before` is called with the group that the nodes serve, and the method.
    """

    async def story() -> tuple[Result, list[Any]]:
        async with fake_cluster(nodes) as (group, served):
            group.refuse[method] = list(endings)
            before(group, method)
            words = [*command, *(word for each in served for word in ("--address", each.address))]
            result = await asyncio.to_thread(CliRunner().invoke, main, words)
            return result, group.requests[method]

    return asyncio.run(story())


def test_s5_a_change_that_may_have_happened_is_repeated_with_its_request_id() -> None:
    result, requests = ended(COMMIT, "OffsetCommit", (grpc.StatusCode.UNAVAILABLE, UNKNOWN))

    assert (result.exit_code, result.stdout) == (0, "committed 1 offset\n"), result.output
    assert len(requests) == 2
    assert requests[0].holdfast.request_id == requests[1].holdfast.request_id != ""


@pytest.mark.parametrize("outcome", [UNKNOWN, ()])
def test_s5_what_has_no_request_id_is_not_repeated_if_it_may_have_happened(
    outcome: tuple[tuple[str, str], ...],
) -> None:
    """A second hand-over of the leadership would hand it on."""
    unknown = (grpc.StatusCode.UNAVAILABLE, outcome)
    result, requests = ended(TRANSFER, "TransferLeadership", unknown)

    assert result.exit_code == 4
    assert "Whether it happened is unknown: look, then repeat" in result.stderr
    assert len(requests) == 1


def test_s5_what_surely_did_not_happen_is_repeated() -> None:
    nothing = (grpc.StatusCode.UNAVAILABLE, NOT_APPLIED)
    result, requests = ended(TRANSFER, "TransferLeadership", nothing)

    assert (result.exit_code, len(requests)) == (0, 2)


def test_a_refusal_is_told_in_the_service_s_words_alone() -> None:
    refused = (grpc.StatusCode.PERMISSION_DENIED, NOT_APPLIED)
    result, _ = ended(("topic", "list"), "ListTopics", refused)

    assert (result.exit_code, result.stderr) == (1, "holdfast: as the test wants\n")


def test_the_leader_is_followed() -> None:
    result, _ = ended(COMMIT, "OffsetCommit", nodes=3)

    assert (result.exit_code, result.stdout) == (0, "committed 1 offset\n"), result.output


DEAD = "127.0.0.1:1"
"""Nobody may listen on this port."""


def time_is_over_when_asked_twice(
    monkeypatch: pytest.MonkeyPatch, group: FakeGroup, method: str
) -> None:
    """A call's time ends with the second attempt at a node that lives, however slow the machine.

    By then each of two nodes was tried, for a call goes from one to the next.
    """

    def now_ms() -> int:
        return boot_ms() + connect.CALL_MS * (len(group.requests[method]) > 1)

    monkeypatch.setattr(retries, "boot_ms", now_ms)


def test_where_nodes_serve_nothing_for_several_reasons_each_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a lost majority the last reason alone named a dead node, and not what the living said."""

    async def story() -> tuple[Result, str]:
        async with fake_cluster() as (group, (node,)):
            time_is_over_when_asked_twice(monkeypatch, group, "ListTopics")
            group.refuse["ListTopics"] = [(grpc.StatusCode.UNAVAILABLE, NOT_APPLIED)] * 1_000
            words = ("topic", "list", "--address", f"{DEAD},{node.address}")
            return await asyncio.to_thread(CliRunner().invoke, main, words), node.address

    result, alive = asyncio.run(story())
    assert result.exit_code == 3
    assert "no node served the call within 15 s: " in result.stderr
    assert f"{DEAD}: nobody listens there" in result.stderr
    assert f"{alive}: as the test wants" in result.stderr
    assert "A majority of the nodes must run" in result.stderr
    assert "Is the cluster running" not in result.stderr


@pytest.mark.parametrize(("nodes", "noted"), [(3, True), (1, False)])
@pytest.mark.parametrize("named", [1, 3])
def test_status_says_when_no_majority_is_left(nodes: int, named: int, *, noted: bool) -> None:
    """Of the nodes that a node which answers tells of, whether somebody named them or not."""

    async def story() -> Result:
        async with fake_cluster() as (group, (node,)):
            addresses = [node.address, DEAD, "127.0.0.1:2"]
            group.nodes = addresses[:nodes]
            words = ["cluster", "status", "--address", ",".join(addresses[:named])]
            return await asyncio.to_thread(CliRunner().invoke, main, words)

    result = asyncio.run(story())
    assert result.exit_code == 0, result.output
    told = "NOTE: 2 of 3 nodes do not answer. Nothing is served until a majority, 2 nodes, runs\n"
    assert (told in result.stdout) == noted
    assert ("NOTE" in result.stdout) == noted


async def the_loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


def test_a_command_has_one_event_loop_also_for_one_node_alone() -> None:
    """The late end of a call goes to the loop that began it, by way of any loop that runs (gRPC).

    With a loop for each, that end met a closed one, and a traceback followed a good answer.
    """
    with Cluster(Target((DEAD,), None)) as cluster:
        with cluster.only(DEAD) as node:
            of_node = node._run(the_loop(), reads=True)
        of_cluster = cluster._run(the_loop(), reads=True)

        assert of_cluster is of_node
    assert of_cluster.is_closed()
