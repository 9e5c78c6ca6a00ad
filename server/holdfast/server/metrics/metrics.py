"""The page of metrics of one node, and what has to run for it.

Knows the parts of a node that count, and how the page looks, not who may see it.
"""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING, Final

from holdfast.server.http.pages import OK, Answer
from holdfast.server.metrics.gathering import gathered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.server.metrics.gathering import Sources

_EXPOSITION: Final = "holdfast.server.metrics.exposition"


class Metrics:
    """What a node shows of itself."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._one = asyncio.Lock()
        """Answers are made one after the other: scrapers together cost no more than one."""

    async def sample(self) -> None:
        """Look at the loop and the engine until cancelled."""
        await self._sources.pulse.run()

    async def page(self, query: Mapping[str, str]) -> Answer:
        """Make the page; the text is made in a thread."""
        del query
        async with self._one:
            rows = await gathered(self._sources)
            exposition = await asyncio.to_thread(import_module, _EXPOSITION)
            text: bytes = await asyncio.to_thread(exposition.exposed, rows)
        return Answer(OK, text, exposition.CONTENT_TYPE)
