"""Answers a batch of heartbeats of both protocols: begins all of them, then collects the answers.

The heartbeats are those of the unary calls (`calls`); one that is malformed or refused is answered
alone. Neither reads nor writes a stream.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, cast

import grpc

from holdfast.server.rpc.callers import refusal
from holdfast.server.rpc.errors import ENDED, Refused, ending
from holdfast.server.rpc.slices import Slices, chunks
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import extras_pb2 as x
from holdfast.v1 import group_pb2 as g

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from google.protobuf.message import Message

    from holdfast.runtime.groups.actors import Actors, Call
    from holdfast.runtime.groups.hearing import Hearing
    from holdfast.server.access.principal_limits import PrincipalLimits
    from holdfast.server.metrics.call_counts import CallCounts
    from holdfast.server.rpc.arrived_heartbeats import ArrivedHeartbeats, Beats
    from holdfast.server.rpc.callers import Identity
    from holdfast.server.rpc.calls.member_call import MemberCall
    from holdfast.server.rpc.calls.member_calls import MemberCalls
    from holdfast.server.rpc.errors import Ended
    from holdfast.server.rpc.pushes.carriers import Carriers
    from holdfast.server.translate.refusals import Code

    Kind = MemberCall[Any, Any]
    Request = g.HeartbeatRequest | g.ConsumerGroupHeartbeatRequest

AT_ONCE: Final = 32
"""Heartbeats in one turn of the loop. A decision may take 30 microseconds, and batches of the
classic protocol do not keep to a pace, since their heartbeats must be noticed on arrival (S9): so
the slices are short."""
LARGE_BATCH: Final = 1_000
LARGE_AT_ONCE: Final = 4
"""Batches of more than LARGE_BATCH heartbeats answered at a time; `holdfast.client` sends none."""


class Sender(Protocol):
    """A stream that carries members (`pushes.carriers`), and says who calls on it."""

    def principal(self) -> str:
        """Return the principal."""

    def identity(self) -> Identity:
        """Return all that is known of the caller; raises CallFailed for a malformed name."""

    def push(self, pushes: Sequence[g.HeartbeatPush]) -> int:
        """Queue pushes; returns how many were left out."""


class _Begun(NamedTuple):
    """A heartbeat that is on its way."""

    request: Request
    call: Call


class HeartbeatBatches:
    """Answers batches."""

    def __init__(
        self,
        actors: Actors,
        calls: MemberCalls,
        carriers: Carriers,
        arrived: ArrivedHeartbeats,
        counts: CallCounts,
        limits: PrincipalLimits,
    ) -> None:
        """`arrived`: registers each batch while it is being processed (S9)."""
        self._actors, self._carriers, self._arrived = actors, carriers, arrived
        self._classic, self._consumer = calls.heartbeat, calls.consumer_heartbeat
        self._counts, self._limits = counts, limits
        self._large = asyncio.Semaphore(LARGE_AT_ONCE)

    async def answer(self, sender: Sender, batch: g.HeartbeatBatch) -> g.HeartbeatBatchResponse:
        """Answer a batch; only a few large ones at a time, since their calls take memory."""
        every: Beats = [*batch.requests, *batch.consumer_requests]
        with self._arrived.counted(every) as heard:
            if len(every) <= LARGE_BATCH:
                return await self._answered(sender, batch, heard)
            async with self._large:
                return await self._answered(sender, batch, heard)

    async def _answered(
        self, sender: Sender, batch: g.HeartbeatBatch, heard: Callable[[], None]
    ) -> g.HeartbeatBatchResponse:
        begun: list[_Begun | Message] = []
        made = g.HeartbeatBatchResponse(batch=batch.batch)
        try:
            await self._begin_all(sender, self._classic, batch.requests, begun)
            await self._begin_all(sender, self._consumer, batch.consumer_requests, begun)
            heard()
            classic = len(batch.requests)
            first, second = begun[:classic], begun[classic:]
            made.responses.extend(await self._finish_all(sender, self._classic, first))
            made.consumer_responses.extend(await self._finish_all(sender, self._consumer, second))
        except BaseException:
            for one in begun:
                if isinstance(one, _Begun):
                    one.call.give_up()
            raise
        return made

    async def _begin_all(
        self,
        sender: Sender,
        kind: Kind,
        requests: Sequence[Any],
        begun: list[_Begun | Message],
    ) -> None:
        """Begin heartbeats, in slices by what they hold; if one fails, those before it are begun.

        The lease is looked at after each slice, for other calls may have been served (S10 c).
        """
        slices = Slices()
        async for some in chunks(requests, AT_ONCE):
            hearing = self._actors.hearing()
            for request in some:
                known: _Begun | Message | None = self._known(sender, kind, request, hearing)
                if known is None:
                    if (items := kind.items(request)) > 1:
                        await slices.done(items)
                        hearing = self._actors.hearing()
                    known = self._begin(sender, kind, request)
                begun.append(known)

    def _known(
        self, sender: Sender, kind: Kind, request: Request, hearing: Hearing
    ) -> Message | None:
        """Return the answer to a heartbeat that is refused, or in the cache; None: decide it."""
        refused: Message | None = kind.refusal(request, sender.principal)
        if refused is not None:
            self._carriers.drop(sender, request.group_id, request.member_id)
            return refused
        cached: Message | None = kind.cached(hearing, request, sender.principal)
        if cached is not None:
            self._carry(sender, kind, request)
        return cached

    def _begin(self, sender: Sender, kind: Kind, request: Request) -> _Begun | Message:
        """Submit one heartbeat; a malformed one is answered alone."""
        try:
            call = self._submit(sender, kind, request)
        except ENDED as error:
            told = ending(error)
            if isinstance(told, Refused):
                return cast("Message", refusal(kind.respond, told))
            if told.status not in _ALONE:
                raise
            return _failed(kind, told.sentence, _ALONE[told.status])
        if kind.carries(request):
            self._carry(sender, kind, request)
        return _Begun(request, call)

    def _submit(self, sender: Sender, kind: Kind, request: Request) -> Call:
        if self._limits.on and kind.limited(request):
            self._limits.take(sender.principal(), request.ByteSize())
        if kind.items(request) > kind.bounds.least:
            kind.bounds.check(request)
        with self._actors.open() as call:
            caller = kind.caller(sender.identity, call.number, request)
            call.submit(kind.command(request, caller, ()))
        return call

    def _carry(self, sender: Sender, kind: Kind, request: Request) -> None:
        brings = kind.brings_target
        self._carriers.carry(sender, request.group_id, request.member_id, brings=brings)

    async def _finish_all(
        self, sender: Sender, kind: Kind, begun: Sequence[_Begun | Message]
    ) -> list[Any]:
        """Return the answers to heartbeats of one kind, in their order, and count them."""
        made: list[Any] = []
        async for some in chunks(begun, AT_ONCE):
            made += [
                await self._finish(sender, kind, one) if isinstance(one, _Begun) else one
                for one in some
            ]
        self._counts.of(kind.method).update([each.error_code for each in made])
        return made

    async def _finish(self, sender: Sender, kind: Kind, begun: _Begun) -> Any:  # noqa: ANN401 - of either kind
        request, call = begun
        try:
            response = kind.response(request, await call.future, ())
        except ENDED as error:
            response = _ended(kind, error)
        if kind.ends(response.error_code):
            self._carriers.drop(sender, request.group_id, request.member_id)
        return response


_ALONE: Final = {
    grpc.StatusCode.INVALID_ARGUMENT: e.ERROR_CODE_INVALID_REQUEST,
    grpc.StatusCode.RESOURCE_EXHAUSTED: e.ERROR_CODE_COORDINATOR_LOAD_IN_PROGRESS,
}
"""Ends of one heartbeat that leave the stream as it is, and the code of its answer: it is wrong,
or its principal has to wait."""


def _ended(kind: Kind, error: Ended) -> Any:  # noqa: ANN401 - of either kind
    """Make the answer to a heartbeat that has none; raises if nobody knows what became of it."""
    told = ending(error)
    if isinstance(told, Refused):
        return refusal(kind.respond, told)
    if told.outcome == "unknown":
        raise error
    return _failed(kind, told.sentence, e.ERROR_CODE_COORDINATOR_NOT_AVAILABLE)


def _failed(kind: Kind, sentence: str, code: Code) -> Message:
    """Make the answer to a heartbeat that failed without effect; the shared stream goes on."""
    made: Message = kind.respond(error_code=code, holdfast=x.ResponseExtras(message=sentence))
    return made
