"""Waiting for what happens in another process, thread or library: polls, with a deadline.

The only place in the tests that sleeps. A deadline says what was waited for; it is far above what
any run needs, so it judges nothing but a hang.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

PAUSE_S = 0.01
WITHIN_S = 30.0


def until(holds: Callable[[], object], what: str, *, within_s: float = WITHIN_S) -> None:
    """Wait in a thread until `holds()` is true. Raises TimeoutError that names `what`."""
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {within_s} s")
        time.sleep(PAUSE_S)


async def until_async(
    holds: Callable[[], object], what: str, *, within_s: float = WITHIN_S
) -> None:
    """Wait in an event loop until `holds()` is true. Raises TimeoutError that names `what`."""
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {within_s} s")
        await asyncio.sleep(PAUSE_S)


async def until_told(
    asks: Callable[[], Awaitable[object]], what: str, *, within_s: float = WITHIN_S
) -> None:
    """Ask somebody else again and again until the answer is true; raises like `until_async`."""
    deadline = time.monotonic() + within_s
    while not await asks():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {within_s} s")
        await asyncio.sleep(PAUSE_S)
