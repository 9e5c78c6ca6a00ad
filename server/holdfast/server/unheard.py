"""Batches of heartbeats that have arrived and are not heard to their end.

A batch of thousands is heard in slices. What has arrived counts as heard before a session ends (S9
a), so whoever ends sessions waits first until the batches that are here are heard.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Unheard:
    """The batches of a node that are being heard."""

    def __init__(self) -> None:
        self._under_way: dict[asyncio.Event, None] = {}

    @contextlib.contextmanager
    def hearing(self) -> Iterator[Callable[[], None]]:
        """A batch is being heard while the body runs, or until it calls what it is given."""
        batch = asyncio.Event()
        self._under_way[batch] = None

        def heard() -> None:
            self._under_way.pop(batch, None)
            batch.set()

        try:
            yield heard
        finally:
            heard()

    async def heard(self) -> None:
        """Wait for the batches that are here now; those that come meanwhile have come later."""
        for batch in tuple(self._under_way):
            await batch.wait()
