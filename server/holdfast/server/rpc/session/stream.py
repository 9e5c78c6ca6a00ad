"""One Session stream: reads messages of calls, submits the calls, and writes their answers.

A call takes no task: its answer is put on a list, and all that are on it when the writer comes
round travel as one message. The stream is not read while too much is open (`open_calls`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import grpc

from holdfast.server.guard.pace import BYTE_S
from holdfast.server.guard.request_guard import SHORT_BYTES
from holdfast.server.rpc.errors import ENDED, CallFailed, malformed
from holdfast.server.rpc.session.answering import answer, crashed, told
from holdfast.server.rpc.session.open_calls import PUSHES_MAX, LongMessage, OpenCall, OpenCalls
from holdfast.server.rpc.slices import Slices
from holdfast.server.traces.traceparent import parsed
from holdfast.v1 import group_pb2 as g

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence

    from holdfast.runtime.groups.actors import Actors
    from holdfast.server.access.principal_limits import PrincipalLimits
    from holdfast.server.guard.pace import Pace
    from holdfast.server.guard.shares import Shares
    from holdfast.server.metrics.call_counts import CallCounts
    from holdfast.server.rpc.arrived_heartbeats import ArrivedHeartbeats
    from holdfast.server.rpc.callers import Callers, Context, Identity
    from holdfast.server.rpc.calls.member_call import MemberCall
    from holdfast.server.rpc.calls.member_calls import MemberCalls
    from holdfast.server.rpc.pushes.carriers import Carriers
    from holdfast.server.traces.traces import Traces

logger = logging.getLogger(__name__)

IDLE_S: Final = 0.0002
"""Seconds of the loop that a message counts for which neither begins nor gives up a call."""
ANSWERS_BYTES: Final = 1 << 20
"""Bytes of answers from which a message is written before further answers are made."""

PUSHES_A_MESSAGE: Final = 1_000

HEARTBEATS: Final = frozenset({"heartbeat", "consumer_heartbeat"})
"""The fields of calls before which no session of their members ends (S9 a)."""


class Desk(NamedTuple):
    """What the streams of a node share."""

    actors: Actors
    callers: Callers
    calls: MemberCalls
    arrived: ArrivedHeartbeats
    pace: Pace
    in_flight: Shares
    members_max: Callable[[], int]
    counts: CallCounts
    limits: PrincipalLimits
    carriers: Carriers
    traces: Traces | None = None


class Stream:
    """One open stream, which is a `Carrier` of the members whose heartbeats it has."""

    def __init__(self, desk: Desk, who: Identity, peer: str) -> None:
        self._desk, self._peer = desk, peer
        self._who = lambda: who
        self._principal: Callable[[], str] = lambda: who.principal
        self._kinds = {kind.field: kind for kind in desk.calls.all}
        self.open = OpenCalls()
        self._done: list[OpenCall] = []
        self._pushes: list[g.HeartbeatPush] = []
        self._news = asyncio.Event()
        self._reader: asyncio.Task[None] | None = None
        self.told_to_end = False

    async def serve(self, messages: AsyncIterator[g.SessionRequest], context: Context) -> None:
        """Read and answer until reading has ended and every call is answered.

        Raises CallFailed for a message that cannot be taken, when what is answered is written.
        """
        self._reader = reader = asyncio.ensure_future(self._read(messages))
        reader.add_done_callback(lambda _: self._news.set())
        if self.told_to_end:
            reader.cancel()
        while not reader.done() or self._done or (self.open and not _failed(reader)):
            if not self._done and not self._pushes:
                self._news.clear()
                await self._news.wait()
            await self._write_pushes(context)
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
        self.open.give_up_all()
        self._desk.carriers.close(self)

    # --- pushes ---

    def principal(self) -> str:
        """Return who calls."""
        return self._principal()

    def push(self, pushes: Sequence[g.HeartbeatPush]) -> int:
        """Queue pushes, unless too many wait; returns how many were left out."""
        if len(self._pushes) >= PUSHES_MAX:
            return len(pushes)
        self._pushes += pushes
        self._news.set()
        return 0

    async def _write_pushes(self, context: Context) -> None:
        pushes, self._pushes = self._pushes, []
        for first in range(0, len(pushes), PUSHES_A_MESSAGE):
            some = pushes[first : first + PUSHES_A_MESSAGE]
            await context.write(g.SessionResponse(pushes=some).SerializeToString())

    # --- calls ---

    async def _read(self, messages: AsyncIterator[g.SessionRequest]) -> None:
        async for message in messages:
            await self._take(message)
            await self.open.room()

    async def _take(self, message: g.SessionRequest) -> None:
        """Begin the calls of a message; then wait, if they are long, until the caller may go on.

        What arrived is begun before anything waits: it may hold heartbeats (S9).
        """
        given_up = sum(map(self._give_up, message.given_up))
        count, size, held = len(message.calls), message.ByteSize(), None
        if not count:
            await self._pay(size, given_up)
            return
        if size > SHORT_BYTES:
            self._desk.in_flight.add(self._peer, size)
            held = LongMessage(count, partial(self._desk.in_flight.give_back, self._peer, size))
        await self._desk.pace.timed(self._peer, self._begin(message, held), calls=count)
        if size > SHORT_BYTES * count:
            await self._desk.pace.turn(self._peer)
        if held is not None:
            await self._desk.in_flight.room(self._peer)

    def _give_up(self, number: int) -> bool:
        """Give a call up; return whether one had this number."""
        one = self.open.give_up(number)
        if one is not None:
            self._carry_no_more(one)
        return one is not None

    async def _pay(self, size: int, given_up: int) -> None:
        """Charge the caller for a message without calls; it is free if calls were given up.

        Numbers of calls that were just answered are nobody's fault, and rare; a flood of messages
        that do nothing would keep the loop as busy as calls do.
        """
        if not given_up:
            self._desk.pace.charge(self._peer, IDLE_S + size * BYTE_S)
        await self._desk.pace.turn(self._peer)

    async def _begin(self, message: g.SessionRequest, held: LongMessage | None) -> None:
        """Begin all calls of a message, in slices; a session's end waits for its heartbeats."""
        asked = [(call.number, call.WhichOneof("request"), call) for call in message.calls]
        begun = 0
        try:
            self._check_numbers([number for number, _, _ in asked])
            beats = [getattr(call, field) for _, field, call in asked if field in HEARTBEATS]
            slices = Slices()
            with self._desk.arrived.counted(beats) if beats else contextlib.nullcontext():
                for number, field, call in asked:
                    kind = self._kinds.get(field or "")
                    request = None if field is None else getattr(call, field)
                    one = OpenCall(number, kind, request, held)
                    if self._desk.traces is not None and kind is not None:
                        parent = parsed(call.traceparent)
                        one.trace = self._desk.traces.begin(kind.path, parent, "Session")
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
        for number in self.open.among(known):
            problem = f"{number} is the number of a call that is still open; use another one"
            raise malformed("calls.number", problem)

    async def _begin_one(self, one: OpenCall, slices: Slices) -> None:
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
            logger.exception("a call failed inside", extra=told(one))
            one.made = crashed(one)
        self.open.add(one)
        if one.call is None:
            self._finish(one)

    def _submit(self, one: OpenCall, kind: MemberCall[Any, Any], parts: Sequence[Any]) -> None:
        one.made = kind.refusal(one.request, self._principal)
        if one.made is not None:
            return
        limits = self._desk.limits
        if limits.on and kind.limited(one.request):
            limits.take(self._principal(), size_of(one.request))
        one.made = kind.cached(self._desk.actors.hearing(), one.request, self._principal)
        if one.made is None:
            with self._desk.actors.open(one.trace) as call:
                caller = kind.caller(self._who, call.number, one.request)
                parked = partial(self.open.park, one) if kind.parks else None
                call.submit(kind.command(one.request, caller, parts), parked)
            one.call = call
            call.future.add_done_callback(lambda _: self._finish(one))
        if kind.carries(one.request):
            self._carry(one.request, brings=kind.brings_target)

    def _finish(self, one: OpenCall) -> None:
        """Note that a call has its answer; the writer takes all of them together."""
        self.open.done(one)
        self._done.append(one)
        self._news.set()

    # --- answers ---

    async def _write(self, done: Iterable[OpenCall], context: Context) -> None:
        """Write the answers to these calls, in as few messages as their size allows."""
        parts: list[bytes] = []
        size, slices = 0, Slices()
        for one in done:
            await slices.done()
            if not self.open.take(one):
                continue
            try:
                parts.append(await answer(one, self._desk.counts, self._principal))
            finally:
                one.close()
            self._carry_no_more(one)
            size += len(parts[-1])
            if size >= ANSWERS_BYTES:
                await context.write(b"".join(parts))
                parts, size = [], 0
        if parts:
            await context.write(b"".join(parts))

    def _carry(self, request: Any, *, brings: bool) -> None:  # noqa: ANN401 - of either protocol
        """Have the pushes to a member come on this stream."""
        self._desk.carriers.carry(self, request.group_id, request.member_id, brings=brings)

    def _carry_no_more(self, one: OpenCall) -> None:
        """Forget the member of a heartbeat that was refused, or that nobody wants answered.

        Else names of nobody could fill the table, with calls that are given up.
        """
        kind = one.kind
        over = one.code is None or (kind is not None and kind.ends(one.code))
        if over and kind is not None and kind.carries(one.request):
            self._desk.carriers.drop(self, one.request.group_id, one.request.member_id)


def size_of(request: Any) -> int:  # noqa: ANN401 - of any call
    """Return the bytes of a call's request."""
    size: int = request.ByteSize()
    return size


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
