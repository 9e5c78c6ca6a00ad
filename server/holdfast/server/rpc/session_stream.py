"""Session: calls of many members on one stream, many in a message, answered in any order.

A call takes no task: its answer is put on a list, and all that are on it when the writer comes
round travel as one message. A call is open until its answer is written. Above a bound of open
calls, and of the bytes of their messages, the stream is not read.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import grpc

from holdfast.runtime.errors import Crashed
from holdfast.server.guard.request_guard import SHORT_BYTES
from holdfast.server.rpc.callers import end, has_code, refusal
from holdfast.server.rpc.errors import (
    ENDED,
    LEADER_KEY,
    OUTCOME_KEY,
    CallFailed,
    Refused,
    ending,
    malformed,
)
from holdfast.server.rpc.heartbeat_stream import answered_before
from holdfast.server.rpc.slices import Slices
from holdfast.server.translate.session_answers import STATUS, encoded_answer, status_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence

    from google.protobuf.message import Message

    from holdfast.runtime.groups.actors import Actors, Call
    from holdfast.runtime.ports import ReplicaLike
    from holdfast.server.guard.pace import Pace
    from holdfast.server.guard.shares import Shares
    from holdfast.server.rpc.arrived_heartbeats import ArrivedHeartbeats
    from holdfast.server.rpc.callers import Callers, Context, Identity
    from holdfast.server.rpc.errors import Ended
    from holdfast.server.rpc.member_calls import MemberCall, MemberCalls
    from holdfast.v1 import group_pb2 as g

logger = logging.getLogger(__name__)

OPEN_MAX: Final = 4_096
"""Open calls from which a stream is not read: as many as a connection may have."""
ANSWERS_BYTES: Final = 1 << 20
"""Bytes of answers from which a message is written before further answers are made."""


class Desk(NamedTuple):
    """What the streams of a node share."""

    actors: Actors
    callers: Callers
    calls: MemberCalls
    arrived: ArrivedHeartbeats
    pace: Pace
    in_flight: Shares
    members_max: Callable[[], int]


class Sessions:
    """All open Session streams of a node."""

    def __init__(self, replica: ReplicaLike, desk: Desk) -> None:
        self._replica, self._desk = replica, desk
        self._streams: dict[_Stream, None] = {}

    async def serve(self, messages: AsyncIterator[g.SessionRequest], context: Context) -> None:
        """Serve one stream until the client ends it, or this node stops leading.

        A message that cannot be taken ends it with a status: a caller that numbers two calls alike
        could not tell their answers apart.
        """
        unanswered = False
        try:
            stream = _Stream(self._desk, self._desk.callers.identity(context), context.peer())
            self._streams[stream] = None
            try:
                await stream.serve(messages, context)
            finally:
                unanswered = bool(stream.open)
                del self._streams[stream]
                stream.close()
            if stream.told_to_end:
                context.set_trailing_metadata(self._last_words())
        except ENDED as error:
            await end(context, error, "unknown" if unanswered else "not-applied")
        except grpc.aio.AbortError:
            raise
        except Exception:
            logger.exception("a stream failed inside")
            await end(context, Crashed("a stream"))

    def _last_words(self) -> tuple[tuple[str, str], ...]:
        """Tell who leads, and that calls without an answer were not begun (S5)."""
        leader = self._desk.actors.leader_address
        told = ((OUTCOME_KEY, "not-applied"),)
        return (*told, (LEADER_KEY, leader)) if leader else told

    def stop(self) -> None:
        """End every stream, once the calls that are open on it are answered."""
        for stream in self._streams:
            stream.end()

    # --- the replica's listener ---

    def listen(self) -> None:
        """Subscribe to the replica, behind the actors, who fail every open call."""
        self._replica.subscribe(on_not_leading=self.stop)


class _Message:
    """The bytes of a message that has open calls: a request keeps all of its message in memory."""

    __slots__ = ("_calls", "_give_back")

    def __init__(self, calls: int, give_back: Callable[[], None]) -> None:
        self._calls, self._give_back = calls, give_back

    def answered(self, calls: int = 1) -> None:
        """Note that so many of its calls are open no more."""
        self._calls -= calls
        if not self._calls:
            self._give_back()


class _Open:
    """An open call. `made`: its response, or its end, if no actor was asked."""

    __slots__ = ("call", "kind", "made", "message", "number", "request")

    def __init__(
        self,
        number: int,
        kind: MemberCall[Any, Any] | None,
        request: Any,  # noqa: ANN401 - of any kind
        message: _Message | None,
    ) -> None:
        self.number, self.kind, self.request, self.message = number, kind, request, message
        self.call: Call | None = None
        self.made: Message | Exception | None = None

    def close(self) -> None:
        """Note that it is open no more."""
        if self.message is not None:
            self.message.answered()

    def give_up(self) -> None:
        """Close it without an answer; a join or sync is parked no more (S17)."""
        if self.call is not None:
            self.call.give_up()
        self.close()


class _Stream:
    """One open stream."""

    def __init__(self, desk: Desk, who: Identity, peer: str) -> None:
        self._desk, self._peer = desk, peer
        self._who = lambda: who
        self._kinds = {kind.field: kind for kind in desk.calls.all}
        self.open: dict[int, _Open] = {}
        self._done: list[_Open] = []
        self._news, self._room = asyncio.Event(), asyncio.Event()
        self._reader: asyncio.Task[None] | None = None
        self.told_to_end = False

    async def serve(self, messages: AsyncIterator[g.SessionRequest], context: Context) -> None:
        """Read and answer until reading has ended and every call is answered.

        Raises CallFailed for a message that cannot be taken, when what is answered is written.
        """
        await context.send_initial_metadata(())  # a client may wait for it before it sends
        self._reader = reader = asyncio.ensure_future(self._read(messages))
        reader.add_done_callback(lambda _: self._news.set())
        if self.told_to_end:
            reader.cancel()
        while not reader.done() or self._done or (self.open and not _failed(reader)):
            if not self._done:
                self._news.clear()
                await self._news.wait()
            done, self._done = self._done, []
            await self._write(done, context)
        if not reader.cancelled():
            reader.result()

    def end(self) -> None:
        """Begin no more calls; `serve` returns when those that are open are answered."""
        self.told_to_end = True
        if self._reader is not None:
            self._reader.cancel()

    def close(self) -> None:
        """Give up what is still open: nobody would get the answers."""
        if self._reader is not None:
            self._reader.cancel()
        for one in self.open.values():
            one.give_up()
        self.open.clear()

    # --- calls ---

    async def _read(self, messages: AsyncIterator[g.SessionRequest]) -> None:
        async for message in messages:
            await self._take(message)
            while len(self.open) >= OPEN_MAX:
                self._room.clear()
                await self._room.wait()

    async def _take(self, message: g.SessionRequest) -> None:
        """Begin the calls of a message; then wait, if they are long, until the caller may go on.

        What arrived is begun before anything waits: it may hold heartbeats (S9).
        """
        for number in message.given_up:
            self._give_up(number)
        count, size, held = len(message.calls), message.ByteSize(), None
        if not count:
            return
        if size > SHORT_BYTES:
            self._desk.in_flight.add(self._peer, size)
            held = _Message(count, partial(self._desk.in_flight.give_back, self._peer, size))
        await self._desk.pace.timed(self._peer, self._begin(message, held), calls=count)
        if size > SHORT_BYTES * count:
            await self._desk.pace.turn(self._peer)
        if held is not None:
            await self._desk.in_flight.room(self._peer)

    async def _begin(self, message: g.SessionRequest, held: _Message | None) -> None:
        """Begin all calls of a message, in slices; a sessions's end waits for its heartbeats."""
        asked = [(call.number, call.WhichOneof("request"), call) for call in message.calls]
        begun = 0
        try:
            self._check_numbers([number for number, _, _ in asked])
            beats = [call.heartbeat for _, field, call in asked if field == "heartbeat"]
            slices = Slices()
            with self._desk.arrived.counted(beats) if beats else contextlib.nullcontext():
                for number, field, call in asked:
                    kind = self._kinds.get(field or "")
                    request = None if field is None else getattr(call, field)
                    one = _Open(number, kind, request, held)
                    await self._begin_one(one, slices)
                    begun += 1
        finally:
            if held is not None and begun < len(asked):
                held.answered(len(asked) - begun)

    def _check_numbers(self, numbers: Sequence[int]) -> None:
        """Raise CallFailed if two open calls would have the same number."""
        known = set(numbers)
        if len(known) < len(numbers):
            raise malformed("calls.number", "two calls of a message have the same; count them up")
        for number in known & self.open.keys():
            problem = f"{number} is the number of a call that is still open; use another one"
            raise malformed("calls.number", problem)

    async def _begin_one(self, one: _Open, slices: Slices) -> None:
        """Submit a call; one that is refused is answered alone."""
        try:
            if one.kind is None:
                raise _unknown(one.number)  # noqa: TRY301 - answered like every refusal
            items = one.kind.items(one.request)
            await slices.done(items)
            if items > one.kind.bounds.least:
                one.kind.bounds.check(one.request, self._desk.members_max)
            parts = await one.kind.parts(one.request)
            if self._desk.actors.overtakes():
                await self._desk.actors.in_order()
            self._submit(one, one.kind, parts)
        except ENDED as error:
            one.made = error.with_traceback(None)  # which would keep the message in memory
        except Exception:
            logger.exception("a call failed inside")
            one.made = _crashed(one)
        self.open[one.number] = one
        if one.call is None:
            self._finish(one)

    def _submit(self, one: _Open, kind: MemberCall[Any, Any], parts: Sequence[Any]) -> None:
        if kind is self._desk.calls.heartbeat:
            one.made = answered_before(self._desk.actors, one.request)
            if one.made is not None:
                return
        with self._desk.actors.open() as call:
            caller = kind.caller(self._who, call.number, one.request)
            call.submit(kind.command(one.request, caller, parts))
        one.call = call
        call.future.add_done_callback(lambda _: self._finish(one))

    def _give_up(self, number: int) -> None:
        one = self.open.pop(number, None)
        if one is not None:
            one.give_up()

    def _finish(self, one: _Open) -> None:
        """Note that a call has its answer; the writer takes all of them together."""
        self._done.append(one)
        self._news.set()

    # --- answers ---

    async def _write(self, done: Iterable[_Open], context: Context) -> None:
        """Write the answers to these calls, in as few messages as their size allows."""
        parts: list[bytes] = []
        size, slices = 0, Slices()
        for one in done:
            await slices.done()
            if self.open.get(one.number) is not one:
                continue  # given up meanwhile
            del self.open[one.number]
            parts.append(await _answer(one))
            one.close()
            size += len(parts[-1])
            if size >= ANSWERS_BYTES:
                await context.write(b"".join(parts))
                parts, size = [], 0
        if parts:
            await context.write(b"".join(parts))
        if len(self.open) < OPEN_MAX:
            self._room.set()


def _failed(reader: asyncio.Task[None]) -> bool:
    """Return whether reading has ended because of a message that could not be taken."""
    return reader.done() and not reader.cancelled() and reader.exception() is not None


def _unknown(number: int) -> CallFailed:
    return CallFailed(
        grpc.StatusCode.UNIMPLEMENTED,
        f"call {number}: this node knows no such call on a Session stream; make it as a unary "
        "call, or upgrade the node",
        "not-applied",
    )


async def _answer(one: _Open) -> bytes:
    """Encode the answer to a call that is done."""
    try:
        return await _response(one)
    except ENDED as error:
        return _ended(one, error)
    except Exception:
        logger.exception("a call failed inside")
        return _ended(one, _crashed(one))


async def _response(one: _Open) -> bytes:
    """Encode the response of a call; raises what it ended with instead."""
    if isinstance(one.made, Exception):
        raise one.made
    if one.kind is not None and one.made is not None:
        return encoded_answer(one.number, one.kind.field, one.made)
    if one.kind is None or one.call is None:
        raise RuntimeError(f"call {one.number} was taken for done and has no answer")
    got = one.call.future.result()
    made = one.kind.response(one.request, got, await one.kind.results(got.reply))
    return encoded_answer(one.number, one.kind.field, made)


def _ended(one: _Open, error: Ended) -> bytes:
    """Encode the end of a call: a response with a code where it has one, as unary, or a status."""
    told, kind = ending(error), one.kind
    if kind is not None and isinstance(told, Refused) and has_code(kind.respond):
        return encoded_answer(one.number, kind.field, refusal(kind.respond, told))
    return encoded_answer(one.number, STATUS, status_of(told))


def _crashed(one: _Open) -> Crashed:
    return Crashed(f"a {one.kind.field}" if one.kind else "a call")
