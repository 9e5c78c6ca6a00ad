"""Calls of a client in the simulator, and the connection that carries them.

A call ends with an answer, a status, a time-out of its own or the end of the connection. Whoever
records the history is told what was sent and what came of it. Knows no request.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import grpc
import grpc.aio

from holdfast.v1 import group_pb2
from simulation.server_side import END, ServerCall, SimServer, Status

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Generator, Iterator

    from simulation.beats import Meddler
    from simulation.process import Process
    from simulation.server_side import Trailing
    from simulation.wire import Wire

_GIVEN_UP = Status(grpc.StatusCode.CANCELLED, "given up", ())


class Observer(Protocol):
    """Who writes the history."""

    def sent(self, who: str, request: Any) -> int:  # noqa: ANN401 - any request
        """A request was sent; the number of the call, 0 if it is none of the history."""

    def answered(self, call: int, request: Any, response: Any) -> None:  # noqa: ANN401 - any
        """It was answered."""

    def failed(self, call: int, status: Status) -> None:
        """It ended without an answer."""


class Net(Protocol):
    """What a channel needs of the world."""

    wire: Wire
    observer: Observer
    lines: list[Line]
    beats: Meddler

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where the cluster's nodes listen now."""

    def listener(self, address: str) -> SimServer | None:
        """The process that has this port open now."""

    def machine(self, address: str) -> str:
        """The machine with this address."""

    def has_power(self, machine: str) -> bool:
        """Whether the machine itself answers."""


class Line:
    """One connection from a client's process to a node's."""

    def __init__(self, net: Net, client: Process, server: SimServer) -> None:
        self._there, self._back = net.wire.both(client.machine, server.machine)
        self.client, self.server, self.net = client, server, net
        server.accepted += 1
        self.peer = f"ipv4:127.0.0.1:{50_000 + server.accepted}"
        self.is_up = True
        self.calls: list[Call] = []
        self.on_break: Callable[[], None] = lambda: None
        server.process.on_death.append(self._peer_died)
        client.on_death.append(self._client_died)

    def to_server(self, act: Callable[..., None], *arguments: object) -> None:
        """Have something done in the node's loop."""

        def arrive() -> None:
            if self.is_up and self.server.process.alive:
                self.server.process.loop.call_soon(act, *arguments)

        self._there.stream(arrive)

    def to_client(self, act: Callable[..., None], *arguments: object) -> None:
        """Have something done in the client's loop."""
        if not self.server.process.alive:
            return

        def arrive() -> None:
            if self.is_up and self.client.alive:
                self.client.loop.call_soon(act, *arguments)

        self._back.stream(arrive)

    def reset(self) -> None:
        """Both ends find the connection broken."""
        if not self.is_up:
            return
        self.is_up = False
        if self.client.alive:
            self.client.loop.call_soon(self.on_break)
        for call in self.calls:
            if self.server.process.alive:
                self.server.process.loop.call_soon(call.at_server.abandon)

    def _peer_died(self) -> None:
        """Its kernel says so, as soon as that can be heard."""
        self._back.stream(self.reset)

    def _client_died(self) -> None:
        self._there.stream(self.reset)


class Method(NamedTuple):
    """A method of the contract: how it is called, and what its messages are as bytes."""

    name: str
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]
    unary: bool


class Call:
    """A call as its caller holds it: unary, or a stream."""

    def __init__(
        self,
        line: Line | None,
        parts: Parts,
        method: Method,
        request: Any,  # noqa: ANN401 - any request; None: a stream of them
        timeout: float | None,
        metadata: Trailing,
    ) -> None:
        self._line, self._parts, self._method, self._request = line, parts, method, request
        self._unary = method.unary
        self._done: asyncio.Future[Status] = asyncio.get_running_loop().create_future()
        self._begun = asyncio.Event()
        self._messages: asyncio.Queue[Any] = asyncio.Queue()
        self._response: Any = None
        self._timer: asyncio.TimerHandle | None = None
        self._number = self._parts.opened(request) if request is not None else 0
        if line is None or not line.is_up:
            self._end(Status(grpc.StatusCode.UNAVAILABLE, "the connection is gone", ()))
            return
        self._begin(line, timeout, metadata)

    def _begin(self, line: Line, timeout: float | None, metadata: Trailing) -> None:
        line.calls.append(self)
        self.at_server = ServerCall(
            line.server,
            self._method.name,
            line.peer,
            metadata,
            lambda: line.to_client(self._begun.set),
            lambda raw: line.to_client(self._arrived, raw),
            lambda status: line.to_client(self._end, status),
        )
        self._says(line, self._request)
        raw = None if self._request is None else self._method.encode(self._request)
        self._metadata = metadata
        if self._passes(self._request):
            line.to_server(self.at_server.begin, raw)
        if timeout is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(timeout, 0.001), self._late, timeout)

    # --- from the wire ---

    def _arrived(self, raw: bytes) -> None:
        if self._done.done():
            return
        self._begun.set()
        message = self._method.decode(raw)
        if self._line is not None and self._line.client.assigner is not None:
            self._line.client.assigner.hears(self._line, message)
        self._parts.arrived(self._number, self._request, message, unary=self._unary)
        if self._unary:
            self._response = message
        else:
            self._messages.put_nowait(message)

    def _late(self, timeout: float) -> None:
        self._end(Status(grpc.StatusCode.DEADLINE_EXCEEDED, f"no answer in {timeout} s", ()))
        if self._line is not None:
            self._line.to_server(self.at_server.abandon)

    def _end(self, status: Status) -> None:
        if self._done.done():
            return
        if self._timer is not None:
            self._timer.cancel()
        if self._line is not None and self in self._line.calls:
            self._line.calls.remove(self)
        answered = self._unary and self._response is not None
        self._parts.ended(0 if answered else self._number, status)
        self._done.set_result(status)
        self._begun.set()
        self._messages.put_nowait(END)

    def broken(self) -> None:
        """The connection is gone; nobody can tell what became of the call."""
        self._end(Status(grpc.StatusCode.UNAVAILABLE, "the connection broke", ()))

    # --- what the client uses of grpc.aio's calls ---

    def __await__(self) -> Generator[Any, None, Any]:
        try:
            status = yield from asyncio.shield(self._done).__await__()
        except asyncio.CancelledError:
            self.cancel()
            raise
        if status.code is not grpc.StatusCode.OK:
            raise _error(status)
        return self._response

    async def initial_metadata(self) -> Trailing:
        """What came before the first message; empty, as nobody here sends any."""
        await self._begun.wait()
        return ()

    async def trailing_metadata(self) -> Trailing:
        """What came with the end of the call."""
        return (await asyncio.shield(self._done)).trailing

    async def write(self, message: Any) -> None:  # noqa: ANN401 - any request of the contract
        """Send a request of a stream."""
        if self._done.done() or self._line is None:
            raise asyncio.InvalidStateError("the call has ended")
        self._says(self._line, message)
        self._parts.wrote(message)
        if isinstance(message, group_pb2.SessionRequest):
            message = self._meddled(message)
        elif not self._whole(message):
            return
        self._line.to_server(self.at_server.put, self._method.encode(message))

    @staticmethod
    def _says(line: Line, request: Any) -> None:  # noqa: ANN401 - any request
        if request is not None and line.client.assigner is not None:
            line.client.assigner.says(request)

    def _passes(self, request: Any) -> bool:  # noqa: ANN401 - any request
        net = self._line.net if self._line is not None else None
        return net is None or net.beats.passes(self._line, request, self._metadata, net.observer)  # type: ignore[arg-type]  # a line

    def _meddled(self, message: group_pb2.SessionRequest) -> group_pb2.SessionRequest:
        """What of a stream's message goes on as usual."""
        going = [one for one in message.calls if self._passes(getattr(one, _kind(one)))]
        return group_pb2.SessionRequest(calls=going, given_up=message.given_up)

    def _whole(self, batch: group_pb2.HeartbeatBatch) -> bool:
        """Whether all of a batch go on: answers are matched by place, so it is never cut."""
        passing = [self._passes(one) for one in batch.consumer_requests]
        return all(passing)

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._read()

    async def _read(self) -> AsyncIterator[Any]:
        while (message := await self._messages.get()) is not END:
            yield message
        status = self._done.result()
        if status.code is not grpc.StatusCode.OK:
            raise _error(status)

    def cancel(self) -> bool:
        """Nobody waits for it any more."""
        if self._done.done():
            return False
        if self._line is not None and self._line.is_up:
            self._line.to_server(self.at_server.abandon)
        self._end(Status(grpc.StatusCode.CANCELLED, "cancelled", ()))
        return True


def _error(status: Status) -> grpc.aio.AioRpcError:
    trailing = grpc.aio.Metadata(*status.trailing)
    return grpc.aio.AioRpcError(status.code, grpc.aio.Metadata(), trailing, status.details)


class Parts:
    """What of a call is one call in the history: itself, or each call of a stream's messages."""

    def __init__(self, who: str, observer: Observer) -> None:
        self._who, self._observer = who, observer
        self._open: dict[tuple[int, int], tuple[int, Any]] = {}

    def opened(self, request: Any) -> int:  # noqa: ANN401 - any request
        """A unary call is sent."""
        return self._observer.sent(self._who, request)

    def wrote(self, message: Any) -> None:  # noqa: ANN401 - a message of any stream
        """A message of a stream is sent."""
        if isinstance(message, group_pb2.SessionRequest):
            for given_up in message.given_up:
                self._ended_one(given_up, _GIVEN_UP)
            calls = ((one.number, 0, getattr(one, _kind(one))) for one in message.calls)
        else:
            calls = ((message.batch, place, one) for place, one in _placed(message, "requests"))
        for number, place, request in calls:
            self._open[number, place] = self._observer.sent(self._who, request), request

    def arrived(self, number: int, request: Any, message: Any, *, unary: bool) -> None:  # noqa: ANN401 - any
        """An answer has come."""
        if unary:
            if number:
                self._observer.answered(number, request, message)
            return
        for answer in getattr(message, "answers", ()):
            if answer.HasField("status"):
                self._ended_one(answer.number, _status(answer.status))
            else:
                self._answered_one(answer.number, 0, getattr(answer, _kind(answer, "response")))
        if isinstance(message, group_pb2.HeartbeatBatchResponse):
            for place, response in _placed(message, "responses"):
                self._answered_one(message.batch, place, response)

    def _answered_one(self, number: int, place: int, response: Any) -> None:  # noqa: ANN401 - any
        found = self._open.pop((number, place), None)
        if found is not None:
            self._observer.answered(*found, response)

    def _ended_one(self, number: int, status: Status) -> None:
        found = self._open.pop((number, 0), None)
        if found is not None:
            self._observer.failed(found[0], status)

    def ended(self, number: int, status: Status) -> None:
        """The call is over; whatever of it is not answered will never be."""
        if number:
            self._observer.failed(number, status)
        for open_number, _ in self._open.values():
            self._observer.failed(open_number, status)
        self._open.clear()


def _kind(one: Any, of: str = "request") -> str:  # noqa: ANN401 - a call or an answer
    """Which of the kinds of calls a stream's call or answer is."""
    return str(one.WhichOneof(of))


def _placed(message: Any, what: str) -> Iterator[tuple[int, Any]]:  # noqa: ANN401 - a batch or its answer
    """The requests or responses of a batch: classic ones from 0 up, the others from -1 down."""
    yield from enumerate(getattr(message, what))
    yield from ((-1 - place, one) for place, one in enumerate(getattr(message, f"consumer_{what}")))


def _status(told: group_pb2.SessionStatus) -> Status:
    """What the unary call would have ended with."""
    code = next(code for code in grpc.StatusCode if code.value[0] == told.code)
    outcome = "not-applied" if told.not_applied else "unknown"
    return Status(code, told.message, (("holdfast-outcome", outcome),))
