"""gRPC's channels in the simulator: what the real client opens instead of `grpc.aio` ones.

A channel has the states that the client asks for, connects as TCP does, and makes the calls of
client_side.py. Knows no request.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import grpc

from simulation.client_side import Call, Line, Method, Parts

if TYPE_CHECKING:
    from collections.abc import Callable

    from simulation.client_side import Net
    from simulation.process import Process
    from simulation.server_side import SimServer, Trailing

IDLE: Final = grpc.ChannelConnectivity.IDLE
CONNECTING: Final = grpc.ChannelConnectivity.CONNECTING
READY: Final = grpc.ChannelConnectivity.READY
FAILED: Final = grpc.ChannelConnectivity.TRANSIENT_FAILURE
SHUTDOWN: Final = grpc.ChannelConnectivity.SHUTDOWN
BACKOFF_S: Final = (0.1, 1.0)
KNOCK_S: Final = 1.0
"""How often TCP asks again for a connection."""
KNOCKS_MAX: Final = 20


class SimChannel:
    """A channel of one process to one address."""

    def __init__(self, net: Net, client: Process, address: str) -> None:
        self._net, self._client, self._address = net, client, address
        self.line: Line | None = None
        self._state = IDLE
        self._waiting: list[asyncio.Future[None]] = []
        self._failures = 0
        self._attempt = 0

    def _call(
        self,
        method: Method,
        request: Any,  # noqa: ANN401 - any request of the contract
        timeout: float | None,
        metadata: Trailing,
    ) -> Call:
        parts = Parts(self._client.name, self._net.observer)
        return Call(self.line, parts, method, request, timeout, metadata)

    # --- connecting ---

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:  # noqa: FBT001, FBT002 - grpc's
        """The state now."""
        if self._state is IDLE and try_to_connect:
            self._connect()
        return self._state

    async def wait_for_state_change(self, last: grpc.ChannelConnectivity) -> None:
        """Return when the state is another."""
        while self._state is last:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            await future

    def _enter(self, state: grpc.ChannelConnectivity) -> None:
        self._state = state
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def _connect(self) -> None:
        self._enter(CONNECTING)
        self._attempt += 1
        self._knock(self._attempt, 1)

    def _knock(self, attempt: int, times: int) -> None:
        """Ask for a connection, and again if nothing is heard."""
        if self._state is not CONNECTING or self._attempt != attempt:
            return
        if times > KNOCKS_MAX:
            self._refused()
            return
        machine = self._net.machine(self._address)
        there, back = self._net.wire.both(self._client.machine, machine)

        def arrive() -> None:
            server = self._net.listener(self._address)
            if server is not None and server.process.alive:
                server.process.loop.call_soon(accept, server)
            elif self._net.has_power(machine):
                back.stream(lambda: self._in_client(attempt, self._refused))

        def accept(server: SimServer) -> None:
            back.stream(lambda: self._in_client(attempt, self._connected, server))

        there.stream(arrive)
        self._client.loop.call_later(KNOCK_S, self._knock, attempt, times + 1)

    def _in_client(self, attempt: int, act: Callable[..., None], *arguments: object) -> None:
        if self._client.alive and self._attempt == attempt and self._state is CONNECTING:
            self._client.loop.call_soon(act, *arguments)

    def _connected(self, server: SimServer) -> None:
        if self._state is not CONNECTING:
            return
        if not server.process.alive:
            self._refused()
            return
        self._failures = 0
        line = self.line = Line(self._net, self._client, server)
        self._net.lines.append(line)
        line.on_break = lambda: self._broken(line)
        self._enter(READY)

    def _refused(self) -> None:
        if self._state is not CONNECTING:
            return
        self._failures += 1
        self._enter(FAILED)
        pause_s = min(BACKOFF_S[1], BACKOFF_S[0] * 1.6**self._failures)
        self._client.loop.call_later(pause_s * self._client.random.uniform(0.8, 1.2), self._idle)

    def _idle(self) -> None:
        if self._state is FAILED:
            self._enter(IDLE)

    def _broken(self, line: Line) -> None:
        for call in list(line.calls):
            call.broken()
        if self.line is line:
            self.line = None
            if self._state is READY:
                self._enter(IDLE)

    async def close(self, grace: float | None = None) -> None:
        """End the connection and its calls."""
        del grace
        if self.line is not None:
            for call in list(self.line.calls):
                call.cancel()
            self.line.is_up = False
        self._enter(SHUTDOWN)

    # --- what generated stubs ask for ---

    def unary_unary(
        self,
        method: str,
        request_serializer: Callable[[Any], bytes],
        response_deserializer: Callable[[bytes], Any],
        _registered_method: bool = False,  # noqa: FBT001, FBT002 - grpc's
    ) -> Callable[..., Call]:
        """A method with one request and one answer."""
        return self._asking(Method(method, request_serializer, response_deserializer, unary=True))

    def unary_stream(
        self,
        method: str,
        request_serializer: Callable[[Any], bytes],
        response_deserializer: Callable[[bytes], Any],
        _registered_method: bool = False,  # noqa: FBT001, FBT002 - grpc's
    ) -> Callable[..., Call]:
        """A method with one request and many answers."""
        return self._asking(Method(method, request_serializer, response_deserializer, unary=False))

    def _asking(self, how: Method) -> Callable[..., Call]:
        """What sends one request, and gives the call whose answers come."""

        def call(request: Any, timeout: float | None = None, metadata: Trailing = ()) -> Call:  # noqa: ANN401 - any
            return self._call(how, request, timeout, metadata)

        return call

    def stream_stream(
        self,
        method: str,
        request_serializer: Callable[[Any], bytes],
        response_deserializer: Callable[[bytes], Any],
        _registered_method: bool = False,  # noqa: FBT001, FBT002 - grpc's
    ) -> Callable[..., Call]:
        """A method with many of both."""
        how = Method(method, request_serializer, response_deserializer, unary=False)

        def call(timeout: float | None = None, metadata: Trailing = ()) -> Call:
            return self._call(how, None, timeout, metadata)

        return call
