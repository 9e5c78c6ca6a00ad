"""HeartbeatStream: takes batches, writes their answers, and pushes urgent news to members.

When a join phase opens, a push goes to every member whose heartbeat a stream has carried, in the
turn of the loop in which the event was applied. A push is a hint: losing one only costs time.
This is a listener of the replica; it decides nothing.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, cast

import grpc

from holdfast.coordinator.kernel.group_types import type_of
from holdfast.coordinator.model.commands import Caller
from holdfast.coordinator.model.events import AccessModeChanged, AclsChanged
from holdfast.coordinator.model.membership import (
    CONVERTED,
    EXPIRED,
    LATE,
    LEFT,
    RECALLED,
    REFUSED,
    REMOVED,
    REPLACED,
    line_of,
)
from holdfast.server.metrics.call_counts import CallCounts
from holdfast.server.rpc.arrived_heartbeats import ArrivedHeartbeats
from holdfast.server.rpc.callers import end
from holdfast.server.rpc.errors import ENDED, CallFailed, Refused, ending, status_named
from holdfast.server.rpc.slices import chunks
from holdfast.server.translate import requests, responses
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import extras_pb2 as x
from holdfast.v1 import group_pb2 as g

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence

    from holdfast.coordinator.model.commands import Heartbeat
    from holdfast.coordinator.model.events import Event, Record
    from holdfast.coordinator.model.ids import CallId, GroupId, MemberId
    from holdfast.coordinator.model.replies import HeartbeatReply
    from holdfast.coordinator.model.state import Group
    from holdfast.runtime.groups.actors import Actors, Beat, Call
    from holdfast.runtime.ports import ReplicaLike
    from holdfast.server.rpc.callers import Callers, Context
    from holdfast.server.rpc.takeovers import Takeovers
    from holdfast.server.traces.traces import Traces
    from holdfast.server.translate.refusals import Code

    Refusal = Callable[[g.HeartbeatRequest, Callable[[], str]], g.HeartbeatResponse | None]

WAITING_MAX: Final = 64
"""Messages that wait for a slow reader; above this, pushes (mere hints) are left out."""
ANSWERED_MAX: Final = 4
"""Batches whose answers wait for a slow reader; above this, no more batches are read."""
AT_ONCE: Final = 32
"""Heartbeats in one turn of the loop. A decision may take 30 microseconds, and batches do not keep
to a pace, since their heartbeats must be noticed on arrival (S9): so the slices are short."""
LARGE_BATCH: Final = 1_000
LARGE_AT_ONCE: Final = 4
"""Batches of more than LARGE_BATCH heartbeats answered at a time; `holdfast.client` sends none."""
_ENDED: Final = frozenset(
    {e.ERROR_CODE_UNKNOWN_MEMBER_ID, e.ERROR_CODE_FENCED_INSTANCE_ID, e.ERROR_CODE_INVALID_GROUP_ID}
)
"""Answers after which a member id gets no more pushes."""
_PATH: Final = "holdfast.v1.GroupService/HeartbeatStream"
"""What a batch is called in a trace."""
_FENCED: Final = e.ERROR_CODE_FENCED_INSTANCE_ID
_GONE: Final = e.ERROR_CODE_UNKNOWN_MEMBER_ID
_WHY: Final[Mapping[str, str]] = {
    LEFT: "",
    REMOVED: "{reason}",
    EXPIRED: "its session ended",
    REFUSED: "",
    LATE: "it did not rejoin in time",
    REPLACED: "another process took over {instance_id}",
}
"""The text for a member that is gone, by how it went; empty where its own call has the answer."""


class _Stream:
    """One open HeartbeatStream: the members it carries, and the messages to be written on it."""

    def __init__(self, read: Callable[[], str] = str) -> None:
        """`read`: reads the principal, once it is asked for."""
        self._read, self._principal = read, ""
        self.members: dict[GroupId, dict[MemberId, None]] = defaultdict(dict)
        self._outbox: asyncio.Queue[g.HeartbeatBatchResponse | None] = asyncio.Queue()
        self._room = asyncio.Semaphore(ANSWERED_MAX)
        self.unanswered = 0
        """Batches that are decided and not answered: the client does not know their outcome."""

    def principal(self) -> str:
        """Return who calls; a stream is one call, on one connection."""
        self._principal = self._principal or self._read()
        return self._principal

    async def put(self, answers: g.HeartbeatBatchResponse) -> None:
        """Queue a batch's answers for writing; waits for room."""
        self.unanswered += 1
        await self._room.acquire()
        self._outbox.put_nowait(answers)

    @property
    def waiting(self) -> int:
        """The number of messages that wait for the reader."""
        return self._outbox.qsize()

    def close(self) -> None:
        """End the queue: `write` returns after the messages queued before."""
        self._outbox.put_nowait(None)

    def push(self, group_id: GroupId, told: Mapping[MemberId, g.HeartbeatPush]) -> int:
        """Queue the pushes for this stream's members as one message, unless too many wait.

        Returns how many were left out.
        """
        few, many = sorted((self.members.get(group_id, {}), told), key=len)
        pushes = [told[member_id] for member_id in few if member_id in many]
        if pushes and self._outbox.qsize() >= WAITING_MAX:
            return len(pushes)
        if pushes:
            self._outbox.put_nowait(g.HeartbeatBatchResponse(pushes=pushes))
        return 0

    async def write(self, context: Context) -> None:
        """Write the queued messages in order, until `close`."""
        while (message := await self._outbox.get()) is not None:
            await context.write(message)
            if not message.pushes:
                self.unanswered -= 1
                self._room.release()


class HeartbeatStreams:
    """All open streams, by the groups whose members they carry."""

    def __init__(
        self,
        replica: ReplicaLike,
        actors: Actors,
        callers: Callers,
        takeovers: Takeovers,
        arrived: ArrivedHeartbeats | None = None,
        counts: CallCounts | None = None,
        refusal: Refusal = lambda _request, _principal: None,
        traces: Traces | None = None,
    ) -> None:
        """`arrived`: registers each batch while it is being processed (S9).

        `refusal`: refuses a heartbeat that the caller may not send, else returns None. `traces`:
        follows some of the batches.
        """
        self._codes = (counts or CallCounts()).of("Heartbeat")
        self.left_out = 0
        """Pushes that were left out, since too much waited for their readers."""
        self._refusal, self._traces = refusal, traces
        self._replica, self._actors, self._callers = replica, actors, callers
        self._takeovers = takeovers
        self._arrived = arrived or ArrivedHeartbeats()
        self._large = asyncio.Semaphore(LARGE_AT_ONCE)
        self._streams: dict[GroupId, dict[_Stream, None]] = defaultdict(dict)

    async def serve(self, batches: AsyncIterator[g.HeartbeatBatch], context: Context) -> None:
        """Serve one stream until the client ends it, or no longer takes its answers."""
        stream = _Stream(lambda: self._callers.principal(context))
        sides = [self._read(stream, batches, context), stream.write(context)]
        tasks = [asyncio.ensure_future(side) for side in sides]
        try:
            await asyncio.gather(*tasks)
        except ENDED as error:
            await end(context, error, "unknown" if stream.unanswered else "not-applied")
        finally:
            for task in tasks:
                task.cancel()
            self._forget(stream)

    async def _read(
        self, stream: _Stream, batches: AsyncIterator[g.HeartbeatBatch], context: Context
    ) -> None:
        async for batch in batches:
            answering = self._answer(stream, batch, context)
            trace = self._traces.begin(_PATH, None) if self._traces else None
            answer = answering if trace is None else trace.follow(answering, status_named)
            await stream.put(await answer)
        stream.close()

    @property
    def carried(self) -> int:
        """The number of members that the open streams carry."""
        return sum(
            len(stream.members[group_id])
            for group_id, streams in self._streams.items()
            for stream in streams
        )

    @property
    def waiting(self) -> int:
        """The number of messages that wait for readers, answers and pushes."""
        open_ = {stream for streams in self._streams.values() for stream in streams}
        return sum(stream.waiting for stream in open_)

    def _forget(self, stream: _Stream) -> None:
        for group_id, member_ids in list(stream.members.items()):
            self._drop(stream, group_id, tuple(member_ids))

    def _drop(self, stream: _Stream, group_id: GroupId, member_ids: Iterable[MemberId]) -> None:
        """Remove these members from the stream, as far as it carries them."""
        mine = stream.members.get(group_id)
        if mine is None:
            return
        for member_id in member_ids:
            mine.pop(member_id, None)
        if not mine:
            del stream.members[group_id]
            del self._streams[group_id][stream]
            if not self._streams[group_id]:
                del self._streams[group_id]

    async def _answer(
        self, stream: _Stream, batch: g.HeartbeatBatch, context: Context
    ) -> g.HeartbeatBatchResponse:
        """Answer a batch; only a few large ones at a time, since their calls take memory."""
        if len(batch.requests) <= LARGE_BATCH:
            with self._arrived.counted(batch.requests) as heard:
                return await self._answered(stream, batch, context, heard)
        with self._arrived.counted(batch.requests) as heard:
            async with self._large:
                return await self._answered(stream, batch, context, heard)

    async def _answered(
        self,
        stream: _Stream,
        batch: g.HeartbeatBatch,
        context: Context,
        heard: Callable[[], None],
    ) -> g.HeartbeatBatchResponse:
        begun: list[Call | g.HeartbeatResponse] = []
        made = g.HeartbeatBatchResponse(batch=batch.batch)
        try:
            async for some in chunks(batch.requests, AT_ONCE):
                hearing = self._actors.hearing()
                for request in some:  # if one fails, those before it must be given up
                    begun.append(self._begin(stream, request, context, hearing))  # noqa: PERF401 - as said
            heard()
            async for pairs in chunks(list(zip(batch.requests, begun, strict=True)), AT_ONCE):
                made.responses.extend(
                    [
                        one
                        if isinstance(one, g.HeartbeatResponse)
                        else await self._finish(stream, request, one)
                        for request, one in pairs
                    ]
                )
        except BaseException:
            for one in begun:
                if not isinstance(one, g.HeartbeatResponse):
                    one.give_up()
            raise
        self._codes.update([response.error_code for response in made.responses])
        return made

    def _begin(
        self, stream: _Stream, request: g.HeartbeatRequest, context: Context, hearing: Beat
    ) -> Call | g.HeartbeatResponse:
        """Answer one heartbeat from the cache, or submit it; a malformed one is answered alone."""
        if (refused_now := self._refusal(request, stream.principal)) is not None:
            self._drop(stream, request.group_id, (request.member_id,))
            return refused_now
        if (response := answered_before(hearing, request)) is not None:
            self._carry(stream, request)
            return response
        try:
            with self._actors.open() as call:
                call.submit(self._command(call.number, request, context))
        except ENDED as error:
            told = ending(error)
            if isinstance(told, Refused):
                return refused(told)
            if told.status is not grpc.StatusCode.INVALID_ARGUMENT:
                raise
            return failed(told, e.ERROR_CODE_INVALID_REQUEST)
        self._carry(stream, request)
        return call

    def _carry(self, stream: _Stream, request: g.HeartbeatRequest) -> None:
        """Record that the stream carries this member from now on."""
        if request.group_id not in stream.members:
            self._streams[request.group_id][stream] = None
        stream.members[request.group_id][request.member_id] = None

    def _command(self, call: CallId, request: g.HeartbeatRequest, context: Context) -> Heartbeat:
        if not request.HasField("holdfast"):
            return requests.heartbeat(request, Caller(call))
        caller = self._callers.of(call, request, request.holdfast, context)
        return requests.heartbeat(request, caller)

    async def _finish(
        self, stream: _Stream, request: g.HeartbeatRequest, call: Call
    ) -> g.HeartbeatResponse:
        try:
            answered = await call.future
        except ENDED as error:
            told = ending(error)
            if isinstance(told, Refused):
                return refused(told)
            if told.outcome == "unknown":
                raise
            return failed(told, e.ERROR_CODE_COORDINATOR_NOT_AVAILABLE)
        reply = cast("HeartbeatReply", answered.reply)
        response = responses.heartbeat(reply)
        self._takeovers.tell(response.holdfast, request.group_id, reply.error)
        if response.error_code in _ENDED:
            self._drop(stream, request.group_id, (request.member_id,))
        return response

    # --- the replica's listener ---

    def listen(self) -> None:
        """Subscribe to the replica."""
        self._replica.subscribe(
            on_applied=self.on_applied,
        )

    def on_applied(self, records: Sequence[Record], index: int) -> None:
        """Push events to the members they concern, in the turn in which they were applied."""
        del index
        if any(isinstance(record.event, AclsChanged | AccessModeChanged) for record in records):
            self._forget_revoked()
        for record in records:
            streams = tuple(self._streams.get(record.group_id, ()))
            told = {push.member_id: push for push in self._told(record)} if streams else {}
            for stream in streams if told else ():
                self.left_out += stream.push(record.group_id, told)
            gone = line_of(record.event).went(record.event) if streams else ()
            for stream in streams if gone else ():
                self._drop(stream, record.group_id, gone)

    def _forget_revoked(self) -> None:
        """Push nothing more of groups whose members a stream may not speak for any longer."""
        for group_id, streams in list(self._streams.items()):
            asked = g.HeartbeatRequest(group_id=group_id)
            for stream in list(streams):
                if self._refusal(asked, stream.principal) is not None:
                    self._drop(stream, group_id, tuple(stream.members[group_id]))

    def _told(self, record: Record) -> Iterator[g.HeartbeatPush]:
        group = self._replica.state.groups.get(record.group_id)
        generation = group.generation if group else -1
        for member_id, code, why in _news(record.event, group):
            yield g.HeartbeatPush(
                group_id=record.group_id,
                member_id=member_id,
                generation_id=generation,
                error_code=code,
                holdfast=x.ResponseExtras(reason=why),
            )


def answered_before(hearing: Beat, request: g.HeartbeatRequest) -> g.HeartbeatResponse | None:
    """Return the cached answer to a heartbeat; None if the heartbeat has to be decided.

    `hearing`: from `Actors.hearing`, asked in this turn of the loop.
    """
    if request.HasField("holdfast"):
        return None
    instance = request.group_instance_id if request.HasField("group_instance_id") else None
    key = (request.generation_id, request.member_id, instance)
    cached = hearing(request.group_id, key)
    return None if cached is None else responses.cached(cached)


def refused(error: Refused) -> g.HeartbeatResponse:
    """Make the answer to a heartbeat that this node does not serve."""
    extras = x.ResponseExtras(message=error.sentence)
    if error.leader:
        extras.leader_hint = error.leader
    return g.HeartbeatResponse(error_code=error.code, holdfast=extras)


def failed(error: CallFailed, code: Code) -> g.HeartbeatResponse:
    """Make the answer to a heartbeat that failed without effect; the shared stream goes on."""
    return g.HeartbeatResponse(error_code=code, holdfast=x.ResponseExtras(message=error.sentence))


def _news(event: Event, group: Group[Any] | None) -> Iterator[tuple[MemberId, Code, str]]:
    """Yield the members that must hear of an event now, each with a code and a reason."""
    line = line_of(event)
    reason = line.reason(event) or ""
    if line.everyone in {RECALLED, CONVERTED} and group is not None:
        code = e.ERROR_CODE_REBALANCE_IN_PROGRESS
        yield from ((member_id, code, reason) for member_id in type_of(group).members(group))
    elif why := _WHY.get(line.kind):
        code = _FENCED if line.kind == REPLACED else _GONE
        told = why.format(reason=reason, instance_id=line.instance_id(event))
        yield from ((member_id, code, told) for member_id in line.went(event))
