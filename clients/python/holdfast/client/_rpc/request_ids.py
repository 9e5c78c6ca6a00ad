"""Request ids: UUIDv7 on the cluster's log time (S14, S15).

The service forgets request ids by its log time and refuses older ids, so ids must follow its clock
and not this machine's. The time comes from answers; between them the boot clock advances it. Random
bits and the time are arguments; the wall clock only names what is made before any answer. No IO.
"""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from collections.abc import Callable

_TIME_BITS = 48
_RANDOM_BITS = 74


class RequestIds:
    """Makes ids once a log time has been seen; before that there is none to give."""

    def __init__(
        self,
        random_bits: Callable[[int], int] = secrets.randbits,
        wall: Callable[[], int] | None = None,
    ) -> None:
        self._random_bits = random_bits
        self._wall_ms = wall or wall_ms
        self._ahead_ms: int | None = None

    @property
    def ready(self) -> bool:
        """Whether a log time has been seen yet."""
        return self._ahead_ms is not None

    def observe(self, log_time_ms: int, now_ms: int) -> None:
        """Learn from an answer that was received at `now_ms` of the boot clock.

        Log time never runs back, and answers may be read late: the furthest one counts.
        """
        ahead = log_time_ms - now_ms
        if self._ahead_ms is None or ahead > self._ahead_ms:
            self._ahead_ms = ahead

    def log_time_ms(self, now_ms: int) -> int | None:
        """Estimate the cluster's log time now, in ms; None before any was seen."""
        return None if self._ahead_ms is None else now_ms + self._ahead_ms

    def make(self, now_ms: int) -> str:
        """Make a new id; "" (no protection against double execution) before any log time."""
        log_time_ms = self.log_time_ms(now_ms)
        return "" if log_time_ms is None else self._uuid(log_time_ms)

    def make_life(self, now_ms: int) -> str:
        """Name a life (S26): by the log time, or before any was seen by the wall time, near to it.

        Nothing is refused for the time in it.
        """
        log_time_ms = self.log_time_ms(now_ms)
        return self._uuid(self._wall_ms() if log_time_ms is None else log_time_ms)

    def _uuid(self, time_ms: int) -> str:
        moment = time_ms & ((1 << _TIME_BITS) - 1)
        random = self._random_bits(_RANDOM_BITS)
        high, low = random >> 62, random & ((1 << 62) - 1)
        return str(UUID(int=moment << 80 | 0x7 << 76 | high << 64 | 0b10 << 62 | low))


def wall_ms() -> int:
    """Return the wall time in ms: only for names that nobody computes with."""
    return time.time_ns() // 1_000_000


def id_of_part(request_id: str, number: int) -> str:
    """Derive the id of a call's part: the call's own for part 0, and "" if it has none.

    The same call repeated has the same parts, so each of them is still executed once (S14).
    """
    if not request_id or not number:
        return request_id
    return str(UUID(int=UUID(request_id).int ^ number))
