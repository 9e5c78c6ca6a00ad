"""gRPC's server in the simulator: finds the method, runs it in its node's loop, carries it back.

`SimServer` takes the place of `grpc.aio.Server` below the real `Node`: the real services, behind
their real checks and serializers, are what is called. Knows connections as two functions, and
nothing of the network.
"""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import grpc

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from simulation.process import Process

logger = logging.getLogger(__name__)

Trailing = tuple[tuple[str, str], ...]
END = object()


class Status(NamedTuple):
    """How a call ended at the server."""

    code: grpc.StatusCode
    details: str
    trailing: Trailing


OK = Status(grpc.StatusCode.OK, "", ())


class SimServer:
    """What a node's process listens with; implements what `Node` uses of `grpc.aio.Server`."""

    def __init__(self, process: Process, machine: str) -> None:
        self.process, self.machine = process, machine
        self.listening = False
        self.accepted = 0
        """Connections so far."""
        self._handlers: list[grpc.GenericRpcHandler] = []
        self._found: dict[str, Any] = {}

    def add_generic_rpc_handlers(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        """Serve these too."""
        self._handlers.extend(handlers)

    def add_registered_method_handlers(self, service: str, methods: object) -> None:
        """Nothing: the same methods come by `add_generic_rpc_handlers`."""

    async def start(self) -> None:
        """Let connections in."""
        self.listening = True

    async def stop(self, grace: float | None) -> None:
        """Let nobody in any more; what runs is given some time."""
        self.listening = False
        await asyncio.sleep(grace or 0)

    def method(self, name: str) -> Any:  # noqa: ANN401 - grpc's handlers have no useful type
        """The handler of a method by its full name; None if no service has it."""
        if name not in self._found:
            details = SimpleNamespace(method=name, invocation_metadata=())
            handlers = (handler.service(details) for handler in self._handlers)
            self._found[name] = next((found for found in handlers if found is not None), None)
        return self._found[name]


class ServerCall:
    """One call at the server, and the context that its method is given."""

    def __init__(
        self,
        server: SimServer,
        name: str,
        peer: str,
        metadata: Trailing,
        head: Callable[[], None],
        reply: Callable[[bytes], None],
        end: Callable[[Status], None],
    ) -> None:
        """`head` carries initial metadata, `reply` a message, `end` the status behind the last."""
        self._server, self._name, self._peer, self._metadata = server, name, peer, metadata
        self._head, self._reply, self._end = head, reply, end
        self._requests: asyncio.Queue[Any] = asyncio.Queue()
        self._trailing: Trailing = ()
        self._status = OK
        self._task: asyncio.Task[None] | None = None
        self._encode: Callable[[Any], bytes] = bytes

    # --- from the wire, in the node's loop ---

    def begin(self, raw: bytes | None) -> None:
        """Run the method; `raw` None: its requests come one by one."""
        if not self._server.listening:
            self._end(Status(grpc.StatusCode.UNAVAILABLE, "the server has shut down", ()))
            return
        self._task = asyncio.ensure_future(self._run(raw))

    def put(self, raw: bytes) -> None:
        """Another request of a stream."""
        self._requests.put_nowait(raw)

    def half_close(self) -> None:
        """No more requests come."""
        self._requests.put_nowait(END)

    def abandon(self) -> None:
        """The client has cancelled, or is gone."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self, raw: bytes | None) -> None:
        try:
            await self._serve(raw)
        except grpc.aio.AbortError:
            pass
        except asyncio.CancelledError:
            self._status = Status(grpc.StatusCode.CANCELLED, "cancelled", ())
        except Exception as error:
            logger.exception("alarm: %s raised", self._name)
            self._status = Status(grpc.StatusCode.UNKNOWN, repr(error), ())
        self._end(self._status._replace(trailing=self._status.trailing or self._trailing))

    async def _serve(self, raw: bytes | None) -> None:
        handler = self._server.method(self._name)
        if handler is None:
            self._status = Status(grpc.StatusCode.UNIMPLEMENTED, "no such method", ())
            return
        self._encode = handler.response_serializer
        if handler.unary_unary is not None:
            self._reply(self._encode(await handler.unary_unary(raw, self)))
        elif handler.unary_stream is not None:
            await handler.unary_stream(raw, self)
        else:
            await handler.stream_stream(self._incoming(), self)

    async def _incoming(self) -> AsyncIterator[bytes]:
        while (raw := await self._requests.get()) is not END:
            yield raw

    # --- what a method uses of `grpc.aio.ServicerContext` ---

    async def send_initial_metadata(self, metadata: Trailing) -> None:
        """Tell the client that its call has begun; nobody here says more with it."""
        assert not metadata
        self._head()

    async def write(self, message: Any) -> None:  # noqa: ANN401 - any response of the contract
        """Send a message of a stream."""
        self._reply(self._encode(message))

    async def abort(
        self, code: grpc.StatusCode, details: str = "", trailing_metadata: Trailing = ()
    ) -> NoReturn:
        """End the call with a status."""
        self._status = Status(code, details, tuple(trailing_metadata))
        raise grpc.aio.AbortError("locally aborted")

    def set_trailing_metadata(self, trailing: Trailing) -> None:
        """What goes with the end of the call."""
        self._trailing = tuple(trailing)

    def invocation_metadata(self) -> Trailing:
        """What the client sent beside the request."""
        return self._metadata

    def code(self) -> grpc.StatusCode:
        """What the call was ended with; OK as long as it was not."""
        return self._status.code

    def peer(self) -> str:
        """The client's address."""
        return self._peer

    def peer_identities(self) -> None:
        """There is no TLS, so that nobody shows a node's certificate."""

    def auth_context(self) -> dict[str, list[bytes]]:
        """Nobody has a certificate here."""
        return {}
