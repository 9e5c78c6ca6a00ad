"""Bytes that are no message of the contract: the caller is told so, and nobody else notices.

Left to itself, the library ends such a call with UNKNOWN and writes a traceback into the node's log
for each, which lets any caller fill it. Services are registered through `checking` instead. Knows
no message and no rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import grpc
from google.protobuf.message import DecodeError

from holdfast.server.answering import end
from holdfast.server.faults import CallFailed, malformed
from holdfast.server.grpc_options import MESSAGE_FLOOR, MESSAGE_MARGIN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.server.answering import Context

    Decode = Callable[[bytes], Any]


def checking(server: grpc.aio.Server, bytes_max: Callable[[], int]) -> grpc.aio.Server:
    """What to hand to the generated `add_...Servicer_to_server`: the server behind a check.

    `bytes_max`: the longest request at this moment (S7, S23). gRPC's own limit is above what may
    ever be set, since what it refuses carries no word of what became of it (S5).
    """
    return cast("grpc.aio.Server", _Door(server, bytes_max))


class _Door:
    """The part of a server that the generated functions use."""

    def __init__(self, server: grpc.aio.Server, bytes_max: Callable[[], int]) -> None:
        self._server, self._bytes_max = server, bytes_max

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """Nothing: the same methods come by name in the next call."""

    def add_registered_method_handlers(self, service: str, methods: Mapping[str, Any]) -> None:
        """Register a service's methods, each behind a check of its requests' bytes."""
        checked = {name: _checked(each, self._bytes_max) for name, each in methods.items()}
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(service, checked),)
        )


def _checked(
    method: Any,  # noqa: ANN401 - of any shape
    bytes_max: Callable[[], int],
) -> grpc.RpcMethodHandler[Any, Any]:
    decode = _decoding(method.request_deserializer, bytes_max)
    encode = method.response_serializer
    if method.unary_unary:
        return grpc.unary_unary_rpc_method_handler(_unary(method.unary_unary, decode), None, encode)
    if method.unary_stream:
        return grpc.unary_stream_rpc_method_handler(method.unary_stream, decode, encode)
    # A stream's requests are decoded while its method reads them, so the method hears of it.
    return grpc.stream_stream_rpc_method_handler(method.stream_stream, decode, encode)


def _decoding(decode: Decode, bytes_max: Callable[[], int]) -> Decode:
    """As the generated function, but raising CallFailed for what it cannot or may not read."""

    def run(raw: bytes) -> Any:  # noqa: ANN401 - any request
        if len(raw) > MESSAGE_FLOOR and len(raw) > (most := bytes_max()):
            raise malformed(
                "the request",
                f"{len(raw)} bytes; at most {most} are allowed (log.entry_bytes_max and "
                f"{MESSAGE_MARGIN} more, but never below {MESSAGE_FLOOR}), so nothing was done. "
                "Split it, or raise the setting",
            )
        try:
            return decode(raw)
        except DecodeError as error:
            problem = f"{len(raw)} bytes that are no message of the contract; nothing was done"
            raise malformed("the request", problem) from error

    return run


def _unary(serve: Callable[[Any, Context], Any], decode: Decode) -> Callable[..., Any]:
    async def run(raw: bytes, context: Context) -> Any:  # noqa: ANN401 - any response
        try:
            request = decode(raw)
        except CallFailed as error:
            await end(context, error)
        return await serve(request, context)

    return run
