"""A partition as a program with threads holds it: waited for with an event of threading."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import cast

from holdfast.client._rpc.clock import boot_ms
from holdfast.client.aio.partition import HeldPartition, Revocation


@dataclass(frozen=True, slots=True)
class ThreadPartition(HeldPartition):
    """One partition under one grant, of a member for threads."""

    revocation: Revocation = field(
        repr=False, compare=False, default_factory=lambda: Revocation(threading.Event())
    )

    def wait_revoked(self, timeout_ms: int | None = None) -> bool:
        """Wait until `revoking`; False: that was not so within `timeout_ms` (None: no limit).

        Ends with the lease also while nothing else of the client runs.
        """
        until_ms = None if timeout_ms is None else boot_ms() + timeout_ms
        event = cast("threading.Event", self.revocation.event)
        while not self.revoking:
            now_ms = boot_ms()
            if until_ms is not None and now_ms >= until_ms:
                return False
            event.wait(self._pause_ms(now_ms, until_ms) / 1000)
        return True

    def _pause_ms(self, now_ms: int, until_ms: int | None) -> int:
        ends_at_ms = self._session.lease_ends_at_ms
        moments = [at_ms for at_ms in (ends_at_ms, until_ms) if at_ms is not None]
        return max(1, min(moments, default=now_ms) - now_ms)
