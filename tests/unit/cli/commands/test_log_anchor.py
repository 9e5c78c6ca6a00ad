"""`holdfast log anchor` and `cluster status --json` tell what a replay is compared with (S3)."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner, Result

from holdfast.cli.connect import Cluster
from holdfast.cli.ending import UNREACHED
from holdfast.cli.main import main
from holdfast.coordinator.model.events import ClusterFormed
from holdfast.storage.codec.state_image import digest_of
from holdfast.v1 import admin_pb2 as a
from unit.server.nodes import served

if TYPE_CHECKING:
    import pytest


def asked(*command: str) -> tuple[Result, dict[str, Any]]:
    """How a command ended on one node of a cluster, and the anchor by the rule."""

    async def story() -> tuple[Result, dict[str, Any]]:
        async with served() as node:
            node.replica.slip_in("", ClusterFormed("c", ()))
            state = node.replica.state
            told = await asyncio.to_thread(
                CliRunner().invoke, main, [*command, "--address", node.address]
            )
            return told, {
                "format": 1,
                "cluster_id": state.cluster_id,
                "node": "node-1",
                "index": state.applied_index,
                "log_time_ms": state.log_time_ms,
                "chain": "00" * 32,
                "digest": f"{digest_of(state):016x}",
                "recovery_number": state.recovery_number,
            }

    return asyncio.run(story())


def without_version(told: dict[str, Any]) -> dict[str, Any]:
    assert told.pop("version")
    return told


def test_an_anchor_is_a_line_of_json_that_may_be_appended_to_a_file() -> None:
    ended, expected = asked("log", "anchor", "--json")

    assert ended.exit_code == 0
    (line,) = ended.stdout.splitlines()
    assert without_version(json.loads(line)) == expected


def test_people_see_index_chain_and_digest_whole() -> None:
    ended, expected = asked("log", "anchor")

    assert ended.exit_code == 0
    assert ended.output.splitlines()[1].split() == [
        str(expected[name])
        for name in ("node", "index", "recovery_number", "log_time_ms", "chain", "digest")
    ]


def test_the_status_for_programs_has_the_anchor_of_each_node() -> None:
    ended, expected = asked("cluster", "status", "--json")

    one = next(each for each in json.loads(ended.stdout) if each["name"] == "node-1")
    assert without_version(one["answer"]["anchor"]) == expected


def test_a_node_that_is_not_there_is_named() -> None:
    ended, _ = asked("log", "anchor", "--node", "node-9")

    assert ended.exit_code == 1
    assert "there is no node 'node-9'" in ended.output


def answering(monkeypatch: pytest.MonkeyPatch, answer: a.DescribeClusterResponse | None) -> Result:
    monkeypatch.setattr(Cluster, "on_every_node", lambda *_: [("a:1", answer)])
    return CliRunner().invoke(main, ["log", "anchor", "--json", "--address", "a:1"])


def test_a_node_that_tells_none_is_named_and_the_command_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An older version does not know the question, and some callers are told nothing."""
    node = a.DescribedNode(name="a", client_address="a:1")
    ended = answering(monkeypatch, a.DescribeClusterResponse(node="a", nodes=[node]))

    assert ended.exit_code == 1
    assert "a told no anchor" in ended.stderr
    assert "error" in json.loads(ended.stdout)


def test_silence_is_told_from_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert answering(monkeypatch, None).exit_code == UNREACHED


def test_a_node_that_does_not_answer_is_named_beside_those_that_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who keeps anchors of all nodes is to know that one of them is missing."""
    nodes = [a.DescribedNode(name=name, client_address=f"{name}:1") for name in "ab"]
    told = a.DescribeClusterResponse(node="a", nodes=nodes)
    told.anchor.node = "a"
    monkeypatch.setattr(Cluster, "on_node", lambda *_: None)

    ended = answering(monkeypatch, told)

    assert ended.exit_code == 0
    assert json.loads(ended.stdout)["node"] == "a"
    assert ended.stderr == "holdfast: b did not answer, so there is no anchor of its log\n"
