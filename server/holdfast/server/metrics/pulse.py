"""Looks a few times a second how late the loop and the engine are, and who leads.

Samples, so that nothing has to be measured where it happens. Runs while there is an HTTP port.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from holdfast.storage.durations import Durations

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.raft.api import Status

PERIOD_S: Final = 0.25


class Pulse:
    """The samples of one node."""

    def __init__(self, status: Callable[[], Status], tick_lag_s: Callable[[], float]) -> None:
        """`tick_lag_s`: by how much the engine's thread is late now."""
        self.loop_lag_s, self.tick_lag_s = Durations(), Durations()
        self.leader_changes = 0
        self._status, self._read_tick_lag_s = status, tick_lag_s
        self._led: tuple[int, str] | None = None

    async def run(self) -> None:
        """Take samples until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + PERIOD_S
            await asyncio.sleep(PERIOD_S)
            self.take(max(0.0, loop.time() - due))

    def take(self, loop_lag_s: float) -> None:
        """Take one sample. The first leader that is seen is no change."""
        self.loop_lag_s.add(loop_lag_s)
        self.tick_lag_s.add(self._read_tick_lag_s())
        status = self._status()
        if status.leader:
            led = (status.term, status.leader)
            self.leader_changes += self._led is not None and led != self._led
            self._led = led
