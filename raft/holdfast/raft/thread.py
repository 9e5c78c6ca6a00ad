"""The engine's own thread: ticks it, and reports if it breaks.

The engine must not wait for the asyncio loop, or a long apply would cost an election; and the
loop must not wait for the engine's disk. They meet only in the FIFO (S4). Knows no group rules.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Protocol

from holdfast.raft.api import EngineStopped

logger = logging.getLogger(__name__)

TICK_SECONDS = 0.02
"""How long a tick waits for something to do; timers are no finer than this."""

JOIN_SECONDS = 10.0


class Ticking(Protocol):
    """What the thread needs of an engine."""

    def tick(self, max_wait: float) -> None:
        """Do what is due; wait at most `max_wait` seconds for more. Raises EngineStopped."""

    def close(self) -> None:
        """Release journal and transport."""


class EngineThread:
    """Runs an engine until `stop`, or until it breaks."""

    def __init__(self, engine: Ticking, node_id: str) -> None:
        """Prepare the thread; `start` begins to tick."""
        self._engine = engine
        self._ending = threading.Event()
        self._ticked_at = time.monotonic()
        self._thread = threading.Thread(target=self._run, name=f"engine-{node_id}", daemon=True)

    def start(self) -> None:
        """Begin to tick."""
        self._thread.start()

    def stop(self) -> bool:
        """End the thread after the present tick, and close the engine. Blocks; bounded.

        False if the thread hangs (in a sync of a dying disk, say): then nothing may be released.
        """
        self._ending.set()
        self._thread.join(JOIN_SECONDS)
        return not self._thread.is_alive()

    def lag_s(self) -> float:
        """Return how long the present tick lasts beyond what it may wait. Any thread."""
        return max(0.0, time.monotonic() - self._ticked_at - TICK_SECONDS)

    def _run(self) -> None:
        try:
            while not self._ending.is_set():
                self._engine.tick(TICK_SECONDS)
                self._ticked_at = time.monotonic()
        except EngineStopped:  # the engine has said why, and the FIFO's last item tells the replica
            logger.info("the engine's thread ends")
        finally:
            self._engine.close()
