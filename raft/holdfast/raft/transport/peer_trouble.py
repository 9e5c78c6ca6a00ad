"""Warnings about peers: each is written once, not at every redial, and again when it lasts.

Strangers choose why they are refused, so the amount that they can make the node log is bounded.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

logger = logging.getLogger(__name__)

AGAIN_SECONDS: Final = 3_600.0
TEXTS_MAX: Final = 64
"""How many different warnings are written within `AGAIN_SECONDS`; more are dropped."""
LASTING_SECONDS: Final = 10.0
"""Trouble that was not met for so long is over, since each redial would meet it again."""


class Trouble:
    """The warnings: their text, the peer, and the time. Any thread may call."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock`: a monotone clock, in seconds."""
        self._clock = clock
        self._told: dict[tuple[str, str], float] = {}
        self._met: dict[str, tuple[str, float]] = {}
        self._lock = threading.Lock()

    def warn(self, about: str, text: str) -> None:
        """Write the warning, unless it was written within `AGAIN_SECONDS`."""
        with self._lock:
            now = self._clock()
            self._met[about] = (text, now)
            self._told = {k: at for k, at in self._told.items() if now - at < AGAIN_SECONDS}
            if (about, text) in self._told or len(self._told) >= TEXTS_MAX:
                return
            self._told[about, text] = now
        logger.warning("%s", text)

    def over(self, about: str) -> None:
        """Note that the trouble is over, so that the same trouble is written again."""
        with self._lock:
            self._told = {key: at for key, at in self._told.items() if key[0] != about}
            self._met.pop(about, None)

    def lasting(self) -> list[str]:
        """Return the trouble that each redial still meets."""
        with self._lock:
            since = self._clock() - LASTING_SECONDS
            return [text for _, (text, at) in sorted(self._met.items()) if at > since]
