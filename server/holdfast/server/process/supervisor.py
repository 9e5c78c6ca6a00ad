"""Tells the process's supervisor that the node serves, lives and stops: systemd's sd_notify.

The messages are datagrams to the socket that the supervisor names in the environment; without one
nothing is sent, and every method does nothing. Knows no Raft and no gRPC.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.runtime.ports import ReplicaLike

    Later = Callable[[float, Callable[[], None]], asyncio.TimerHandle]

logger = logging.getLogger(__name__)

SIGNS_A_PERIOD: Final = 3
"""Signs of life in the time after which the supervisor ends the process: two may be late."""


class Supervisor:
    """What is told to whoever started this process, as sd_notify(3) and sd_watchdog_enabled(3) say.

    `alive` returns a number that has changed since the last call if the node still works: the
    number of its engine's ticks. The sign of life is sent from the event loop, so that it proves
    both: a loop that hangs sends none, and for an engine that hangs none is sent. `later` calls
    something after so many seconds; it is the running loop's, but in tests.
    """

    def __init__(
        self, environment: Mapping[str, str], alive: Callable[[], int], later: Later | None = None
    ) -> None:
        self._later = later or asyncio.get_running_loop().call_later
        self._address = _address(environment.get("NOTIFY_SOCKET", ""))
        self._alive, self._seen = alive, -1
        self._period = _watchdog_seconds(environment)
        self._next: asyncio.TimerHandle | None = None

    def listen(self, replica: ReplicaLike) -> None:
        """Subscribe to the replica."""
        replica.subscribe(on_leading=self.on_leading, on_not_leading=self.on_not_leading)

    def serving(self) -> None:
        """Tell that the node serves, and from now on that it lives. Call it in the event loop.

        A follower and a node without a leader serve, too: they tell clients so. Were a node ready
        only with a leader, machines that start one after the other would wait for each other.
        """
        self._tell("READY=1")
        if self._address and self._period:
            self._live()

    def on_leading(self, term: int) -> None:
        """Tell, for `systemctl status`, that this node leads."""
        self._tell(f"STATUS=leads in term {term}")

    def on_not_leading(self) -> None:
        """Tell that it does not."""
        self._tell("STATUS=does not lead")

    def stopping(self) -> None:
        """Tell that the node stops; from here on `TimeoutStopSec` bounds it, not signs of life."""
        self._tell("STOPPING=1")
        if self._next is not None:
            self._next.cancel()

    def _live(self) -> None:
        ticks = self._alive()
        if ticks != self._seen:
            self._seen = ticks
            self._tell("WATCHDOG=1")
        self._next = self._later(self._period / SIGNS_A_PERIOD, self._live)

    def _tell(self, message: str) -> None:
        """Send one message; a supervisor that does not take it costs a line in the log alone."""
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.settimeout(0)
                sender.sendto(message.encode(), self._address)
        except OSError as error:
            logger.warning(
                "the supervisor at %s does not take %s: %s", self._address, message, error
            )


def _address(told: str) -> str:
    """Return the socket's address; a leading @ stands for the zero byte of an abstract one."""
    return "\0" + told[1:] if told.startswith("@") else told


def _watchdog_seconds(environment: Mapping[str, str]) -> float:
    """Return after how long a silence the supervisor ends this process; 0: it does not watch."""
    if environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return 0.0  # meant for a parent of this process
    told = environment.get("WATCHDOG_USEC", "0")
    return int(told) / 1_000_000 if told.isascii() and told.isdigit() else 0.0
