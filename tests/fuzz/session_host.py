"""A node's Session service in one process, without gRPC: the real rules on a fake log.

A `Wire` stands in for gRPC's two ends of a stream: a client puts bytes in and reads answers, ends
its side, breaks the stream off, or stops reading. Time passes for the pace only where it waits.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import grpc

from harness.no_copies import NoCopies
from holdfast.raft.api import OutcomeUnknown
from holdfast.server.guard.item_bounds import Bounds
from holdfast.server.guard.pace import Pace
from holdfast.server.guard.request_guard import InForce, _decoding
from holdfast.server.guard.shares import Shares
from holdfast.server.process.node import Node
from holdfast.server.rpc.session.sessions import Sessions
from holdfast.v1 import group_pb2 as g
from unit.runtime.fake_history import FakeHistory
from unit.runtime.fake_replica import FakeReplica
from unit.runtime.world import creating
from unit.server.nodes import config

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from holdfast.server.rpc.session.stream import Stream

LOGGED_FROM = logging.ERROR
EXPECTED = "was not proposed"
"""What a node says of a log that is full, as it is in some walks."""
BARRIER_TURNS = 9
TURNS = 150
"""Turns of the loop in which everything happens that waits for nobody."""
BYTES_MAX = 4 << 20
decode = _decoding(
    g.SessionRequest.FromString,
    Bounds(g.SessionRequest.DESCRIPTOR),
    InForce(lambda: BYTES_MAX, lambda: 10_000),
)
"""What stands between the socket and the service (`_Door`)."""


async def settle(turns: int = TURNS) -> None:
    """Let everything happen that waits for nobody."""
    for _ in range(turns):
        await asyncio.sleep(0)


class Wire:
    """One stream; as the service's context it is all of gRPC that the service sees."""

    def __init__(self, number: int) -> None:
        self.answers: list[g.SessionAnswer] = []
        self.code: grpc.StatusCode | None = None
        self.trailing: dict[str, str] = {}
        self.inbox: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.readable = asyncio.Event()
        self.readable.set()
        self.serving: asyncio.Future[None] | None = None
        self._peer = f"ipv4:127.0.0.1:{number}"

    async def messages(self) -> AsyncIterator[g.SessionRequest]:
        while (raw := await self.inbox.get()) is not None:
            yield decode(raw)

    def peer(self) -> str:
        return self._peer

    def auth_context(self) -> dict[str, Any]:
        return {}

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return ()

    async def send_initial_metadata(self, _: object) -> None:
        await asyncio.sleep(0)

    async def write(self, raw: bytes) -> None:
        await self.readable.wait()
        self.answers.extend(g.SessionResponse.FromString(raw).answers)

    def set_trailing_metadata(self, trailing: tuple[tuple[str, str], ...]) -> None:
        self.trailing = dict(trailing)

    async def abort(
        self, code: grpc.StatusCode, _: str, trailing: tuple[tuple[str, str], ...]
    ) -> None:
        self.code = code
        self.set_trailing_metadata(trailing)
        raise grpc.aio.AbortError

    def break_off(self) -> None:
        """End the stream without a word, as a lost connection does."""
        if self.serving is not None:
            self.serving.cancel()

    @property
    def ended(self) -> bool:
        return self.serving is not None and self.serving.done()


def _seen(serving: asyncio.Future[None]) -> None:
    """Mark what gRPC ends a call with as seen; anything else is raised by whoever awaits it."""
    if not serving.cancelled():
        serving.exception()


class _Clock:
    """Moves by what is slept, and never else."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


class _Replica(FakeReplica):
    """A fake log whose barriers take a while."""

    async def read_barrier(self) -> None:
        await settle(BARRIER_TURNS)
        await super().read_barrier()


class Host:
    """A leading node that has the topic `t`; `bytes_each`: of open messages, for a caller."""

    def __init__(self, bytes_each: int) -> None:
        self.replica = _Replica()
        self.node = Node(
            config(), self.replica, FakeHistory(self.replica), NoCopies(), [grpc.aio.server()]
        )
        clock = _Clock()
        self.bytes = Shares("bytes", bytes_each, 4 * bytes_each, "")
        pace = Pace(clock, clock.sleep)
        self.desk = self.node._desk._replace(pace=pace, in_flight=self.bytes)
        self.sessions = Sessions(self.replica, self.desk)
        self.sessions.listen()
        self._wires = 0

    async def begin(self) -> None:
        self.replica.lead()
        await settle()
        with self.node.actors.open() as call:
            await call.ask(creating("t")(call.number))

    def connect(self) -> Wire:
        """Open a stream, from a peer of its own."""
        self._wires += 1
        wire = Wire(self._wires)
        serving = self.sessions.serve(wire.messages(), wire)  # type: ignore[arg-type]  # all that is used of it
        wire.serving = asyncio.ensure_future(serving)
        wire.serving.add_done_callback(_seen)
        return wire

    def commit_unseen(self) -> None:
        """Commit what waits, whose fate nobody here has seen: it is unknown to its callers."""
        parts = [part for part, _ in self.replica._waiting]
        self.replica.settle(OutcomeUnknown("leadership was lost"))
        for part in parts:
            self.replica._apply(part)

    def stream(self) -> Stream | None:
        """The node's side of the stream that is open."""
        return next(iter(self.sessions._streams), None)

    def parked(self) -> set[int]:
        """The calls that wait for other members, by the node's number."""
        actors = self.node.actors._actors.values()
        return {call for actor in actors for call in actor.volatile.calls}

    def kept(self) -> list[str]:
        """What is left of streams that are over; nothing may be."""
        calls = self.node.actors.calls
        places = {
            "a stream": self.sessions._streams,
            "bytes": self.bytes._held,
            "heartbeats under way": self.desk.arrived._under_way,
            "open calls": calls._open,
            "calls to be told of": calls._when_parked,
            "parked calls": self.parked(),
        }
        return [f"{what}: {held}" for what, held in places.items() if held]


@contextmanager
def told() -> Iterator[list[str]]:
    """Collect what the node says loudly: a call that fails inside is a defect."""
    said: list[str] = []

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if EXPECTED not in record.getMessage():
                raised = record.exc_info[1] if record.exc_info else None
                said.append(f"{record.getMessage()}: {raised!r}")

    ear, root = Ear(LOGGED_FROM), logging.getLogger()
    root.addHandler(ear)
    try:
        yield said
    finally:
        root.removeHandler(ear)
