"""The HTTP port of a node, from its bind to its end; does nothing where none is configured.

The port is bound before the data is opened, so that a port in use is told at once. It answers as
soon as the node serves clients, and a start that takes long is seen by probes, too: then it answers
after two seconds. Loading aiohttp earlier would make every start longer.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Final, Self

from holdfast.server.http.pages import Page, health_pages
from holdfast.server.http.port import HttpPort, listen
from holdfast.server.http.readiness import Readiness
from holdfast.server.security.http_port import http_context

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterable

    from holdfast.runtime.ports import ReplicaLike
    from holdfast.server.config.node_config import NodeConfig
    from holdfast.server.metrics.metrics import Metrics


logger = logging.getLogger(__name__)

UNASKED_S: Final = 2.0
"""Seconds after which the port answers though the node does not serve clients yet."""
_ANSWERING: Final = "holdfast.server.http.answering"


class Http:
    """One node's HTTP port, which ends with the context.

    In the context: `opened`, `serving` and `stopping`, in this order.
    """

    def __init__(self, config: NodeConfig) -> None:
        """Bind the port. Raises CannotStart, ConfigError."""
        self._address, self._secure = config.http_address, config.tls is not None
        self._readiness = Readiness()
        self._pages = health_pages(self._readiness)
        self._serving = asyncio.Event()
        self._beginning: asyncio.Task[None] | None = None
        self._sampling: asyncio.Task[None] | None = None
        self._port: HttpPort | None = None
        self._tls = config.tls
        self._context: ssl.SSLContext | None = None
        self._revoked: Callable[[Iterable[str]], str] = lambda _: ""
        if config.http_address is not None:
            self.renew()
            self._port = HttpPort(listen(config.http_address), lambda: self._context)

    def renew(self) -> None:
        """Have new connections use the files of [tls] as they are now; any thread.

        Raises ConfigError, and keeps what was in force.
        """
        if self._address is not None and self._tls is not None:
            self._context = http_context(self._tls)

    async def __aenter__(self) -> Self:
        if self._port is not None:
            self._beginning = asyncio.create_task(self._begin(self._port))
            self._beginning.add_done_callback(_tell)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stopping()
        if self._beginning is not None:
            self._beginning.cancel()
            await asyncio.wait([self._beginning])
        if self._port is not None:
            await self._port.close()

    def opened(
        self,
        replica: ReplicaLike,
        metrics: Metrics,
        *,
        must_recover: Callable[[], bool],
        caught_up: Callable[[], bool],
        refusal: Callable[[str], str],
        revoked: Callable[[Iterable[str]], str],
    ) -> None:
        """Note that the node has opened its data, and can show metrics.

        `must_recover`, `caught_up`: as `Readiness.opened`. `refusal`: says why a principal may not
        see metrics. `revoked`: says why a certificate is refused, by its fingerprints; "" if it
        is not.
        """
        self._revoked = revoked
        if self._port is not None:
            self._readiness.opened(replica, must_recover, caught_up)
            self._sampling = asyncio.create_task(metrics.sample())
            self._pages["/metrics"] = Page(metrics.page, refusal=refusal)

    def serving(self) -> None:
        """Note that the node serves clients: answer from now on."""
        self._serving.set()

    def stopping(self) -> None:
        """Note that the node is about to stop: it is not ready any more."""
        self._readiness.stopping()
        if self._sampling is not None:
            self._sampling.cancel()

    def _problem(self, fingerprints: Iterable[str]) -> str:
        return self._revoked(fingerprints)

    async def _begin(self, port: HttpPort) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._serving.wait(), UNASKED_S)
        answering = await asyncio.to_thread(import_module, _ANSWERING)
        port.serve(answering.protocols(self._pages, secure=self._secure, refused=self._problem))
        logger.info("answering HTTP%s on %s", "S" if self._secure else "", self._address)


def _tell(beginning: asyncio.Task[None]) -> None:
    """Write it to the log if the port could not begin: the node serves clients all the same."""
    if not beginning.cancelled() and (error := beginning.exception()):
        logger.error("the HTTP port does not answer", exc_info=error)
