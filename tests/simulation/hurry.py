"""Whether members join again and again without a pause: no rule forbids it, and nobody gains by it.

A join that is answered at once and brings nothing is followed by the next one, if its answer, or
that of the sync, says so. Nothing else in a history shows that: all is answered as the rules have
it. Knows no group's type.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Final

from holdfast.chaos.history.happenings import Invoked, Returned
from simulation.schedule import US

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.chaos.history.happenings import Happening

JOINS_MAX: Final = 15
"""So many joins of one process may be accepted within a second: it is told to join for a change of
its group, for what it has to give up, and for what is free then, and there may be some changes."""


def hurried(history: Iterable[Happening]) -> Iterator[tuple[int, str]]:
    """Yield when a process had joined too often, once for each, and what it did."""
    joins: dict[int, tuple[str, str]] = {}
    accepted: dict[tuple[str, str], deque[int]] = defaultdict(lambda: deque(maxlen=JOINS_MAX + 1))
    told: set[tuple[str, str]] = set()
    for each in history:
        if isinstance(each, Invoked) and each.op == "JoinGroup":
            joins[each.call] = (each.who, each.group)
        elif isinstance(each, Returned) and each.call in joins:
            who = joins.pop(each.call)
            if each.outcome != "ok":
                continue
            accepted[who].append(each.at_us)
            if who not in told and _too_many(accepted[who]):
                told.add(who)
                yield each.at_us, f"{who[0]} joined {who[1]!r} {JOINS_MAX + 1} times in a second"


def _too_many(moments_us: deque[int]) -> bool:
    return len(moments_us) > JOINS_MAX and moments_us[-1] - moments_us[0] <= US
