"""Whether a long run has become flat, and drawn as a line that shows it. Pure data.

What comes before a third of the run is warming up: memory fills its pools, files reach the size at
which their pages are used again.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import linear_regression
from typing import Final, NamedTuple

SIGNS: Final = "▁▂▃▄▅▆▇█"
WARM_SHARE: Final = 1 / 3
"""Five of fifteen minutes."""
WARM_CHANGES_MIN: Final = 120_000
"""Small changes, about 70 bytes each, after which a node has taken two snapshots: what it keeps of
the newest entries, in its log and for its event log, has reached the size at which it stays."""


class Sample(NamedTuple):
    """One look at the nodes. `changes`: commits so far; `memory`, `disk`: bytes by node."""

    seconds: float
    changes: int
    memory: dict[str, int]
    disk: dict[str, int]


def long_enough(samples: Sequence[Sample]) -> bool:
    """Whether so much was done in the first third that memory can be flat from there on."""
    warm = samples[-1].seconds * WARM_SHARE
    done = [sample.changes for sample in samples if sample.seconds <= warm]
    return max(done, default=0) >= WARM_CHANGES_MIN


def halves(samples: Sequence[Sample]) -> tuple[list[Sample], list[Sample]]:
    """The two halves of what follows the warming up. Raises ValueError for too few samples."""
    seconds = samples[-1].seconds if samples else 0.0
    warm, middle = seconds * WARM_SHARE, seconds * (1 + WARM_SHARE) / 2
    first = [sample for sample in samples if warm <= sample.seconds < middle]
    second = [sample for sample in samples if sample.seconds >= middle]
    if min(len(first), len(second)) < 2:
        raise ValueError(f"{len(samples)} samples are too few to tell whether anything is flat")
    return first, second


def growth(samples: Sequence[Sample], node: str) -> float:
    """A node's largest memory in the second half, divided by that in the first: 1 is flat.

    The largest, since memory rises to each snapshot and falls behind it.
    """
    first, second = halves(samples)
    return max(s.memory[node] for s in second) / max(s.memory[node] for s in first)


def bytes_a_change(samples: Sequence[Sample]) -> float:
    """Bytes by which the disks of all nodes grow with each change: the slope of a fitted line.

    Segments come in lumps, to which the ends of a stretch owe more than its line does.
    """
    disks = [float(sum(sample.disk.values())) for sample in samples]
    return linear_regression([float(sample.changes) for sample in samples], disks).slope


def drawn(values: Sequence[float], width: int = 60) -> str:
    """Draw values as a line of at most `width` signs, the largest of each stretch, from 0 up."""
    step = max(1, -(-len(values) // width))
    tops = [max(values[at : at + step]) for at in range(0, len(values), step)]
    most = max(tops, default=0) or 1
    return "".join(SIGNS[round(top / most * (len(SIGNS) - 1))] for top in tops)
