"""INV-10: a watch is ordered, without gap and duplicate, and resumable.

A watch delivers the log after its position, record by record, of one group or of all. One that is
told of a gap begins anew before it goes on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import Final

from holdfast.chaos.checkers.verdict import Verdict, Violation
from holdfast.chaos.evidence.log_view import by_group, place, records_of
from holdfast.chaos.history.happenings import Happening, Recorded, Watched, WatchGap, WatchOpened

INVARIANT: Final = "I10"


def check(history: Sequence[Happening]) -> Verdict:
    """Find watches that deliver anything but the log."""
    records = records_of(history)
    groups = {**by_group(records), "": records}
    watches: dict[str, _Watch] = {}
    found: list[Violation] = []
    delivered: Counter[str] = Counter()
    for at in history:
        if isinstance(at, WatchOpened):
            watches[at.watch] = _Watch(groups.get(at.group, []), (at.index, at.ordinal))
        elif isinstance(at, WatchGap) and at.watch in watches:
            watches[at.watch].told_of_gap = True
        elif isinstance(at, Watched):
            delivered[at.watch] += 1
            if at.watch not in watches:
                found.append(Violation(INVARIANT, at.at_us, f"{at.watch} was never opened"))
                watches[at.watch] = _Watch(groups[""], (at.index, at.ordinal))
            elif what := watches[at.watch].deliver(at):
                found.append(Violation(INVARIANT, at.at_us, f"{at.watch}: {what}"))
    return Verdict({"deliveries": delivered.total(), "watches": len(delivered)}, found)


class _Watch:
    """One watch, with the records that it should deliver."""

    def __init__(self, records: Sequence[Recorded], after: tuple[int, int]) -> None:
        self._records = records
        self._places = [place(record) for record in records]
        self._last = after
        self.told_of_gap = False

    def deliver(self, at: Watched) -> str:
        """Say what is wrong with a delivery; "" if it is the next record."""
        here = (at.index, at.ordinal)
        before, self._last = self._last, max(self._last, here)
        where = f"record {at.index}.{at.ordinal} after {before[0]}.{before[1]}"
        if self.told_of_gap:
            return f"{where} was delivered behind a gap, without a new beginning"
        if here <= before:
            return f"{where} was delivered out of order, or again"
        if not self._places or here > self._places[-1]:
            return ""  # the log that was recorded ends before this
        expected = self._records[bisect_right(self._places, before)]
        if here > place(expected):
            return f"{where} left out record {expected.index}.{expected.ordinal} ({expected.kind})"
        if here < place(expected):
            return "" if here < self._places[0] else f"{where} is not in the log"
        told = (at.group, at.group_seq, at.kind)
        kept = (expected.group, expected.group_seq, expected.kind)
        return "" if told == kept else f"{where} was told as {told}, the log has {kept}"
