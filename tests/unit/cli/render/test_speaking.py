"""What callers gave is read by people: no raw control reaches a terminal, a log or a program."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from typing import TYPE_CHECKING

import grpc
import pytest
from click.testing import CliRunner

from holdfast.cli.main import main
from holdfast.cli.options import table
from holdfast.cli.render.speaking import say
from holdfast.coordinator.model.text import OBEYED
from holdfast.server.process import logs
from holdfast.server.process.logs import JsonForm, TextForm
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import extras_pb2 as x
from holdfast.v1 import group_pb2 as g
from unit.server.nodes import Served, join, served, sync, topic
from unit.server.nodes import commit as committing

if TYPE_CHECKING:
    from collections.abc import Sequence

POISON = "".join(chr(point) for point in OBEYED if point) + "\x1b]0;owned\x07"
"""Everything that a terminal obeys; NUL no call may carry."""
GROUP = "g\x85\u202e\x9b2J"
"""A group id may not have controls of ASCII; the others are the caller's."""
LOOKS = (
    ("group", "describe", GROUP),
    ("group", "explain", GROUP),
    ("group", "list"),
    ("offsets", "list", GROUP),
    ("log", "tail"),
    ("group", "describe", "nope" + GROUP),
    ("group", "delete", GROUP),
)


def raw(printed: str) -> list[str]:
    """Controls in what was printed, but for the ends of its lines."""
    return [c for c in printed.replace("\n", "") if ord(c) in OBEYED]


async def poison(node: Served) -> None:
    """A member whose every text is poison, an offset with such metadata, and such a reason."""
    asked = join(group_id=GROUP, instance_id=None)
    asked.protocol_type, asked.reason = f"type{POISON}", f"reason{POISON}"
    asked.protocols[0].name = f"name{POISON}"
    asked.member_id = (await node.group.JoinGroup(asked)).member_id
    joined = await node.group.JoinGroup(asked)
    synced = sync(joined)
    synced.ClearField("group_instance_id")
    synced.group_id, synced.protocol_type = GROUP, asked.protocol_type
    synced.protocol_name = asked.protocols[0].name
    assert (await node.group.SyncGroup(synced)).error_code == 0
    await topic(node)
    commit = committing(1, group_id=GROUP)
    commit.generation_id_or_member_epoch, commit.member_id = joined.generation_id, joined.member_id
    commit.topics[0].partitions[0].committed_metadata = f"text{POISON}"
    await node.offset.OffsetCommit(commit)
    forced = a.TriggerRebalanceRequest(group_id=GROUP, reason=f"force{POISON}")
    await node.admin.TriggerRebalance(forced)


def looked(commands: Sequence[Sequence[str]]) -> list[tuple[str, str]]:
    """What each command printed to both streams, on a node with a poisoned group."""

    async def story() -> list[tuple[str, str]]:
        async with served() as node:
            await poison(node)
            where = ("--address", node.address)
            return [await asyncio.to_thread(_run, (*each, *where)) for each in commands]

    return asyncio.run(story())


def _run(command: Sequence[str]) -> tuple[str, str]:
    ended = CliRunner().invoke(main, list(command))
    assert ended.exception is None or isinstance(ended.exception, SystemExit), ended.exception
    return ended.stdout, ended.stderr


def test_no_command_prints_a_raw_control() -> None:
    printed = looked(LOOKS)
    assert [raw(out + err) for out, err in printed] == [[]] * len(LOOKS)
    describe, explain, _, offsets, tail, *_ = (out for out, _ in printed)
    assert "force" in explain
    assert all(r"\x1b]0;owned\x07" in out for out in (describe, explain, offsets, tail))
    assert len(tail.splitlines()) == len(tail.split("\n")) - 1, "one line an event"


def test_json_gives_the_texts_back_exactly_and_shows_no_raw_control() -> None:
    printed = looked([(*look, "--json") for look in LOOKS[:4]])
    assert [raw(out + err) for out, err in printed] == [[]] * 4
    described, _, listed, fetched = (json.loads(out) for out, _ in printed)
    (member,) = described["groups"][0]["members"]
    assert member["holdfast"]["protocols"] == [f"name{POISON}"]
    assert listed["groups"][0]["group_id"] == GROUP
    (offset,) = fetched["groups"][0]["topics"][0]["partitions"]
    assert offset["metadata"] == f"text{POISON}"


def test_the_log_as_json_is_exact_too() -> None:
    ((out, _),) = looked([("log", "tail", "--json")])
    assert raw(out) == []
    events = [json.loads(line) for line in out.splitlines()]
    reasons = [e["event"].get("rebalance_started", {}).get("reason") for e in events]
    assert f"force{POISON}" in reasons


@pytest.mark.parametrize("point", OBEYED)
def test_a_line_and_a_cell_are_one_line_each(
    point: int, capsys: pytest.CaptureFixture[str]
) -> None:
    say(f"a{chr(point)}b")
    table(("HEAD",), [(f"a{chr(point)}b",)])
    printed = capsys.readouterr().out
    assert raw(printed) == []
    assert printed.count("\n") == 3


@pytest.mark.parametrize("form", [TextForm, JsonForm])
@pytest.mark.parametrize("point", OBEYED)
def test_a_node_s_log_has_one_line_an_event_and_no_raw_control(
    form: type[logs._Form], point: int
) -> None:
    text = f"a{chr(point)}b"
    record = logging.LogRecord(text, logging.WARNING, "", 0, "%s", (text,), None)
    line = form("node-1").format(record)
    assert raw(line) == []
    assert "\n" not in line
    if form is JsonForm:
        assert json.loads(line)["message"] == text


def test_a_node_that_is_told_poison_logs_it_readable() -> None:
    """A caller without names is logged with its own (admin_service)."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(TextForm("node-1"))
    root = logging.getLogger("holdfast.server")
    root.addHandler(handler)

    async def story() -> None:
        async with served() as node:
            nobody = [a.MemberToRemove()]
            await node.admin.RemoveMembers(a.RemoveMembersRequest(group_id=GROUP, members=nobody))

    try:
        asyncio.run(story())
    finally:
        root.removeHandler(handler)
    assert "name nobody" in stream.getvalue()
    assert raw(stream.getvalue()) == []


def test_wrong_usage_repeats_what_was_pasted_readable() -> None:
    ended = CliRunner().invoke(main, ["settings", "set", f"x{POISON}", "--address", "127.0.0.1:1"])
    assert ended.exit_code == 2
    assert raw(ended.output) == []


def test_what_a_call_is_refused_with_is_readable() -> None:
    async def story() -> tuple[str, str]:
        async with served() as node:
            heartbeat = g.HeartbeatRequest(group_id=GROUP, member_id=POISON, generation_id=1)
            refused = (await node.group.Heartbeat(heartbeat)).holdfast.message
            marked = x.RequestExtras(request_id=POISON)
            with pytest.raises(grpc.aio.AioRpcError) as failed:
                await node.admin.DeleteTopics(a.DeleteTopicsRequest(holdfast=marked))
            return refused, failed.value.details() or ""

    refused, failed = asyncio.run(story())
    assert refused
    assert failed
    assert raw(refused + failed) == []
