"""The door of the port for tokens: no call passes without a good one, whatever it calls.

It looks at a call before gRPC reads its message, so that strangers cannot have a node hold long
ones. A stream ends when its token does. Knows metadata, and no service.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, cast

import grpc
import grpc.aio

from holdfast.server.access.admission import OURS
from holdfast.server.guard.pace import Pace
from holdfast.server.rpc.callers import ByToken, end
from holdfast.server.rpc.errors import CallFailed
from holdfast.server.security.seen_addresses import see
from holdfast.server.security.tokens import TokenRefused, expired

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

    from holdfast.runtime.errors import Outcome
    from holdfast.server.rpc.callers import Context
    from holdfast.server.security.tokens import TokenCaller, Tokens

    Handler = grpc.RpcMethodHandler[Any, Any]
    Serve = Callable[[Any, Context], Awaitable[Any]]

logger = logging.getLogger(__name__)

HEADER: Final = "authorization"
SCHEME: Final = "bearer "
PASSING: Final = frozenset({"expired", "early", "key"})
"""Kinds of refusals after which a client may come again, with a newer token or the same one."""
REFUSAL_S: Final = 0.0005
"""Seconds of the loop that a refusal counts for: a connection gets 200 of them a second."""
TOLD_EVERY_S: Final = 60.0
"""Seconds until refusals of the same kind are told again, with how many there were."""


class TokenDoor(grpc.aio.ServerInterceptor):
    """Lets calls with good tokens in, and tells the services who calls."""

    def __init__(self, tokens: Tokens, addresses: Mapping[str, str]) -> None:
        """`addresses`: where clients with tokens reach a node, by its address for the others."""
        self._tokens, self._addresses = tokens, addresses
        self._pace, self._log = Pace(), _RefusalLog()
        self._open: dict[asyncio.Timeout, TokenCaller] = {}

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler:
        """Return what serves a call: its method, or one that refuses it."""
        details: Any = handler_call_details
        try:
            caller = self._tokens.caller(_token(details.invocation_metadata or ()))
        except TokenRefused as error:
            self._log.note(error)
            return self._refusing(error)
        # None, as of an unknown method, is for gRPC to refuse.
        handler = cast("Any", await continuation(handler_call_details))
        if handler is None or not details.method.startswith(f"/{OURS}"):
            return cast("Handler", handler)
        return cast("Handler", self._admitted(handler, caller))

    def end_untrusted(self) -> None:
        """End the streams whose tokens count no more since the issuer's keys have changed."""
        for limit, caller in self._open.items():
            if not self._tokens.trusts(caller) and not limit.expired():
                limit.reschedule(asyncio.get_running_loop().time())

    def _admitted(self, handler: Any, caller: TokenCaller) -> Any:  # noqa: ANN401 - a named tuple of gRPC
        """Tell a method of ours who calls, and end it with the token if it is a stream."""
        if handler.unary_unary:
            return handler._replace(unary_unary=self._single(handler.unary_unary, caller))
        if handler.unary_stream:
            return handler._replace(unary_stream=self._stream(handler.unary_stream, caller))
        return handler._replace(stream_stream=self._stream(handler.stream_stream, caller))

    def _single(self, serve: Serve, caller: TokenCaller) -> Serve:
        async def run(request: Any, context: Context) -> Any:  # noqa: ANN401 - of any method
            see(self._addresses)
            return await serve(request, cast("Context", ByToken(context, caller.principal)))

        return run

    def _stream(self, serve: Serve, caller: TokenCaller) -> Serve:
        async def run(requests: Any, context: Context) -> None:  # noqa: ANN401 - of any method
            see(self._addresses)
            named = cast("Context", ByToken(context, caller.principal))
            limit = asyncio.timeout(max(caller.ends_at - self._tokens.now(), 0))
            try:
                async with limit:
                    with self._held(limit, caller):
                        await serve(requests, named)
            except TimeoutError:
                if not limit.expired():
                    raise
                await end(context, _failed(self._ended(caller), "unknown"))

        return run

    @contextmanager
    def _held(self, limit: asyncio.Timeout, caller: TokenCaller) -> Iterator[None]:
        self._open[limit] = caller
        try:
            yield
        finally:
            del self._open[limit]

    def _ended(self, caller: TokenCaller) -> TokenRefused:
        if self._tokens.trusts(caller):
            return expired(caller.ends_at)
        return TokenRefused(
            "key",
            "the issuer has withdrawn the key that signed this stream's token. Fetch a new token",
        )

    def _refusing(self, error: TokenRefused) -> Handler:
        """Return what refuses a call of any kind without reading its message."""

        async def refuse(_: Any, context: Context) -> None:  # noqa: ANN401 - of any method
            await self._pace.turn(context.peer())
            self._pace.charge(context.peer(), REFUSAL_S)
            await end(context, _failed(error, "not-applied"))

        return grpc.stream_stream_rpc_method_handler(cast("Any", refuse))


class _RefusalLog:
    """Tells refusals in the node's log: each kind at once, then its number once a minute."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._told: dict[str, float] = {}
        self._untold: Counter[str] = Counter()

    def note(self, error: TokenRefused) -> None:
        """Note a refusal."""
        now = self._clock()
        if now - self._told.get(error.kind, -TOLD_EVERY_S) < TOLD_EVERY_S:
            self._untold[error.kind] += 1
            return
        self._told[error.kind] = now
        more = self._untold.pop(error.kind, 0)
        logger.warning(
            "a call on the port for tokens was refused: %s%s",
            error.sentence,
            f" ({more} more of this kind since it was told last)" if more else "",
        )


def _token(metadata: Sequence[tuple[str, str | bytes]]) -> str:
    """Return the token in a call's metadata; raises TokenRefused unless there is one."""
    found = [value for key, value in metadata if key == HEADER]
    if len(found) != 1:
        held = f"{len(found)} times the metadata" if found else "no metadata"
        raise TokenRefused(
            "missing",
            f"the call has {held} {HEADER!r}, and this port asks for one `Bearer` token: give the "
            "client one (--token-file, Tls(…, token=…)), or call the port for certificates",
        )
    text = found[0] if isinstance(found[0], str) else found[0].decode(errors="replace")
    if text[: len(SCHEME)].lower() != SCHEME:
        raise TokenRefused(
            "missing", f"the metadata {HEADER!r} begins with another word than `Bearer`"
        )
    return text[len(SCHEME) :].strip()


def _failed(error: TokenRefused, outcome: Outcome) -> CallFailed:
    """Make the end of a call of a token that does not count."""
    passing = error.kind in PASSING
    status = grpc.StatusCode.UNAUTHENTICATED
    return CallFailed(status, error.sentence, outcome, repeatable=passing)
