"""How far a learner is behind, measured in rounds (Raft thesis 4.2.1).

A round ends when the learner holds all that the log had when the round began. A learner that is far
behind has long rounds; each next one is shorter, if it gets the log faster than the log grows. Once
a round is as short as an election, the learner is no more than an election behind. Knows no node.
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.raft.core.membership.voters import NEVER


@dataclass(slots=True)
class CatchUp:
    """The rounds of one learner. Times are seconds of the boot clock."""

    target: int = 0
    """The index that ends the present round; 0: no round has begun."""
    began_at: float = NEVER
    took: float = float("inf")
    """How long the last round took."""

    def note(self, acked: int, last_index: int, now: float) -> None:
        """Note an answer: the learner holds everything up to `acked`."""
        if self.target and acked < self.target:
            return
        if self.target:
            self.took = now - self.began_at
        self.target, self.began_at = last_index, now

    def is_done(self, now: float, longest: float) -> bool:
        """Return whether the last round was no longer than `longest`, and this one is not yet."""
        return self.took <= longest and now - self.began_at <= longest
