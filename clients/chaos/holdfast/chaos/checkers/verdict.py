"""What a checker says: what it looked at, what it found broken, and what it could not decide.

Knows histories, and no checker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from holdfast.chaos.history.happenings import Happening


class Violation(NamedTuple):
    """An invariant that did not hold, when, and what shows it."""

    invariant: str
    at_us: int
    what: str


class Verdict(NamedTuple):
    """One checker's findings."""

    checked: Mapping[str, int]
    """How many of each kind of thing were judged, the most telling first. All zero means that the
    history held nothing to judge, which proves nothing."""
    violations: Sequence[Violation] = ()
    undecided: Sequence[str] = ()
    """A sentence about each thing given up within its bounds, which proves nothing either."""

    @property
    def empty(self) -> bool:
        """Whether there was nothing to judge."""
        return not any(self.checked.values())


Checker: TypeAlias = Callable[[Sequence[Happening]], Verdict]
"""Judges a whole history by one invariant. It never raises, whatever the history says."""
