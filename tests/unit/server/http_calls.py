"""Asks an HTTP port as a stranger or with a certificate, and reads the whole answer."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.server.config.node_config import Tls

PATIENCE_S = 30.0


class Reply(NamedTuple):
    status: int
    head: str
    body: str


def client_context(ca: Path, shown: Tls | None = None) -> ssl.SSLContext:
    """What a caller connects with; `shown`: its certificate, if it has one."""
    context = ssl.create_default_context(cafile=str(ca))
    if shown is not None:
        context.load_cert_chain(shown.certificate, shown.key)
    return context


async def ask(
    port: int,
    path: str,
    context: ssl.SSLContext | None = None,
    *,
    method: str = "GET",
    extra: str = "",
) -> Reply:
    """Send one request and read until the connection ends, as each does after an answer."""
    async with asyncio.timeout(PATIENCE_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        writer.write(f"{method} {path} HTTP/1.1\r\nHost: node\r\n{extra}\r\n".encode())
        raw = (await reader.read()).decode()
        writer.close()
    head, _, body = raw.partition("\r\n\r\n")
    if not head:
        raise ConnectionError("the connection ended without an answer")
    return Reply(int(head.split()[1]), head, body)
