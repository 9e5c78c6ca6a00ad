"""The end of a service's method: an answer, an error code, or a gRPC status with its outcome (S5).

`answered` wraps a unary method; `end` ends a stream. `Callers` reads who calls from the call's
metadata and certificate; `Identity` is what they say. Knows no rules.
"""

from __future__ import annotations

import functools
import hashlib
import logging
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, ParamSpec, TypeVar
from urllib.parse import unquote

import grpc

from holdfast.coordinator.model.commands import Caller
from holdfast.coordinator.model.text import readable, truncate
from holdfast.raft.fingerprints import fingerprints_in
from holdfast.raft.transport.peer_names import names_a_node
from holdfast.runtime.errors import Crashed
from holdfast.server.config.node_config import ANONYMOUS
from holdfast.server.rpc.errors import (
    ENDED,
    LEADER_KEY,
    OUTCOME_KEY,
    RETRY_KEY,
    CallFailed,
    Refused,
    ending,
    malformed,
)
from holdfast.server.security.client_port import Principals
from holdfast.server.translate import limits
from holdfast.v1 import extras_pb2 as x

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from google.protobuf.message import Message

    from holdfast.coordinator.model.ids import CallId
    from holdfast.runtime.errors import Outcome
    from holdfast.server.rpc.errors import Ended

logger = logging.getLogger(__name__)

Context = grpc.aio.ServicerContext[Any, Any]
Service = TypeVar("Service")
Request = TypeVar("Request", bound="Message")
Response = TypeVar("Response", bound="Message")
P = ParamSpec("P")

CLIENT_ID_KEY: Final = "holdfast-client-id"
CLIENT_ID_MAX: Final = 255
"""Characters of a client id, which becomes part of member ids and of a group's description."""

Method = "Callable[[Service, Request, Context], Awaitable[Response]]"


def answered(
    respond: Callable[..., Response],
) -> Callable[
    [Callable[[Service, Request, Context], Awaitable[Response]]],
    Callable[[Service, Request, Context], Awaitable[Response]],
]:
    """Wrap a unary method; `respond` makes its response, if that has a top-level error_code.

    Refusals of a method whose response has none are sent as gRPC statuses.
    """
    coded = has_code(respond)

    def wrap(
        method: Callable[[Service, Request, Context], Awaitable[Response]],
    ) -> Callable[[Service, Request, Context], Awaitable[Response]]:
        @functools.wraps(method)
        async def run(self: Service, request: Request, context: Context) -> Response:
            try:
                return await method(self, request, context)
            except ENDED as error:
                told = ending(error)
                if coded and isinstance(told, Refused):
                    return _refusal(respond, told, context)
                await end(context, told)
            except grpc.aio.AbortError:
                raise
            except Exception:
                logger.exception("a call failed inside", extra=named(method.__name__, request))
                await end(context, Crashed(method.__name__))

        return run

    return wrap


def named(method: str, request: object) -> dict[str, str]:
    """Return what a log line says of the call that caused it: `extra` of a logger's method."""
    request_id = getattr(getattr(request, "holdfast", None), "request_id", "")
    return {"call": f"{method} {truncate(request_id)}".rstrip()}


def has_code(respond: Callable[..., Message]) -> bool:
    """Return whether a response, given as its class, has a top-level error_code."""
    return "error_code" in respond.DESCRIPTOR.fields_by_name  # type: ignore[attr-defined]  # a message class


def _refusal(respond: Callable[..., Response], error: Refused, context: Context) -> Response:
    if error.leader:
        context.set_trailing_metadata(((LEADER_KEY, error.leader),))
    return refusal(respond, error)


def refusal(respond: Callable[..., Response], error: Refused) -> Response:
    """Make the response of a call that was refused; `respond` makes one with an error_code."""
    extras = x.ResponseExtras(message=readable(error.sentence))
    if error.leader:
        extras.leader_hint = error.leader
    return respond(error_code=error.code, holdfast=extras)


async def end(context: Context, ended: Ended, beside: Outcome = "not-applied") -> NoReturn:
    """End the call with a status and with the outcome of the change (S5).

    `beside`: the outcome of other requests of the call that have no answer yet.
    """
    error = ending(ended)
    outcome = error.outcome if isinstance(error, CallFailed) else "not-applied"
    if beside == "unknown":
        outcome = beside
    trailing: list[tuple[str, str]] = [(OUTCOME_KEY, outcome)]
    if isinstance(error, Refused) and error.leader:
        trailing.append((LEADER_KEY, error.leader))
    if isinstance(error, CallFailed) and not error.repeatable:
        trailing.append((RETRY_KEY, "no"))
    await context.abort(error.status, readable(error.sentence), tuple(trailing))


class Identity(NamedTuple):
    """Who calls, as its certificate, its metadata and its address say."""

    principal: str
    client_id: str
    client_host: str

    def caller(self, call: CallId, request: Message, extras: x.RequestExtras) -> Caller:
        """Return the caller of a command; raises CallFailed for a malformed request id."""
        request_id = limits.request_id(extras.request_id)
        return Caller(
            call=call,
            principal=self.principal,
            client_id=self.client_id,
            client_host=self.client_host,
            request_id=request_id,
            digest=_digest(request) if request_id else b"",
        )


class ByToken:
    """The context of a call whose caller has shown a good token; else as gRPC's own."""

    def __init__(self, context: Context, principal: str) -> None:
        self._context, self.principal = context, principal

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of gRPC's context
        return getattr(self._context, name)


class Callers:
    """Reads from a call's metadata and certificate who calls."""

    def __init__(self) -> None:
        self._principals = Principals()

    def of(
        self, call: CallId, request: Message, extras: x.RequestExtras, context: Context
    ) -> Caller:
        """Return the caller of a command; raises CallFailed for a malformed request id or name."""
        return self.identity(context).caller(call, request, extras)

    def asker(self, context: Context) -> Asker:
        """Return what reads who calls, once it is asked for."""
        return Asker(self, context)

    def identity(self, context: Context) -> Identity:
        """Return who calls; raises CallFailed for a malformed name.

        A stream is one call to gRPC, on one connection, so this holds for all of the stream. It
        must not be kept for longer: the address of a peer is used again by others.
        """
        principal = self.principal(context)
        return Identity(principal, client_id(context) or principal, _host(context.peer()))

    def refuse_nodes(self, context: Context) -> None:
        """Raise CallFailed for a node's certificate: it is for the other nodes, and no client's.

        An authority that signs both would else make a client of every node, with the rights that
        somebody grants to all names that begin so.
        """
        for identity in context.peer_identities() or ():
            name = identity.decode(errors="replace")
            if names_a_node(name):
                raise CallFailed(
                    grpc.StatusCode.UNAUTHENTICATED,
                    f"{name} is the certificate of a node, which clients cannot call with. Give "
                    "this client a certificate of its own",
                    "not-applied",
                    repeatable=False,
                )

    def fingerprints(self, context: Context) -> tuple[str, ...]:
        """Return those of the caller's certificate, one of which may be revoked; none without."""
        pem = next(iter(context.auth_context().get("x509_pem_cert", ())), None)
        return () if pem is None else fingerprints_in(pem)

    def principal(self, context: Context) -> str:
        """Return the caller's name by its certificate or token; `anonymous` without TLS."""
        if isinstance(context, ByToken):
            return context.principal
        auth = context.auth_context()
        return self._principals.of(auth) if auth else ANONYMOUS


class Asker:
    """Who makes a call, or all calls of a stream: read when it is first asked for, and kept.

    Each reading takes as long as a commit's decision: gRPC copies the connection's properties.
    """

    __slots__ = ("_callers", "_context", "_known")

    def __init__(self, callers: Callers, context: Context) -> None:
        self._callers, self._context = callers, context
        self._known: Identity | None = None

    def identity(self) -> Identity:
        """Return who calls; raises CallFailed for a malformed name."""
        known = self._known
        if known is None:
            known = self._known = self._callers.identity(self._context)
        return known

    def principal(self) -> str:
        """Return the principal; raises as `identity`."""
        return self.identity().principal


def client_id(context: Context) -> str:
    """Return the caller's name for itself, "" if it gave none; raises CallFailed if it is long."""
    for key, value in context.invocation_metadata() or ():
        if key == CLIENT_ID_KEY:
            name = value.decode() if isinstance(value, bytes) else value
            if len(name) > CLIENT_ID_MAX:
                problem = f"{len(name)} characters; at most {CLIENT_ID_MAX} are allowed"
                raise malformed(f"metadata {CLIENT_ID_KEY}", problem)
            return name
    return ""


def _digest(request: Message) -> bytes:
    """Hash the whole request with its type, so that one id cannot serve two calls (S15)."""
    body = request.SerializeToString(deterministic=True)
    return hashlib.sha256(request.DESCRIPTOR.name.encode() + b"\0" + body).digest()[:16]


@functools.lru_cache(maxsize=4_096)
def _host(peer: str) -> str:
    """Convert gRPC's `ipv4:127.0.0.1:5000` to `/127.0.0.1`, as Kafka writes a client's host."""
    kind, _, rest = peer.partition(":")
    if kind not in {"ipv4", "ipv6"}:
        return "/unknown"
    return "/" + unquote(rest).rpartition(":")[0].strip("[]")
