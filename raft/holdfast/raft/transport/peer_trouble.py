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
"""How many different warnings are written within `AGAIN_SECONDS`; of more, the first alone."""
LASTING_SECONDS: Final = 10.0
"""Trouble that was not met for so long is over, since each redial would meet it again."""


class Trouble:
    """The warnings: their text, the peer, and the time. Any thread may call."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock`: a monotone clock, in seconds."""
        self._clock = clock
        self._told: dict[tuple[str, str], float] = {}
        self._full_until = 0.0
        """Until when the log was told that further warnings are not written."""
        self._met: dict[str, tuple[str, float]] = {}
        self._lock = threading.Lock()

    def warn(self, about: str, text: str, kind: str = "") -> None:
        """Write the warning, unless it was written within `AGAIN_SECONDS`.

        `kind`: takes the place of a text that is another one each time. Then `about` is met for
        nothing else, and is written again, too, if it was not met for `LASTING_SECONDS`.
        """
        with self._lock:
            now = self._clock()
            if kind and now - self._met.get(about, ("", now))[1] > LASTING_SECONDS:
                self._told.pop((about, kind), None)
            self._met[about] = (text, now)
            self._told = {k: at for k, at in self._told.items() if now - at < AGAIN_SECONDS}
            if (about, kind or text) in self._told:
                return
            is_full = len(self._told) >= TEXTS_MAX
            if is_full and now < self._full_until:
                return
            if is_full:
                self._full_until = now + AGAIN_SECONDS
            else:
                self._told[about, kind or text] = now
        logger.warning("%s%s", text, _LEFT_OUT if is_full else "")

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


_LEFT_OUT: Final = (
    f". {TEXTS_MAX} other warnings of this kind were written within an hour, so further ones are "
    "not written for an hour: somebody may be trying this port, and a node that is refused "
    "meanwhile says so in its own log"
)
