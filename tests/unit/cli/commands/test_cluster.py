"""When `holdfast cluster wait` and a hand-over end; `status` shows every node."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from click.testing import CliRunner, Result

from holdfast.cli.connect import Cluster
from holdfast.cli.ending import UNREACHED
from holdfast.cli.main import main
from holdfast.server.config.cluster_file import NAME, ClusterFile, NodeEntry, write
from holdfast.v1 import admin_pb2 as a
from unit.server.nodes import served

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


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


def told(node: str, standings: dict[str, str]) -> a.DescribeClusterResponse:
    """What a node tells of a cluster; each name is an address, too."""
    nodes = [
        a.DescribedNode(name=name, client_address=f"{name}:1", role="follower", standing=standing)
        for name, standing in standings.items()
    ]
    return a.DescribeClusterResponse(node=node, nodes=nodes, membership_index=4)


def test_s25_status_shows_who_votes_and_counts_voters_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two learners that answer make no majority of one voter of three."""
    standings = {**dict.fromkeys(("a", "b", "c"), "voter"), "d": "learner", "e": "learner"}
    answers = {f"{name}:1": told(name, standings) for name in ("a", "d", "e")}
    monkeypatch.setattr(Cluster, "on_every_node", lambda *_: [*answers.items()][:1])
    monkeypatch.setattr(Cluster, "on_node", lambda _, address, *__: answers.get(address))

    shown = CliRunner().invoke(main, ["cluster", "status", "--address", "a:1"])

    assert [line.split()[:4] for line in shown.output.splitlines()[:6]] == [
        ["NODE", "ADDRESS", "STANDING", "ROLE"],
        ["a", "a:1", "voter", "follower"],
        ["b", "b:1", "voter", "silent"],
        ["c", "c:1", "voter", "silent"],
        ["d", "d:1", "learner", "follower"],
        ["e", "e:1", "learner", "follower"],
    ]
    assert "2 of 3 nodes do not answer. Nothing is served until a majority, 2 " in shown.output


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


def handed_over(
    monkeypatch: pytest.MonkeyPatch, leaders: list[tuple[str, ...]], *more: str
) -> Result:
    """How a hand-over to b ends; `leaders`: look by look, who leads in the eyes of a, b, c."""
    looks = iter(leaders)
    ordered = a.TransferLeadershipResponse(node="b")

    def looked(*_: object) -> list[tuple[str, a.DescribeClusterResponse]]:
        look = next(looks)
        names = ("a", "b", "c")[: len(look)]
        answers = [told(node, dict.fromkeys(names, "voter")) for node in names]
        for answer, leader in zip(answers, look, strict=True):
            answer.leader = leader
        return [(f"{answer.node}:1", answer) for answer in answers]

    monkeypatch.setattr(Cluster, "order", lambda *_: ordered)
    monkeypatch.setattr(Cluster, "on_every_node", looked)
    command = ["cluster", "transfer-leadership", "--to", "b", "--address", "a:1", *more]
    return CliRunner().invoke(main, command)


def test_s10_d_a_hand_over_ends_when_the_node_says_that_it_leads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It stands for election first; what another node says of it is not yet its own word."""
    ended = handed_over(monkeypatch, [("a", "a"), ("", ""), ("b", ""), ("b", "b")])

    assert (ended.exit_code, ended.output) == (0, "b leads\n")


def test_s10_d_a_hand_over_that_comes_to_nothing_says_who_leads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended = handed_over(monkeypatch, [("a", "a")], "--timeout", "0.000001")

    assert ended.exit_code == UNREACHED
    assert "b was told to lead, and does not lead yet" in ended.output
    assert "a says that it leads" in ended.output


def test_s10_of_two_nodes_that_think_they_lead_each_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The leader of a term that is over may not know it yet."""
    ended = handed_over(monkeypatch, [("a", "", "c")], "--timeout", "0.000001")

    assert "a says that it leads and c says that it leads. Look" in ended.output


def test_s10_d_a_hand_over_need_not_be_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = handed_over(monkeypatch, [], "--timeout", "0", "--json")

    assert (ended.exit_code, '"node": "b"' in ended.output) == (0, True)
