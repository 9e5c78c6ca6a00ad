"""Check requests before their methods see them: length, number of items, and readable at all.

A refusal is told to the caller alone. Without the check, gRPC ends a call that it cannot read with
UNKNOWN and writes a traceback to the node's log each time, so that any caller could fill the log.
 Services are registered through `checking` instead. Knows no message by name and no rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import grpc
from google.protobuf import descriptor_pool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from holdfast.server.access.admission import OURS
from holdfast.server.guard.answer_size import encoded
from holdfast.server.guard.item_bounds import Bounds
from holdfast.server.guard.open_streams import OpenStreams
from holdfast.server.guard.pace import Pace
from holdfast.server.guard.shares import Shares
from holdfast.server.metrics.call_counts import CallCounts, code_of, status_of
from holdfast.server.rpc.callers import end
from holdfast.server.rpc.errors import CallFailed, malformed
from holdfast.server.rpc.grpc_options import MESSAGE_FLOOR, MESSAGE_MARGIN

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping

    from google.protobuf.descriptor import MethodDescriptor

    from holdfast.server.access.admission import Admission
    from holdfast.server.metrics.call_counts import Codes
    from holdfast.server.rpc.callers import Context
    from holdfast.server.traces.traces import Traces

    Decode = Callable[[bytes], Any]
    Serve = Callable[[Any, Context], Any]


class InForce(NamedTuple):
    """What the settings allow at this moment (S7, S23), for what no fixed bound fits."""

    bytes_max: Callable[[], int]
    """Bytes of the longest request. gRPC's own limit is above any allowed setting, since gRPC's
    refusal does not say whether the request was carried out (S5)."""
    members_max: Callable[[], int]
    """How many members the largest group may have."""


def checking(
    server: grpc.aio.Server,
    in_force: InForce,
    pace: Pace | None = None,
    in_flight: Shares | None = None,
    open_streams: OpenStreams | None = None,
    counts: CallCounts | None = None,
    admission: Admission | None = None,
    traces: Traces | None = None,
) -> grpc.aio.Server:
    """Wrap the server for the generated `add_...Servicer_to_server`: each method gets a check.

    `pace`: measures and delays long calls. `in_flight`: who has how many bytes of requests open.
    `admission`: asks who may call what; None: everybody may everything, as tests of other rules do.
    `open_streams`: is told of each call. `counts`: gets unary calls. `traces`: follows some.
    """
    pace, in_flight = pace or Pace(), in_flight or bytes_in_flight()
    watchers = open_streams or OpenStreams(), counts or CallCounts()
    parts = (server, in_force, pace, in_flight, *watchers, admission, traces)
    return cast("grpc.aio.Server", _Door(*parts))


STREAMS_EACH_MAX: Final = 32
"""Streams of one connection; each `Connection` of `holdfast.client` has one for calls and one for
heartbeats, and several of them in a process may share a connection."""
STREAMS_MAX: Final = 20_000
SHORT_BYTES: Final = 1_024
"""Bytes below which only the number of requests in flight is bounded (`grpc_options`)."""
UNPACED: Final = frozenset(
    {"JoinGroup", "SyncGroup", "Heartbeat", "ConsumerGroupHeartbeat", "LeaveGroup", "OffsetCommit"}
    | {"HeartbeatStream"}
    | {"FindCoordinator", "Check"}
)
"""Methods whose short requests never wait: a member's session depends on them. All others keep to
the pace whatever their length, since a short request may ask for much."""
OF_CALLS: Final = frozenset({"Session"})
"""Streams whose messages hold many calls: the method itself keeps to the pace, between messages."""
IN_FLIGHT_EACH_MAX: Final = 32 << 20
IN_FLIGHT_MAX: Final = 256 << 20
"""Bytes of unanswered requests: of one connection, and of all together."""


def bytes_in_flight() -> Shares:
    """Make the shares of callers in what unanswered requests take of a node's memory."""
    return Shares(
        "bytes of requests in flight",
        IN_FLIGHT_EACH_MAX,
        IN_FLIGHT_MAX,
        "send the next long request when one of them is answered",
    )


class _Door:
    """A gRPC server, as far as the generated functions use it, that checks requests."""

    def __init__(
        self,
        server: grpc.aio.Server,
        in_force: InForce,
        pace: Pace,
        in_flight: Shares,
        open_streams: OpenStreams,
        counts: CallCounts,
        admission: Admission | None,
        traces: Traces | None,
    ) -> None:
        self._server, self._in_force, self._pace = server, in_force, pace
        self._bytes, self._open, self._counts = in_flight, open_streams, counts
        self._admission, self._traces = admission, traces
        self._streams = Shares(
            "streams", STREAMS_EACH_MAX, STREAMS_MAX, "one stream serves many members; share it"
        )

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """Do nothing: the next call registers the same methods by name."""

    def add_registered_method_handlers(self, service: str, methods: Mapping[str, Any]) -> None:
        """Register a service's methods, each behind a check of its requests."""
        described = descriptor_pool.Default().FindServiceByName(service)
        checked = {
            name: self._traced(
                f"{service}/{name}",
                self._checked(
                    name,
                    self._admitted(described.methods_by_name[name], each),
                    Bounds(described.methods_by_name[name].input_type),
                ),
            )
            for name, each in methods.items()
        }
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(service, checked),)
        )

    def _admitted(self, described: MethodDescriptor, method: Any) -> Any:  # noqa: ANN401 - of any shape
        """Put the check of who may call before a method of the contract."""
        service = described.containing_service
        if self._admission is None or not service.full_name.startswith(OURS):
            return method
        name = f"{service.name}.{described.name}"
        if method.unary_unary:
            respond = GetMessageClass(described.output_type)
            admitted = self._admission.unary(name, method.unary_unary, respond)
            return method._replace(unary_unary=admitted)
        if method.unary_stream:
            admitted = self._admission.stream(name, method.unary_stream)
            return method._replace(unary_stream=admitted)
        admitted = self._admission.stream(name, method.stream_stream)
        return method._replace(stream_stream=admitted)

    def _traced(self, path: str, method: Any) -> Any:  # noqa: ANN401 - of any shape
        """Have a unary method of the contract followed; without traces it stays as it is."""
        if self._traces is None or not method.unary_unary or not path.startswith(OURS):
            return method
        return method._replace(unary_unary=self._traces.unary(path, method.unary_unary))

    def _checked(
        self,
        name: str,
        method: Any,  # noqa: ANN401 - of any shape
        bounds: Bounds,
    ) -> grpc.RpcMethodHandler[Any, Any]:
        decode = _decoding(method.request_deserializer, bounds, self._in_force)
        if method.unary_unary:
            waits_from = SHORT_BYTES if name in UNPACED else -1
            codes = self._counts.of(name)
            unary = self._single(method.unary_unary, decode, waits_from, codes)
            return grpc.unary_unary_rpc_method_handler(unary, None, encoded)
        if method.unary_stream:
            watch = self._watch(method.unary_stream, decode)
            return grpc.unary_stream_rpc_method_handler(watch, None, encoded)
        decoded: Callable[..., AsyncIterator[Any]] = self._in_turn
        if name in UNPACED:  # a session could end while its heartbeat waits here unseen (S9)
            decoded = _decoded
        elif name in OF_CALLS:
            decoded = self._charged
        stream = self._stream(method.stream_stream, decode, decoded)
        return grpc.stream_stream_rpc_method_handler(stream, None, encoded)

    def _single(
        self, serve: Serve, decode: Decode, waits_from: int, codes: Codes
    ) -> Callable[..., Any]:
        """Guard a method with one request; requests above `waits_from` bytes keep to the pace.

        `codes`: counts how the calls end.
        """

        async def run(raw: bytes, context: Context) -> Any:  # noqa: ANN401 - any response, or none
            try:
                guarded = (
                    self._paced(context, paced(raw, context), len(raw))
                    if len(raw) > waits_from
                    else plain(raw, context)
                )
                answer = await self._open.served(context, guarded)
            except BaseException as error:
                codes[status_of(error, context)] += 1
                raise
            codes[code_of(answer)] += 1
            return answer

        async def plain(raw: bytes, context: Context) -> Any:  # noqa: ANN401 - as above
            try:
                request = decode(raw)
            except CallFailed as error:
                await end(context, error)
            return await serve(request, context)

        async def served(raw: bytes, context: Context) -> Any:  # noqa: ANN401 - as above
            return await serve(decode(raw), context)

        async def paced(raw: bytes, context: Context) -> Any:  # noqa: ANN401 - as above
            if len(raw) <= SHORT_BYTES:
                return await in_turn(raw, context)
            with self._bytes.held(context.peer(), len(raw)):
                return await in_turn(raw, context)

        async def in_turn(raw: bytes, context: Context) -> Any:  # noqa: ANN401 - as above
            await self._pace.turn(context.peer())
            return await self._pace.timed(context.peer(), served(raw, context), len(raw))

        return run

    def _watch(self, serve: Serve, decode: Decode) -> Callable[..., Any]:
        """Guard a method that answers one request with a stream; its start keeps to the pace."""

        async def watch(raw: bytes, context: Context) -> None:
            await self._pace.turn(context.peer())
            await serve(decode(raw), context)

        async def run(raw: bytes, context: Context) -> None:
            await self._open.streamed(context, lambda: self._paced(context, watch(raw, context)))

        return run

    def _stream(
        self, serve: Serve, decode: Decode, decoded: Callable[..., AsyncIterator[Any]]
    ) -> Callable[..., Any]:
        """Guard a method that reads a stream; bounds the streams of a connection and of all."""

        async def run(raws: AsyncIterator[bytes], context: Context) -> None:
            who = context.peer()
            try:
                with self._streams.held(who):
                    requests = decoded(raws, who, decode)
                    await self._open.streamed(context, lambda: serve(requests, context))
            except CallFailed as error:
                await end(context, error)

        return run

    async def _paced(self, context: Context, call: Coroutine[Any, Any, Any], size: int = 0) -> Any:  # noqa: ANN401 - as above
        """Await a call, end it with an error if it is refused, and tell the pace which it was.

        `size`: bytes of its request.
        """
        try:
            got = await call
        except CallFailed as error:
            if error.status is grpc.StatusCode.INVALID_ARGUMENT:
                self._pace.refused(context.peer(), size)
            await end(context, error)
        except grpc.aio.AbortError:
            if context.code() is grpc.StatusCode.INVALID_ARGUMENT:
                self._pace.refused(context.peer(), size)
            raise
        self._pace.served(context.peer())
        return got

    async def _in_turn(
        self, raws: AsyncIterator[bytes], who: str, decode: Decode
    ) -> AsyncIterator[Any]:
        """Decode a stream's requests; long ones keep to the pace."""
        async for raw in raws:
            if len(raw) <= SHORT_BYTES:
                yield decode(raw)
            else:
                await self._pace.turn(who)
                with self._pace.step(who, len(raw)):
                    request = decode(raw)
                yield request

    async def _charged(
        self, raws: AsyncIterator[bytes], who: str, decode: Decode
    ) -> AsyncIterator[Any]:
        """Decode a stream's requests; the caller pays for long ones, and does not wait here."""
        async for raw in raws:
            if len(raw) <= SHORT_BYTES:
                yield decode(raw)
            else:
                with self._pace.step(who, len(raw)):
                    request = decode(raw)
                yield request


async def _decoded(raws: AsyncIterator[bytes], _who: str, decode: Decode) -> AsyncIterator[Any]:
    """Decode a stream's requests; one that cannot be read raises in the method, which ends."""
    async for raw in raws:
        yield decode(raw)


def _decoding(decode: Decode, bounds: Bounds, in_force: InForce) -> Decode:
    """Make a decoder that raises CallFailed for a request that is unreadable or out of bounds."""
    free = min(MESSAGE_FLOOR, bounds.bytes_max or MESSAGE_FLOOR)

    def run(raw: bytes) -> Any:  # noqa: ANN401 - any request
        if len(raw) > free:
            _check_length(raw, bounds, in_force)
        bounds.check_bytes(raw, in_force.members_max)
        try:
            request = decode(raw)
        except DecodeError as error:
            problem = f"{len(raw)} bytes that are no message of the contract; nothing was done"
            raise malformed("the request", problem) from error
        if len(raw) > bounds.least:
            bounds.check(request, in_force.members_max)
        return request

    return run


def _check_length(raw: bytes, bounds: Bounds, in_force: InForce) -> None:
    """Raise CallFailed if the request is longer than its kind may be."""
    most = bounds.bytes_max
    if most is not None:
        if len(raw) > most:
            problem = f"{len(raw)} bytes; at most {most} are allowed in this call"
            raise malformed("the request", f"{problem}, so nothing was done. Split it")
    elif len(raw) > (most := in_force.bytes_max()):
        raise malformed(
            "the request",
            f"{len(raw)} bytes; at most {most} are allowed (log.entry_bytes_max and "
            f"{MESSAGE_MARGIN} more, but never below {MESSAGE_FLOOR}), so nothing was done. "
            "Split it, or raise the setting",
        )
