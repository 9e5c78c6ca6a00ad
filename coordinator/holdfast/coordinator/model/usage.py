"""How much something takes up: counts, and bytes of a node's memory. A value; it weighs nothing."""

from __future__ import annotations

from operator import add, sub
from typing import Any, Final, Literal, NamedTuple, TypeAlias

_new: Final[Any] = tuple.__new__
"""Makes a NamedTuple of its fields; each decision adds up several."""


class Usage(NamedTuple):
    """Counts and about how many bytes of memory; or a difference of two such."""

    groups: int = 0
    topics: int = 0
    partitions: int = 0
    members: int = 0
    state_bytes: int = 0

    def plus(self, other: Usage) -> Usage:
        """Return the sum."""
        made: Usage = _new(Usage, map(add, self, other))
        return made

    def minus(self, other: Usage) -> Usage:
        """Return the difference."""
        made: Usage = _new(Usage, map(sub, self, other))
        return made


NOTHING: Final = Usage()

Growth: TypeAlias = Literal["new", "more", "same"]
"""What a call made larger that made the state larger; it decides about the reserve (S7)."""

NEW: Final = "new"
"""Something is there that was not: a group, a member."""
MORE: Final = "more"
"""A member that is there has more than before."""
SAME: Final = "same"
"""No member has more than before: what grew is the record that a rebalance leaves behind."""
