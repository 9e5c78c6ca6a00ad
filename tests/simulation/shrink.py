"""Cuts a failing schedule down to the faults that the failure needs.

Delta debugging (Zeller) over the list of faults: halves, then smaller parts, are left out while
some violation of the same invariant remains. Everything else of the run keeps its own chance, so a
shorter list is the same world with less going wrong. Bounded by a number of runs, not by time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from simulation.faults import Planned

RUNS_MAX: Final = 60

Fails = "Callable[[Sequence[Planned]], bool]"


def shrink(
    faults: Sequence[Planned],
    fails: Callable[[Sequence[Planned]], bool],
    runs_max: int = RUNS_MAX,
) -> list[Planned]:
    """A part of `faults` with which it still fails, smaller where `runs_max` runs allow it."""
    left, parts, runs = list(faults), 2, 0
    if fails([]):
        return []
    while len(left) > 1 and runs < runs_max:
        size = -(-len(left) // parts)
        for start in range(0, len(left), size):
            without = left[:start] + left[start + size :]
            runs += 1
            if without and fails(without):
                left, parts = without, max(parts - 1, 2)
                break
            if runs >= runs_max:
                return left
        else:
            if size == 1:
                return left
            parts = min(len(left), parts * 2)
    return left
