"""A client's side of a Session stream, for tests: numbered calls, and their answers by number."""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING, Any, cast

import grpc

from holdfast.v1 import group_pb2 as g
from unit.runtime.fake_replica import BEGAN_MS
from unit.server.nodes import join, sync

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from unit.server.nodes import Served

WITHIN_S = 30
FIELDS = {
    field.message_type.name: field.name
    for field in g.SessionCall.DESCRIPTOR.oneofs_by_name["request"].fields
    if field.message_type is not None
}


def run(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a story with a limit that only a hang reaches."""

    async def limited() -> None:
        async with asyncio.timeout(WITHIN_S):
            await story()

    asyncio.run(limited())


def request_id() -> str:
    """A new UUIDv7 of the log time of a new `FakeReplica`: within its window (S15)."""
    digits = f"{BEGAN_MS:012x}"
    return f"{digits[:8]}-{digits[8:]}-7{str(uuid.uuid4())[15:]}"


def call(number: int, request: Any) -> g.SessionCall:  # noqa: ANN401 - of any kind
    """A numbered call."""
    return g.SessionCall(number=number, **{FIELDS[type(request).__name__]: request})


class Stream:
    """One Session stream of a client: sends lists of calls, and gathers their answers."""

    def __init__(self, node: Served, metadata: tuple[tuple[str, str], ...] = ()) -> None:
        self.call = node.group.Session(metadata=metadata)
        self.messages: list[list[int]] = []
        """The numbers that each message has answered."""
        self._answers: dict[int, g.SessionAnswer] = {}
        self._reading: AsyncIterator[Any] = aiter(self.call)

    async def send(self, *calls: g.SessionCall, given_up: tuple[int, ...] = ()) -> None:
        """Send one message."""
        await self.call.write(g.SessionRequest(calls=calls, given_up=given_up))

    async def answer(self, number: int) -> g.SessionAnswer:
        """Read until this call is answered."""
        while number not in self._answers:
            message = cast("g.SessionResponse", await anext(self._reading))
            self.messages.append([one.number for one in message.answers])
            self._answers |= {one.number: one for one in message.answers}
        return self._answers[number]

    async def ask(self, number: int, request: Any) -> Any:  # noqa: ANN401 - of any kind
        """Make one call; its response, or its status."""
        await self.send(call(number, request))
        one = await self.answer(number)
        return getattr(one, one.WhichOneof("response") or "")

    async def end(self) -> tuple[grpc.StatusCode, dict[str, str]]:
        """Read to the end; its status and trailing metadata."""
        try:
            async for message in self._reading:
                self.messages.append([one.number for one in message.answers])
                self._answers |= {one.number: one for one in message.answers}
        except grpc.aio.AioRpcError as error:
            return error.code(), {k: str(v) for k, v in error.trailing_metadata() or ()}
        trailing = await self.call.trailing_metadata()
        return await self.call.code(), {k: str(v) for k, v in trailing or ()}

    def answered(self, number: int) -> g.SessionAnswer:
        """An answer that was read already."""
        return self._answers[number]


async def member(node: Served, instance_id: str = "i1") -> g.JoinGroupResponse:
    """Join alone and sync, by unary calls."""
    joined = await node.group.JoinGroup(join(instance_id=instance_id))
    await node.group.SyncGroup(sync(joined, instance_id))
    return joined


def parked(node: Served) -> int:
    """How many joins are parked in the group `g`."""
    actor = node.node.actors.actor("g")
    return sum(1 for one in actor.volatile.joins.values() if one.call) if actor else 0


async def beat_through(node: Served) -> None:
    """Whatever was on its way to the node before is there."""
    for _ in range(3):
        await node.group.FindCoordinator(g.FindCoordinatorRequest())
