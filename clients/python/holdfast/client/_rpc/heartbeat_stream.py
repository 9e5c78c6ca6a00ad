"""Heartbeats of all members of one connection on one open stream, on which the service also pushes.

A message on an open stream costs a third of a unary call; heartbeats that are due together travel
in one message; and a push reports a rebalance at once instead of at the next heartbeat. A stream
that breaks counts as one failure for all members on it, so they also come back together. A service
without the stream, or without a protocol on it, gets unary heartbeats.

In the heartbeat protocol, only those that change nothing come here: batches are answered in order,
and one that waits for the log would hold up the others. Pushes come on whichever stream has carried
a member's last heartbeat, so this is told of those on Session streams, too. Does not know what an
answer means to a member.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, get_args

import grpc
import grpc.aio

from holdfast.client._session.session_io import Failure, FailureKind
from holdfast.client.errors import IncompatibleServer, OutcomeUnknown
from holdfast.v1 import group_pb2
from holdfast.v1.errors_pb2 import ErrorCode
from holdfast.v1.group_pb2_grpc import GroupServiceStub

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from google.protobuf.message import Message

    from holdfast.client._rpc.caller import Caller

    OnPush: TypeAlias = Callable[[group_pb2.HeartbeatPush], None]
    Request: TypeAlias = group_pb2.HeartbeatRequest | group_pb2.ConsumerGroupHeartbeatRequest
    Response: TypeAlias = group_pb2.HeartbeatResponse | group_pb2.ConsumerGroupHeartbeatResponse
    Answer: TypeAlias = "asyncio.Future[Response | Failure | _NotTaken]"

BEATS: Final = (group_pb2.HeartbeatRequest, group_pb2.ConsumerGroupHeartbeatRequest)
"""The heartbeats of both protocols."""
_Said: TypeAlias = Literal[
    "rack_id",
    "rebalance_timeout_ms",
    "subscribed_topic_names",
    "subscribed_topic_regex",
    "server_assignor",
    "topic_partitions",
]
_SAID: Final[tuple[_Said, ...]] = get_args(_Said)
"""The fields by which a heartbeat of the heartbeat protocol can change something."""
BATCH_MAX: Final = 1_000
"""Heartbeats in one message: far below the service's bound, and quickly answered."""
_LINGER_S: Final = 10.0
"""How long a stream that was left is read: longer than it takes until members beat again."""
_ENDED: Final = frozenset(
    {ErrorCode.ERROR_CODE_UNKNOWN_MEMBER_ID, ErrorCode.ERROR_CODE_FENCED_INSTANCE_ID}
)
"""Answers after which a member id is never used again."""


def carries(request: Request) -> bool:
    """Return whether a heartbeat is to go on a HeartbeatStream, and not where all calls go."""
    if isinstance(request, group_pb2.HeartbeatRequest):
        return not request.holdfast.release
    says = any(map(request.HasField, _SAID)) or request.holdfast.HasField("client_assignors")
    return request.member_epoch > 0 and not says


class _NotTaken:
    """The end of a heartbeat of the heartbeat protocol that a node knows nothing of in a batch."""


class _Beat(NamedTuple):
    request: Request
    answer: Answer


class HeartbeatStream:
    """Sends the heartbeats of many members to the leading node."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._address = ""
        self._call: Any = None
        self._moving = False
        """Whether the stream's connection takes no new calls, so that another stream is due."""
        self._older: dict[Any, asyncio.Task[None]] = {}
        """Streams that only answer what they were sent, with their readers."""
        self._opening: asyncio.Task[Failure | None] | None = None
        self._reader: asyncio.Task[None] | None = None
        self._sender: asyncio.Task[None] | None = None
        self._next: list[_Beat] = []
        self._sent: dict[int, list[_Beat]] = {}
        self._carrier: dict[int, Any] = {}
        """The stream on which each of these batches went."""
        self._listeners: dict[tuple[str, str], OnPush] = {}
        self._batch = self._breaks = 0
        self._unary = self._classic_only = False
        if caller.sessions is not None:
            caller.sessions.on_push = self._pushed

    async def attempt(self, request: Request, timeout_ms: int) -> Message | Failure:
        """Send one heartbeat once.

        A failure ends the stream for all, and the next heartbeat opens another.
        """
        if self._unary or (self._classic_only and _is_consumer(request)):
            return await self._caller.attempt(request, timeout_ms)
        address, breaks = self._caller.endpoints.current, self._breaks
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                failure = await self._open(address)
                address, breaks = self._address or address, self._breaks
                answer = failure or await self._exchange(request)
        except TimeoutError:
            if breaks != self._breaks:
                return self._failure(address, "the stream broke", 0)
            return self._break(self._given_up(address, f"no answer within {timeout_ms} ms"))
        if isinstance(answer, _NotTaken):
            return await self._caller.attempt(request, timeout_ms)
        if not isinstance(answer, Failure):
            if answer.error_code in _ENDED:
                self.forget(request.group_id, request.member_id)
            return self._caller.read_answer(address, answer)
        if isinstance(answer.error, IncompatibleServer):
            self._unary = True
            return await self._caller.attempt(request, timeout_ms)
        return answer

    def listen(self, group: str, member_id: str, on_push: OnPush) -> None:
        """Give the pushes to this member to `on_push`, on whichever stream they come."""
        self._listeners[group, member_id] = on_push

    def forget(self, group: str, member_id: str) -> None:
        """Remove the listener for pushes to this member."""
        self._listeners.pop((group, member_id), None)

    def connection_ages(self, address: str) -> None:
        """Note that a node's connection takes no new calls, or is not to be given any.

        The next heartbeat has another stream opened, and goes on the present one until that is
        there: so no heartbeat fails.
        """
        self._moving = self._moving or address == self._address

    def close(self) -> None:
        """End the stream; heartbeats in flight fail."""
        for call, reader in self._older.items():
            reader.cancel()
            call.cancel()
        self._older.clear()
        self._break(self._failure(self._address, "the heartbeat stream was closed", 0))

    async def _open(self, address: str) -> Failure | None:
        """Make sure that the stream goes to this address; concurrent callers share one attempt."""
        serves = self._address == address and self._reader is not None and not self._reader.done()
        if serves and not self._moving:
            return None
        if self._opening is None or self._opening.done():
            self._opening = asyncio.create_task(self._reopen(address))
        return None if serves else await asyncio.shield(self._opening)

    async def _reopen(self, address: str) -> Failure | None:
        if self._address and self._address != address:
            self._break(self._failure(self._address, f"it was left for {address}", 0))
        if not await self._caller.connect(address):
            # While the older stream serves, this attempt concerns nobody: the next one may succeed.
            return None if self._call is not None else self._caller.not_connected(address)
        stub = GroupServiceStub(self._caller.channel(address))
        call = stub.HeartbeatStream(metadata=self._caller.shown.metadata)
        if self._call is not None and self._reader is not None:
            self._retire(self._call, self._reader)
        self._call, self._address, self._moving = call, address, False
        self._classic_only = False  # it may be another node, or the same one upgraded
        self._reader = asyncio.create_task(self._read(call, address))
        if self._next:
            self._sender = asyncio.create_task(self._send(call))
        return None

    def _retire(self, call: Any, reader: asyncio.Task[None]) -> None:  # noqa: ANN401 - untyped
        """Send no more on a stream; it goes on with answers and pushes for a while.

        Members are pushed to on the new stream only after a heartbeat of theirs on it.
        """
        self._older[call] = reader
        reader.add_done_callback(lambda _: self._older.pop(call, None))
        asyncio.get_running_loop().call_later(_LINGER_S, call.cancel)

    async def _exchange(self, request: Request) -> Response | Failure | _NotTaken:
        if self._call is None:
            return self._failure(self._address, "the stream ended before it was used", 0)
        answer: Answer = asyncio.get_running_loop().create_future()
        self._next.append(_Beat(request, answer))
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._send(self._call))
        return await answer

    async def _send(self, call: Any) -> None:  # noqa: ANN401 - grpc.aio's stream call is untyped
        """Send all due heartbeats in one message, and repeat while more become due."""
        while self._next and call is self._call:
            beats, self._next = self._next[:BATCH_MAX], self._next[BATCH_MAX:]
            self._batch += 1
            self._sent[self._batch] = beats
            self._carrier[self._batch] = call
            try:
                await call.write(_message(self._batch, beats))
            except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
                return  # the reader sees the same end, and says why

    async def _read(self, call: Any, address: str) -> None:  # noqa: ANN401 - as above
        try:
            async for message in call:
                self._received(message)
        except grpc.aio.AioRpcError as error:
            nothing = group_pb2.HeartbeatRequest()
            if call is self._call:
                self._break(self._caller.call_failed(address, error, nothing))
        else:
            if call is self._call:
                self._break(self._given_up(address, "the service ended the heartbeat stream"))
        finally:
            if call in self._older:
                self._lost_on(call, address)

    def _lost_on(self, call: Any, address: str) -> None:  # noqa: ANN401 - as above
        """Fail the heartbeats that an older stream has left without an answer."""
        lost = [batch for batch, carrier in self._carrier.items() if carrier is call]
        for batch in lost:
            failure = self._failure(address, "its connection ended before the answer", 0)
            _end(self._taken(batch), failure)

    def _taken(self, batch: int) -> list[_Beat]:
        self._carrier.pop(batch, None)
        return self._sent.pop(batch, [])

    def _received(self, message: group_pb2.HeartbeatBatchResponse) -> None:
        for push in message.pushes:
            self._pushed(push)
        classic, consumer = _by_protocol(self._taken(message.batch))
        _answer(classic, message.responses)
        taken = len(message.consumer_responses)
        _answer(consumer[:taken], message.consumer_responses)
        if consumer[taken:]:  # an older node, which reads over what it does not know
            self._classic_only = True
            _end(consumer[taken:], _NotTaken())

    def _pushed(self, push: group_pb2.HeartbeatPush) -> None:
        """Give a push to its member, if that is here."""
        listener = self._listeners.get((push.group_id, push.member_id))
        if listener is not None:
            listener(push)

    def _break(self, failure: Failure) -> Failure:
        """End the stream: all who wait on it get this failure."""
        self._breaks += 1
        for task in (self._reader, self._sender):
            if task is not None and task is not asyncio.current_task():
                task.cancel()
        if self._call is not None:
            self._call.cancel()
        self._call = self._reader = self._sender = None
        self._address, self._moving = "", False
        beats = [beat for batch in self._sent.values() for beat in batch] + self._next
        self._sent, self._carrier, self._next = {}, {}, []
        _end(beats, failure)
        return failure

    def _given_up(self, address: str, why: str) -> Failure:
        return self._failure(address, why, self._caller.unanswered(address, why))

    @staticmethod
    def _failure(address: str, why: str, retry_in_ms: int) -> Failure:
        error = OutcomeUnknown(f"Heartbeat at {address}: {why}.")
        return Failure(FailureKind.RETRY, error, retry_in_ms)


def _is_consumer(request: Request) -> bool:
    return isinstance(request, group_pb2.ConsumerGroupHeartbeatRequest)


def _by_protocol(beats: Iterable[_Beat]) -> tuple[list[_Beat], list[_Beat]]:
    """Return the heartbeats of either protocol, each in the order in which they were sent."""
    classic: list[_Beat] = []
    consumer: list[_Beat] = []
    for beat in beats:
        (consumer if _is_consumer(beat.request) else classic).append(beat)
    return classic, consumer


def _message(batch: int, beats: Iterable[_Beat]) -> group_pb2.HeartbeatBatch:
    classic, consumer = _by_protocol(beats)
    return group_pb2.HeartbeatBatch(
        batch=batch,
        requests=[beat.request for beat in classic],  # type: ignore[misc]  # of its protocol
        consumer_requests=[beat.request for beat in consumer],  # type: ignore[misc]  # as above
    )


def _answer(beats: Iterable[_Beat], responses: Iterable[Response]) -> None:
    for beat, response in zip(beats, responses, strict=False):
        if not beat.answer.done():
            beat.answer.set_result(response)


def _end(beats: Iterable[_Beat], how: Failure | _NotTaken) -> None:
    for beat in beats:
        if not beat.answer.done():
            beat.answer.set_result(how)
