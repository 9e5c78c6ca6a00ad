"""Two limits of time: how long a taken instance id is waited for, and how long work may be silent.

No IO, no clock: times come in as arguments.
"""

from __future__ import annotations

from typing import Final

PAUSE_FIRST_MS: Final = 250
PAUSE_MAX_MS: Final = 5_000
GRACE_MS: Final = 1_000
"""What a session may end late by: the service first makes sure that it leads."""


class InstanceWait:
    """How long a static member waits for its instance id (UNRELEASED_INSTANCE_ID).

    Its predecessor may have died without a word; then the group keeps the place for a session, and
    no longer. Kafka's client gives up at once. This one asks again, with a pause that doubles,
    until a session has passed since it was refused first: who still has the place then, lives.
    """

    def __init__(self) -> None:
        self._since_ms: int | None = None
        self._pause_ms = PAUSE_FIRST_MS

    def over(self) -> None:
        """Forget them: the join was answered otherwise, or is off."""
        self._since_ms, self._pause_ms = None, PAUSE_FIRST_MS

    def begins_anew(self) -> None:
        """Wait for as long as it takes: the place is given once the holder's session is over."""
        self._since_ms = None

    def pause_ms(self, session_ms: int, now_ms: int) -> int | None:
        """Return how long to wait after this refusal; None: it was the last one."""
        if self._since_ms is None:
            self._since_ms = now_ms
        left_ms = self._since_ms + session_ms + GRACE_MS - now_ms
        if left_ms <= 0:
            return None
        pause_ms = min(self._pause_ms, left_ms)
        self._pause_ms = min(self._pause_ms * 2, PAUSE_MAX_MS)
        return pause_ms


class WorkTimer:
    """Whether the program still works: it says so by `working()`, or the member leaves (T-17).

    Kafka's consumer knows it from being polled (max.poll.interval.ms). A member here is not polled,
    so a program that wants the guard asks for it.
    """

    def __init__(self, timeout_ms: int | None) -> None:
        self.timeout_ms = timeout_ms
        self._said_ms = 0

    def works(self, now_ms: int) -> None:
        """Begin the time anew."""
        self._said_ms = now_ms

    @property
    def ends_at_ms(self) -> int | None:
        """When the program counts as stuck; None: it is not asked."""
        return None if self.timeout_ms is None else self._said_ms + self.timeout_ms

    def over(self, now_ms: int) -> bool:
        """Return whether the program counts as stuck."""
        ends_at_ms = self.ends_at_ms
        return ends_at_ms is not None and now_ms >= ends_at_ms
