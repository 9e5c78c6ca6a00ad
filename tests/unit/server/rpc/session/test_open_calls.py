"""What a Session stream may have open, and what becomes of the rest (S17)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.server.guard import request_guard
from holdfast.server.rpc.session import open_calls
from unit.server.nodes import commit, served, topic, until
from unit.server.session_calls import Stream, beat_through, call, run

if TYPE_CHECKING:
    import pytest


def test_a_stream_with_too_many_open_calls_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flow control holds the caller back, and nothing is refused."""
    monkeypatch.setattr(open_calls, "OPEN_MAX", 3)

    async def story() -> None:
        async with served() as node:
            await topic(node)
            before = len(node.replica.proposed)
            node.replica.hold = True
            stream = Stream(node)
            for number in range(1, 11):
                await stream.send(call(number, commit(number, group_id=f"g{number}")))
            await until(lambda: len(node.replica.proposed) == before + 3)
            await beat_through(node)
            begun = len(node.replica.proposed) - before
            node.replica.hold = False
            node.replica.release()
            await stream.answer(10)

            assert begun == 3
            assert sorted(n for each in stream.messages for n in each) == list(range(1, 11))

    run(story)


def test_a_caller_with_too_many_bytes_open_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A parked call keeps its message in memory; what its connection holds is one account."""
    monkeypatch.setattr(request_guard, "IN_FLIGHT_EACH_MAX", 5_000)

    async def story() -> None:
        async with served() as node:
            await topic(node)
            before = len(node.replica.proposed)
            node.replica.hold = True
            stream = Stream(node)
            for number in range(1, 6):
                long = commit(number, group_id=f"g{number}")
                long.topics[0].partitions[0].committed_metadata = "m" * 3_000
                await stream.send(call(number, long))
            await until(lambda: len(node.replica.proposed) == before + 2)
            await beat_through(node)
            begun = len(node.replica.proposed) - before
            node.replica.hold = False
            node.replica.release()
            await stream.answer(5)
            free = not node.node._desk.in_flight._held

            assert begun == 2
            assert free

    run(story)
