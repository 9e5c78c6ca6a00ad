"""How many calls, and bytes of requests, one principal may send a node in a second.

The rule is a token bucket of one second's worth for each principal: what was not used for a second
may be used at once. A request that is longer than what is left passes and is owed, so that none is
too long for ever. A heartbeat is never asked about, since a session would end by a refusal. Each
node counts by itself, which is the same as counting once: changes go to the leader alone. Knows
settings and no calls.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from holdfast.coordinator.cluster import settings
from holdfast.runtime.time.clock import boot_s
from holdfast.server.rpc.errors import exhausted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from holdfast.coordinator.cluster.settings import PrincipalSettings
    from holdfast.coordinator.model.state import State
    from holdfast.server.rpc.errors import CallFailed

PRINCIPALS_MAX: Final = 10_000
"""Principals that are remembered; above it those are dropped that owe nothing."""


class _Bucket:
    """What one principal may still send; below 0: what it owes."""

    __slots__ = ("at", "calls", "size")

    def __init__(self, most: PrincipalSettings, now: float) -> None:
        self.calls, self.size = float(most.calls_per_second_max), float(most.bytes_per_second_max)
        self.at = now

    def refill(self, most: PrincipalSettings, now: float) -> None:
        """Add what has come since, up to a second's worth."""
        since, self.at = now - self.at, now
        calls, size = most.calls_per_second_max, most.bytes_per_second_max
        self.calls = min(float(calls), self.calls + since * calls)
        self.size = min(float(size), self.size + since * size)

    def take(self, most: PrincipalSettings, size: int) -> None:
        """Count a call, as far as anything is counted."""
        if most.calls_per_second_max:
            self.calls -= 1
        if most.bytes_per_second_max:
            self.size -= size


class PrincipalLimits:
    """The buckets of a node. The loop's thread only."""

    def __init__(
        self,
        state: Callable[[], State],
        now: Callable[[], float] = boot_s,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`state`: gives the newest applied state, whose settings count."""
        self._state, self._now, self._sleep = state, now, sleep
        self._buckets: dict[str, _Bucket] = {}

    @property
    def on(self) -> bool:
        """Whether calls are limited at all: if not, nobody need read who calls."""
        most = self._most()
        return most.calls_per_second_max > 0 or most.bytes_per_second_max > 0

    @property
    def remembered(self) -> int:
        """The number of principals with a bucket."""
        return len(self._buckets)

    def take(self, principal: str, size: int) -> None:
        """Count a call with a request of so many bytes; raises CallFailed if it is one too many.

        A refused call costs its principal nothing, so one that goes on asking gets its share.
        """
        most, bucket = self._most(), self._bucket(principal)
        if most.calls_per_second_max and bucket.calls < 1:
            raise _refusal(most.calls_per_second_max, "calls", "principal.calls_per_second_max")
        if most.bytes_per_second_max and bucket.size <= 0:
            what = "bytes of requests"
            raise _refusal(most.bytes_per_second_max, what, "principal.bytes_per_second_max")
        bucket.take(most, size)

    async def turn(self, principal: str, size: int) -> None:
        """Count a call of a stream whose answers come in order: it waits, and is not refused."""
        most, bucket = self._most(), self._bucket(principal)
        calls, bytes_ = most.calls_per_second_max, most.bytes_per_second_max
        bucket.take(most, size)
        waits = (-bucket.calls / calls if calls else 0.0, -bucket.size / bytes_ if bytes_ else 0.0)
        if max(waits) > 0:
            await self._sleep(max(waits))

    def check_watches(self, held: int) -> None:
        """Raise CallFailed if a principal that holds so many watches has all that it may have."""
        most = self._most().watches_max
        if most and held >= most:
            raise exhausted(
                f"this principal has {held} watches at this node, and {most} are allowed: end one, "
                "or watch at another node. An administrator can raise it: `holdfast settings set "
                "principal.watches_max=…`"
            )

    def _most(self) -> PrincipalSettings:
        return settings.of_cluster(self._state()).principal

    def _bucket(self, principal: str) -> _Bucket:
        most, now = self._most(), self._now()
        bucket = self._buckets.get(principal)
        if bucket is None:
            self._forget(most, now)
            bucket = self._buckets[principal] = _Bucket(most, now)
        bucket.refill(most, now)
        return bucket

    def _forget(self, most: PrincipalSettings, now: float) -> None:
        """Drop those that have a full bucket again: a new one would be the same."""
        if len(self._buckets) < PRINCIPALS_MAX:
            return
        full = (most.calls_per_second_max, most.bytes_per_second_max)
        for bucket in self._buckets.values():
            bucket.refill(most, now)
        self._buckets = {
            principal: bucket
            for principal, bucket in self._buckets.items()
            if (bucket.calls, bucket.size) != full
        }


def _refusal(most: int, what: str, setting: str) -> CallFailed:
    return exhausted(
        f"this principal may send a node {most} {what} a second, and has sent them. Send fewer, or "
        f"let an administrator raise it: `holdfast settings set {setting}=…`"
    )
