"""Which group is heard next: by Zipf's law, with one cumulated weight kept for each group. Pure."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random


class Popularity:
    """Numbers of groups from `first` on; the first of them is chosen most often."""

    def __init__(self, first: int, groups: int, skew: float, chance: Random) -> None:
        weights = ((rank + 1) ** -skew for rank in range(groups - first))
        self._upto = array("d", accumulate(weights))
        self._first, self._chance = first, chance

    def pick(self) -> int:
        """Choose one group."""
        rank = bisect_right(self._upto, self._chance.random() * self._upto[-1])
        return self._first + min(rank, len(self._upto) - 1)

    def some(self, count: int) -> list[int]:
        """Choose up to so many different groups, each as often as it is picked, in that order."""
        return list(dict.fromkeys(self.pick() for _ in range(count)))
