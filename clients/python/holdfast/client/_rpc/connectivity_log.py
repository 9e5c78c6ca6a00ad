"""Log once that no node can be reached, and once that one can be reached again.

A single failure is usual (a new leader) and only an `info`. Knows no call and no node.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from holdfast.client._rpc.clock import boot_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_LOGGER = logging.getLogger("holdfast.client")
QUIET_MS_MAX: Final = 3_000
"""Time without answers before a warning: the default heartbeat interval, more than a failover."""
INFO_EVERY_MS: Final = 10_000
"""Least time between two lines about one kind of failure of a node; attempts are more frequent."""
_NOTED_MAX: Final = 256


class ConnectivityLog:
    """Since when all calls of one connection have failed."""

    def __init__(self, clock: Callable[[], int] = boot_ms) -> None:
        self._clock = clock
        self._since_ms: int | None = None
        self._told = False
        self._noted: dict[tuple[str, str], int] = {}

    def note(self, address: str, kind: str, why: object) -> None:
        """Log a single failure, at level info, unless one of its kind was logged just now."""
        now_ms = self._clock()
        last_ms = self._noted.get((address, kind))
        if last_ms is not None and now_ms - last_ms < INFO_EVERY_MS:
            return
        if len(self._noted) >= _NOTED_MAX:
            self._noted.clear()
        self._noted[address, kind] = now_ms
        _LOGGER.info("%s", why)

    def failed(self, why: object, addresses: Sequence[str]) -> None:
        """Note that a call got no usable answer; `addresses`: all that are tried."""
        now_ms = self._clock()
        self._since_ms = now_ms if self._since_ms is None else self._since_ms
        lasted_ms = now_ms - self._since_ms
        if self._told or lasted_ms < QUIET_MS_MAX:
            return
        self._told = True
        _LOGGER.warning(
            "No node has served a call for %.1f s; tried %s. The last failure: %s. Trying on; what "
            "members own ends with their lease.",
            lasted_ms / 1000,
            ", ".join(addresses),
            str(why).removesuffix("."),
        )

    def answered(self, address: str) -> None:
        """Note that a node has answered."""
        if self._told and self._since_ms is not None:
            silent_s = (self._clock() - self._since_ms) / 1000
            _LOGGER.warning("%s serves again, after %.1f s without any node.", address, silent_s)
        self._since_ms = None
        self._told = False
