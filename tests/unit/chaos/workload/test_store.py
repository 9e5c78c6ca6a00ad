"""S13: the storage outside compares tokens per (group, topic, partition), and says what it did."""

from __future__ import annotations

import asyncio
from pathlib import Path

from holdfast.chaos.history.happenings import Wrote
from holdfast.chaos.history.jsonl import read
from holdfast.chaos.workload.recorder import Recorder
from holdfast.chaos.workload.store import Store, StoreClient, Tokens, Write


def write(token: int, partition: int = 0, group: str = "g") -> Write:
    return Write("m", group, "t", partition, token)


def test_s13_a_lower_token_is_refused_and_an_equal_one_is_not() -> None:
    tokens = Tokens()

    assert [tokens.write(write(token)) for token in (5, 5, 4, 6, 5)] == [1, 2, 0, 3, 0]


def test_s13_one_maximum_for_the_whole_store_would_refuse_rightful_owners() -> None:
    tokens = Tokens()
    tokens.write(write(9, partition=0))

    assert tokens.write(write(1, partition=1)) == 1
    assert tokens.write(write(1, group="other")) == 1


def test_writes_come_over_a_socket_and_are_written_down(tmp_path: Path) -> None:
    """As the store decided them, in its order."""

    async def scene() -> list[int]:
        recorder = Recorder(tmp_path / "history", 0)
        async with Store(tmp_path / "socket", recorder):
            client = StoreClient(tmp_path / "socket")
            numbers = [await client.write(write(token)) for token in (2, 1, 2)]
            client.close()
        recorder.close()
        return numbers

    assert asyncio.run(scene()) == [1, 0, 2]
    wrote = [each for each in read(tmp_path / "history") if isinstance(each, Wrote)]
    assert [(each.token, each.accepted) for each in wrote] == [(2, True), (1, False), (2, True)]
