"""The moments of one call that is traced: what became of it, and when.

Whoever opens a call says where its moments are noted: a stream itself, a unary method by `CURRENT`,
which is set around it. Later moments find a call by its number, since timers and tasks that a call
began inherit `CURRENT` and may serve others. Nothing is noted of a call that is not traced. Knows
no tracing library.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

ADMITTED: Final = "admitted"
"""Read, checked and translated; its command goes to the actor of its group."""
TAKEN: Final = "taken"
"""The actor takes the command: no batch of the group, and no read barrier, is before it."""
DECIDED: Final = "decided"
PROPOSED: Final = "proposed"
"""The group's batch is checked and encoded, and waits for an entry."""
SENT: Final = "sent"
"""The entry goes to the engine: it is synced here and sent to the peers."""
COMMITTED: Final = "committed"
"""The entry is back from the engine: a majority has it on disk."""
APPLIED: Final = "applied"
PARKED: Final = "parked"
"""It waits for other members."""
ANSWERED: Final = "answered"
"""Its reply is known, and is translated next."""

MOMENTS_MAX: Final = 128
"""Moments of one call: one over many groups opens a call for each. Later ones are left out."""


class Moments:
    """The moments of a call in their order; what is known of it besides."""

    __slots__ = ("index", "now", "request_id", "seen")

    def __init__(self, now: Callable[[], float]) -> None:
        """`now`: the boot clock in seconds, by which the replica tells its moments, too."""
        self.now = now
        self.seen: list[tuple[str, float]] = []
        """Each with its time in seconds of the boot clock."""
        self.request_id = ""
        self.index = 0
        """Of the last entry that has a change of this call; 0: none has."""

    def note(self, name: str, at: float | None = None) -> None:
        """Note what happens at this moment, or happened `at` one."""
        if len(self.seen) < MOMENTS_MAX:
            self.seen.append((name, self.now() if at is None else at))


CURRENT: ContextVar[Moments | None] = ContextVar("moments", default=None)
"""The moments of the unary call that this task serves; None: it is not traced."""
