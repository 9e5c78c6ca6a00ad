"""`holdfast offsets` changes any number of offsets, though one call may have only so many."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from holdfast.cli.main import main
from holdfast.coordinator.kernel.group_types import new_group
from holdfast.coordinator.model.events import TopicSize
from holdfast.coordinator.model.ids import TopicPartition
from holdfast.coordinator.model.state import Offset
from holdfast.coordinator.structures.pmap import PMap
from holdfast.server.guard import item_bounds
from unit.server.nodes import served

MANY = item_bounds.OFFSETS_MAX + 1


def changed(*words: str) -> tuple[Result, list[int]]:
    """How the command ended on a group with `MANY` offsets, all 7; and what is left of them."""

    async def story() -> tuple[Result, list[int]]:
        async with served() as node:
            offset = Offset(7, -1, "", 0)
            places = (TopicPartition("t", n) for n in range(MANY))
            offsets = PMap[TopicPartition, Offset]((place, offset) for place in places)
            state = node.replica.state
            node.replica.state = state._replace(
                groups=PMap({"g": new_group("g")._replace(offsets=offsets)}),
                topics=PMap({"t": TopicSize("t", MANY)}),
            )
            command = ["offsets", *words, "--address", node.address]
            ended = await asyncio.to_thread(CliRunner().invoke, main, command)
            left = node.replica.state.groups["g"].offsets.values()
            return ended, [each.offset for each in left]

    return asyncio.run(story())


def test_more_offsets_than_one_call_may_have_are_reset() -> None:
    ended, left = changed("reset", "g", "--to-offset", "9")

    assert ended.exit_code == 0, ended.output
    assert left == [9] * MANY
    assert ended.stdout == f"committed {MANY} offsets\n"
    assert ended.stderr.splitlines()[0] == f"answered up to t:{MANY - 2}: {MANY - 1} of {MANY}"


def test_more_offsets_than_one_call_may_have_are_deleted() -> None:
    ended, left = changed("delete", "g", "t")

    assert ended.exit_code == 0, ended.output
    assert left == []


@pytest.mark.parametrize("command", [("reset", "g", "--to-offset", "9"), ("delete", "g", "t")])
def test_for_programs_the_answers_are_one(command: tuple[str, ...]) -> None:
    ended, _ = changed(*command, "--json")

    answer: Any = json.loads(ended.stdout)
    told = [p["partition_index"] for topic in answer["topics"] for p in topic["partitions"]]
    assert told == list(range(MANY))
