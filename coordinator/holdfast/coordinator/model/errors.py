"""The one exception of the core: an event or a state breaks a rule (S6).

Raised by `evolve` for an event that cannot be true of the state that it meets, and by the checks
of `invariants`. The replica quarantines the group; the leader never proposes such a batch.
"""

from __future__ import annotations


class InvariantBroken(Exception):
    """A rule does not hold. `rule` is its id, `problem` says what was found and where."""

    def __init__(self, rule: str, problem: str) -> None:
        super().__init__(f"{rule}: {problem}")
        self.rule = rule
        self.problem = problem
