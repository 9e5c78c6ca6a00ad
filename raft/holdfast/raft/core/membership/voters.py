"""Whose votes and acknowledgements count, and what a majority of them is.

The only place that computes a majority. Everything that needs one asks here: elections, the lease,
quorum probes, the comparison of disks (S21), of states (S3), and the invariants. The engine counts
for itself what it commits and who is reached; `pysyncobj.engine_state` gives it these very nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

NEVER: Final = float("-inf")


@dataclass(frozen=True, slots=True)
class Voters:
    """The voters of a cluster, as one node sees them. That node need not be one of them."""

    node: str
    all: frozenset[str]
    others: tuple[str, ...]
    """All but the node itself, in order."""
    majority: int
    """The smallest number of voters that is more than half of them."""

    @classmethod
    def of(cls, node: str, names: Iterable[str]) -> Voters:
        """Make them of their names, as `node` sees them."""
        everyone = frozenset(names)
        others = tuple(sorted(everyone - {node}))
        return cls(node, everyone, others, len(everyone) // 2 + 1)

    @property
    def is_alone(self) -> bool:
        """Whether this node asks nobody, because there is no other voter."""
        return not self.others

    def have_majority(self, nodes: Iterable[str]) -> bool:
        """Return whether a majority is among `nodes`, each of which is named once."""
        return sum(node in self.all for node in nodes) >= self.majority

    def reached(self, others: Mapping[str, float], own: float) -> float:
        """Return the greatest value that a majority has reached; minus infinity if there is none.

        `others`: the value of each node that has one. This node, if it is a voter, has reached
        whatever the others have; `own` is the result if its word is enough.
        """
        needed = self.majority - (self.node in self.all)
        if needed == 0:
            return own
        ranked = sorted((v for name, v in others.items() if name in self.all), reverse=True)
        return ranked[needed - 1] if len(ranked) >= needed else NEVER
