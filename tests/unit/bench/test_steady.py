"""Callers of a long row follow the leader; what they have to repeat lengthens their calls."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bench import steady
from bench.rig import Running
from bench.talk import Line, Unexpected


class Channel:
    def __init__(self) -> None:
        self.closed = False

    async def close(self) -> None:
        self.closed = True


class Talk:
    """Nodes of which `b` leads since nobody knows when."""

    def __init__(self) -> None:
        self.leader = SimpleNamespace(address="a")
        self.opened: list[tuple[str, Channel]] = []

    def line(self, address: str) -> Any:  # noqa: ANN401 - stands in for a Line
        self.opened.append((address, Channel()))
        return SimpleNamespace(address=address, channel=self.opened[-1][1])

    async def find_leader(self) -> Any:  # noqa: ANN401 - stands in for a Node
        return SimpleNamespace(address="b")


def following(talk: Talk) -> steady.Following:
    return steady.Following(cast("Running", SimpleNamespace(talk=talk)))


def test_a_call_that_another_node_must_serve_is_made_there() -> None:
    talk, asked = Talk(), []

    async def act(line: Line) -> None:
        asked.append(cast("Any", line).address)
        if asked[-1] == "a":
            raise Unexpected("a commit", 16)

    async def story() -> None:
        async with following(talk) as caller:
            await caller.until_served(act)
            await caller.until_served(act)

    asyncio.run(story())

    assert asked == ["a", "b", "b"]
    assert [(address, channel.closed) for address, channel in talk.opened] == [
        ("a", True),
        ("b", True),
    ]


def test_a_call_that_nobody_serves_ends_the_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steady, "GIVE_UP_S", 0.0)

    async def act(line: Line) -> None:
        del line
        raise Unexpected("a commit", 16)

    async def story() -> None:
        async with following(Talk()) as caller:
            await caller.until_served(act)

    with pytest.raises(Unexpected, match="a commit was answered ERROR_CODE_NOT_COORDINATOR"):
        asyncio.run(story())
