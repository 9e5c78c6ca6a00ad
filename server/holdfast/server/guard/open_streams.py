"""The streams that are open, and which certificates their callers have shown.

A certificate is looked at in the handshake alone, and a stream may stand for as long as its
connection. Knows no service and judges no certificate.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.server.rpc.callers import Context


class OpenStreams:
    """All of a node's. The loop's thread only."""

    def __init__(self) -> None:
        self._open: dict[int, Context] = {}

    @contextmanager
    def held(self, context: Context) -> Iterator[None]:
        """Count a stream while it is served."""
        self._open[id(context)] = context
        try:
            yield
        finally:
            del self._open[id(context)]

    def certificates(self) -> set[bytes]:
        """Return the certificates of those who have streams open, in PEM."""
        shown = (context.auth_context() for context in self._open.values())
        return {pem for auth in shown for pem in auth.get("x509_pem_cert", ())}
