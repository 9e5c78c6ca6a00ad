"""`holdfast group list` and `holdfast topic list` show lists of any length, page after page."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from click.testing import CliRunner

from holdfast.cli import connect
from holdfast.cli.main import main
from holdfast.coordinator.kernel.group_types import new_group
from holdfast.coordinator.model.events import TopicSize
from holdfast.coordinator.structures.pmap import PMap
from unit.server.nodes import served

NAMES = [f"n-{n}" for n in range(5)]


def shown(*words: str) -> str:
    """What the command prints of a cluster with these groups and topics, asked in pages of two."""

    async def story() -> str:
        async with served() as node:
            groups = PMap({name: new_group(name) for name in NAMES})
            topics = PMap({name: TopicSize(name, 3) for name in NAMES})
            node.replica.state = node.replica.state._replace(groups=groups, topics=topics)
            command = [*words, "--address", node.address]
            ended = await asyncio.to_thread(CliRunner().invoke, main, command)
        assert ended.exit_code == 0, ended.output
        return ended.output

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connect, "PAGE_SIZE", 2)
        return asyncio.run(story())


@pytest.mark.parametrize("what", ["group", "topic"])
def test_a_list_is_whole_however_many_pages_it_has(what: str) -> None:
    lines = shown(what, "list").splitlines()[1:]
    assert [line.split()[0] for line in lines] == NAMES


def test_for_programs_the_pages_are_one_answer() -> None:
    """No token is left over, which would look as if there were more."""
    answer: Any = json.loads(shown("group", "list", "--json"))
    assert [group["group_id"] for group in answer["groups"]] == NAMES
    assert not answer["holdfast"].get("next_page_token")


def test_a_filter_holds_for_all_pages() -> None:
    assert len(shown("group", "list", "--state", "empty").splitlines()) == 1 + len(NAMES)
    assert len(shown("group", "list", "--state", "stable").splitlines()) <= 1
