"""Calls of all members of one connection on one open stream to a node, many in a message.

Calls that become ready in one turn of the loop travel together, and none waits for others. An
answer is what the unary call would have had, and so is an error, so that whoever calls need not
know which way a call took. What such a stream does not carry is for unary calls: other kinds of
calls, long requests, and all calls to a node that is older than the stream or has no room for it.
Does not know what a call is for.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import grpc
import grpc.aio

from holdfast.client._rpc.status import (
    LEADER_KEY,
    NOT_APPLIED,
    OUTCOME_KEY,
    RETRY_KEY,
    UNKNOWN,
    texts_in,
)
from holdfast.client._text import readable
from holdfast.client._tracing import place
from holdfast.v1 import group_pb2

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.protobuf.message import Message

    OpenCall = Callable[[str], Any]
    """Begins a Session call to a node; grpc.aio's stream call is untyped."""
    OnPush = Callable[[group_pb2.HeartbeatPush], None]

CALLS_A_MESSAGE: Final = 500
"""Calls in one message, begun or given up, at most; a node takes four times as many."""
BYTES_A_MESSAGE: Final = 20_000
"""What one message holds at most, so that it is soon begun. A node ends the stream for a message
whose lists have more than 10,000 items of a kind, which take two bytes each at least."""
REQUEST_BYTES_MAX: Final = BYTES_A_MESSAGE
"""A longer request goes by itself: it would hold up those behind it, and all pay for its length."""
_FIELDS: Final = {
    field.message_type.name: field.name
    for field in group_pb2.SessionCall.DESCRIPTOR.oneofs_by_name["request"].fields
    if field.message_type is not None
}
"""The field of a SessionCall, and of a SessionAnswer, by the name of a request's class."""
_CODES: Final = {code.value[0]: code for code in grpc.StatusCode}


class NotServed(Exception):
    """The node has no Session stream, or not for this call; nothing was done. Call it unary."""


class SessionStreams:
    """The streams of one process to the nodes of a cluster."""

    def __init__(self, open_call: OpenCall) -> None:
        self._open_call = open_call
        self.on_push: OnPush = lambda _: None
        """Gets what the service pushes to members, on whichever of these streams it comes."""
        self._streams: dict[str, _Stream] = {}
        self._older: set[_Stream] = set()
        """Streams that only answer what they were asked."""
        self._without: set[str] = set()
        """Nodes that have no such stream, or no room for one, until we connect to them again."""

    def carries(self, address: str, request: Message) -> bool:
        """Return whether a call may go on the stream to this node."""
        if type(request).__name__ not in _FIELDS or address in self._without:
            return False
        return request.ByteSize() <= REQUEST_BYTES_MAX

    async def ask(
        self,
        address: str,
        request: Message,
        timeout_s: float,
        on_sent: Callable[[], None] | None = None,
    ) -> Message:
        """Make a call and return its response; `on_sent` is called when it is on its way.

        Raises AioRpcError as the unary call would, NotServed if it has to be made so. If whoever
        waits is cancelled, or the time is over, the node is told to give the call up (S17).
        """
        stream = self._streams.get(address)
        if stream is None or stream.ended:
            stream = self._streams[address] = _Stream(self._open_call(address), self._pushed)
        try:
            return await stream.ask(request, timeout_s, on_sent)
        except NotServed:
            if stream.refused:
                self._without.add(address)
            raise

    def _pushed(self, push: group_pb2.HeartbeatPush) -> None:
        self.on_push(push)

    def connection_ages(self, address: str) -> None:
        """Note that a node's connection takes no new calls, or is not to be given any.

        The next call opens another stream; those under way are answered on the present one.
        """
        if stream := self._streams.pop(address, None):
            self._older.add(stream)
            stream.leave(lambda: self._older.discard(stream))

    def reconnecting(self, address: str) -> None:
        """Note that the connection was lost: a node that comes back may be a newer one."""
        self._without.discard(address)

    async def close(self) -> None:
        """End all streams; calls in flight fail."""
        streams, self._streams = [*self._streams.values(), *self._older], {}
        for stream in streams:
            await stream.close()


class _Asked:
    """A call under way."""

    __slots__ = ("answer", "call", "on_sent", "sent", "size", "timer")

    def __init__(
        self, call: group_pb2.SessionCall, size: int, on_sent: Callable[[], None] | None
    ) -> None:
        self.call, self.size, self.on_sent = call, size, on_sent
        self.answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self.timer: asyncio.TimerHandle | None = None
        self.sent = False

    def fail(self, error: Exception) -> None:
        """End it with an error, if it has not ended."""
        if not self.answer.done():
            self.answer.set_exception(error)


class _Stream:
    """One open stream to one node."""

    def __init__(self, call: Any, on_push: OnPush) -> None:  # noqa: ANN401 - grpc.aio's stream call is untyped
        self._call, self._on_push = call, on_push
        self._last = 0
        self._asked: dict[int, _Asked] = {}
        self._next: dict[int, _Asked] = {}
        self._given_up: list[int] = []
        self._broken = False
        self._sender: asyncio.Task[None] | None = None
        self._begun = self.ended = self.refused = False
        self._is_left = False
        self._reader = asyncio.create_task(self._read())

    async def ask(
        self, request: Message, timeout_s: float, on_sent: Callable[[], None] | None
    ) -> Message:
        """Make a call, as `SessionStreams.ask`."""
        self._last += 1
        number, field = self._last, _FIELDS[type(request).__name__]
        call = group_pb2.SessionCall(number=number, traceparent=place(), **{field: request})  # type: ignore[arg-type]  # of its own kind
        asked = self._asked[number] = self._next[number] = _Asked(call, call.ByteSize(), on_sent)
        later = asyncio.get_running_loop().call_later
        asked.timer = later(timeout_s, self._late, number, timeout_s)
        self._send_soon()
        try:
            return await asked.answer
        finally:
            asked.timer.cancel()
            if self._asked.pop(number, None) is not None:  # cancelled: nobody waits for it
                self._give_up(number)
            self._end_if_idle()

    def _late(self, number: int, timeout_s: float) -> None:
        """End a call that has taken too long, as gRPC ends a unary one."""
        asked = self._asked.pop(number, None)
        if asked is None:
            return  # answered in this very turn of the loop
        text = f"no answer within {timeout_s * 1000:.0f} ms"
        code = grpc.StatusCode.DEADLINE_EXCEEDED
        asked.fail(_error(code, text, "" if asked.sent else NOT_APPLIED))
        self._give_up(number)

    def _give_up(self, number: int) -> None:
        """Have the node give a call up, unless it was never sent."""
        if self._next.pop(number, None) is None and not self.ended:
            self._given_up.append(number)
            self._send_soon()

    def leave(self, on_end: Callable[[], None]) -> None:
        """End the stream when all calls on it are answered; nobody begins another one."""
        self._is_left = True
        self._reader.add_done_callback(lambda _: on_end())
        self._end_if_idle()

    def _end_if_idle(self) -> None:
        if self._is_left and not self._asked and not self._given_up:
            self._call.cancel()

    async def close(self) -> None:
        """End the stream, and let gRPC see its end: a process that ends before waits for it.

        Calls in flight are cancelled, as unary ones are when their channel is closed: who closes
        it under them does not want them tried again.
        """
        for asked in self._asked.values():
            asked.answer.cancel()
        self._end(_error(grpc.StatusCode.CANCELLED, "the connection was closed"))
        self._call.cancel()
        self._reader.cancel()
        tasks = [task for task in (self._reader, self._sender) if task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- sending ---

    def _send_soon(self) -> None:
        """Send what is ready when this turn of the loop is over."""
        idle = self._sender is None or self._sender.done()
        if self._begun and not self.ended and idle:
            self._sender = asyncio.create_task(self._send())

    async def _send(self) -> None:
        while (self._next or self._given_up) and not self.ended:
            taken, message = self._message()
            try:
                await self._call.write(message)
            except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
                self._broken = True
                return  # the reader sees the same end, and says why
            for asked in taken:
                if asked.on_sent is not None and not asked.answer.done():
                    asked.on_sent()

    def _message(self) -> tuple[list[_Asked], group_pb2.SessionRequest]:
        """Take what goes into the next message; from here on, a call counts as sent."""
        given_up, self._given_up = (
            self._given_up[:CALLS_A_MESSAGE],
            self._given_up[CALLS_A_MESSAGE:],
        )
        message = group_pb2.SessionRequest(given_up=given_up)
        taken: list[_Asked] = []
        size = 0
        for number, asked in tuple(self._next.items())[:CALLS_A_MESSAGE]:
            size += asked.size
            if taken and size > BYTES_A_MESSAGE:
                break
            del self._next[number]
            asked.sent = True
            taken.append(asked)
        message.calls.extend([asked.call for asked in taken])
        return taken, message

    # --- receiving ---

    async def _read(self) -> None:
        try:
            # A message that is written to a stream that has just been refused hides why it was.
            await self._call.initial_metadata()
            self._begun = True
            self._send_soon()
            async for message in self._call:
                for answer in message.answers:
                    self._received(answer)
                for push in message.pushes:
                    self._on_push(push)
            self._end(_ended_error(await self._call.trailing_metadata()))
        except grpc.aio.AioRpcError as error:
            self.refused = _is_refusal(error)
            self._end(self._cause(error))
        finally:
            if not self.ended:  # cancelled, or a defect here: no call may wait for its answer
                self._end(_error(grpc.StatusCode.CANCELLED, "nobody reads the stream any more"))

    def _received(self, answer: group_pb2.SessionAnswer) -> None:
        asked = self._asked.pop(answer.number, None)
        if asked is None or asked.answer.done():
            return  # given up
        field = answer.WhichOneof("response")
        if field is None:
            asked.fail(_error(grpc.StatusCode.INTERNAL, "the answer is of an unknown kind"))
        elif field == "status":
            asked.fail(_error_of(answer.status))
        else:
            asked.answer.set_result(getattr(answer, field))

    def _cause(self, error: grpc.aio.AioRpcError) -> Exception:
        """Return what the calls on a stream that broke end with."""
        if self.refused:
            return NotServed()
        if self._broken and error.code() is grpc.StatusCode.INTERNAL:
            # What grpc.aio makes of a message for a stream whose end has not been read yet.
            return _error(grpc.StatusCode.UNAVAILABLE, "the stream broke while it was written to")
        return error

    def _end(self, error: Exception) -> None:
        """End all calls with this error; those that were not sent have done nothing (S5)."""
        self.ended = True
        asked, self._asked = self._asked, {}
        unsent, self._next = self._next, {}
        for number, one in asked.items():
            one.fail(_not_sent(error) if number in unsent else error)


def _is_refusal(error: grpc.aio.AioRpcError) -> bool:
    """Return whether a node has no such stream, or no room for it: no call on it was begun.

    Streams of a connection are few, and all channels of a process to a node may share one.
    """
    if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return texts_in(error.trailing_metadata() or ()).get(OUTCOME_KEY) == NOT_APPLIED
    return error.code() is grpc.StatusCode.UNIMPLEMENTED


def _error(code: grpc.StatusCode, text: str, outcome: str = "") -> grpc.aio.AioRpcError:
    """Make the error that a unary call would have ended with."""
    trailing = grpc.aio.Metadata(*(((OUTCOME_KEY, outcome),) if outcome else ()))
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), trailing, details=text)


def _error_of(status: group_pb2.SessionStatus) -> Exception:
    """Make the error of a call that a node has ended with a status."""
    code = _CODES.get(status.code, grpc.StatusCode.UNKNOWN)
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return NotServed()
    trailing = grpc.aio.Metadata((OUTCOME_KEY, NOT_APPLIED if status.not_applied else UNKNOWN))
    if status.leader:
        trailing.add(LEADER_KEY, status.leader)
    if status.permanent:
        trailing.add(RETRY_KEY, "no")
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), trailing, details=status.message)


def _ended_error(trailing: Any) -> grpc.aio.AioRpcError:  # noqa: ANN401 - grpc.aio's metadata
    """Make the error of calls without an answer on a stream that the node has ended well.

    Its metadata says that they were not begun, and who leads.
    """
    text = "the node ended the stream before it began this call: it does not lead any more"
    return grpc.aio.AioRpcError(
        grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), trailing or grpc.aio.Metadata(), text
    )


def _not_sent(error: Exception) -> Exception:
    """Make the error of a call that never left, of what ended its stream."""
    if not isinstance(error, grpc.aio.AioRpcError):
        return error
    trailing = grpc.aio.Metadata((OUTCOME_KEY, NOT_APPLIED))
    if again := texts_in(error.trailing_metadata() or ()).get(RETRY_KEY):
        trailing.add(RETRY_KEY, again)
    text = readable(error.details() or "the stream ended")
    return grpc.aio.AioRpcError(error.code(), grpc.aio.Metadata(), trailing, details=text)
