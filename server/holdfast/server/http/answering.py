"""Answers HTTP requests: one a connection, GET and HEAD only, by aiohttp's server protocol.

Loading aiohttp takes 0.2 s, so nothing may import this module before a node with an HTTP port
serves. What a path shows is passed in; who may see it is decided here.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web
from cryptography import x509

from holdfast.raft.fingerprints import fingerprints_of
from holdfast.server.config.node_config import ANONYMOUS
from holdfast.server.http.pages import refusal
from holdfast.server.security.client_port import principal_in
from holdfast.server.security.http_port import node_named

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from holdfast.server.http.pages import Answer, Page

    Refused = Callable[[Iterable[str]], str]

logger = logging.getLogger(__name__)

LINE_BYTES_MAX: Final = 2_048
"""Bytes of a request's first line, and of one header."""
HEADERS_MAX: Final = 32
ANSWER_S_MAX: Final = 5.0
"""Seconds for which a page may be made; a disk that hangs must not hold a connection for longer."""
SERVER: Final = "holdfast"
"""What strangers are told that answers; the library would tell its version, and Python's."""
METHODS: Final = ("GET", "HEAD")


def protocols(
    pages: Mapping[str, Page], *, secure: bool, refused: Refused = lambda _: ""
) -> Callable[[], asyncio.Protocol]:
    """Return what makes the protocol of each connection. `secure`: most pages ask for who asks.

    `refused`: says why a certificate is refused, by its fingerprints; "" if it is not.
    """
    silent = logging.getLogger(f"{__name__}.aiohttp")
    silent.disabled = True  # strangers' broken requests would fill the log
    answering = _Answering(pages, secure=secure, refused=refused)
    server = web.Server(answering.answer)

    def made() -> asyncio.Protocol:
        return _Protocol(
            server,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type]  # the library takes it for none
            logger=silent,
            lingering_time=0.0,
            auto_decompress=False,  # a body is never read
            max_line_size=LINE_BYTES_MAX,
            max_field_size=LINE_BYTES_MAX,
            max_headers=HEADERS_MAX,
        )

    return made


class _Protocol(web.RequestHandler):
    """The library's protocol of a connection, whose own refusals do not tell what it is."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what is no request."""
        response = super().handle_error(request, status, exc, message)
        response.headers["Server"] = SERVER
        return response


class _Answering:
    """The handler of all requests."""

    def __init__(self, pages: Mapping[str, Page], *, secure: bool, refused: Refused) -> None:
        self._pages, self._secure, self._refused = pages, secure, refused

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request, and end the connection."""
        told = await self._told(request)
        response = web.Response(status=told.status, body=told.content, headers=told.headers)
        response.headers["Content-Type"] = told.content_type
        response.headers["Server"] = SERVER
        response.force_close()
        return response

    async def _told(self, request: web.BaseRequest) -> Answer:
        page = self._pages.get(request.path)
        if not (page and page.for_all) and (refused := self._refusal(request, page)):
            return refused
        if page is None:
            known = ", ".join(self._pages)
            return refusal(404, f"there is nothing at this path; there are {known}")
        if request.method not in METHODS:
            allowed = {"Allow": ", ".join(METHODS)}
            return refusal(405, "this port only shows: use GET or HEAD", allowed)
        return await _made(page.make(request.query), request.path)

    def _refusal(self, request: web.BaseRequest, page: Page | None) -> Answer | None:
        """Say why this caller may not see more than health; None if it may."""
        if self._secure and (refused := _not_a_client(request)):
            return refused
        if self._secure and (why := self._refused(fingerprints_of(_shown(request)))):
            return refusal(401, why, {"WWW-Authenticate": 'Certificate realm="holdfast"'})
        principal = _principal(request) if self._secure else ANONYMOUS
        problem = page.refusal(principal) if page else ""
        return refusal(403, problem) if problem else None


def _not_a_client(request: web.BaseRequest) -> Answer | None:
    """Say why a certificate is missing, or is no client's; None if it is a client's."""
    certificate = _certificate(request)
    if not certificate:
        return refusal(
            401,
            "this needs a client's certificate, signed by the cluster's authority (tls.ca); "
            "only /livez and /readyz need none. Show one: curl --cert certificate.pem --key "
            "key.pem",
            {"WWW-Authenticate": 'Certificate realm="holdfast"'},
        )
    if node := node_named(certificate):
        return refusal(
            403,
            f"the certificate is a node's ({node}), and that is no client's: show one that was "
            "made for a client",
        )
    return None


def _certificate(request: web.BaseRequest) -> Mapping[str, Any]:
    transport = request.transport
    shown = transport.get_extra_info("peercert") if transport is not None else None
    return shown or {}


def _principal(request: web.BaseRequest) -> str:
    """Return the principal of a certificate that was shown, as the client port reads it."""
    return principal_in(x509.load_der_x509_certificate(_shown(request)))


def _shown(request: web.BaseRequest) -> bytes:
    """Return the certificate, in DER; to be asked only where there is one."""
    assert request.transport is not None  # noqa: S101 - its certificate was read just now
    session = request.transport.get_extra_info("ssl_object")
    shown: bytes = session.getpeercert(True)  # noqa: FBT003 - its only form
    return shown


async def _made(making: Awaitable[Answer], path: str) -> Answer:
    try:
        async with asyncio.timeout(ANSWER_S_MAX):
            return await making
    except TimeoutError:
        return refusal(503, f"making {path} took longer than {ANSWER_S_MAX:.0f} s: is a disk slow?")
    except Exception:
        logger.exception("making %s failed inside", path)
        return refusal(500, f"making {path} failed inside; the node's log has more. Report it")
