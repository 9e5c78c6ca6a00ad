"""The members, generation and epochs of each group, at a position of the log or during a time.

A call that does not touch the log (a heartbeat) has no position: all that is known is that the node
looked at the group between the call and its answer. Knows no invariant.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from holdfast.chaos.evidence.calls import NEVER
from holdfast.chaos.evidence.commits import is_exact, told_of
from holdfast.chaos.evidence.log_view import NOTHING, View, by_group, place, records_of, views
from holdfast.chaos.history.happenings import Happening, Recorded


class MembershipTimeline:
    """One group along its records; only changes of members, generation and epochs are kept.

    A leader may act by a view from when its record was committed, as far as is known, until the
    next one surely was (`Fence` says the same of member ids).
    """

    def __init__(self, records: Iterable[Recorded], history: Sequence[Happening]) -> None:
        told, exact = told_of(history), is_exact(history)
        self._views: list[View] = [NOTHING]
        self._places: list[tuple[int, int]] = [(0, 0)]
        self._from_us: list[int] = [0]
        self._over_us: list[int] = []
        for before, record, after in views(records):
            same = (before.generation, before.members) == (after.generation, after.members)
            if same and before.beats is after.beats:
                continue
            told_us = told.proved_by(record.index)
            over_us = min(told_us, record.at_us) if exact else told_us
            self._views.append(after)
            self._places.append(place(record))
            self._from_us.append(min(record.at_us, over_us))
            self._over_us.append(over_us)
        self._over_us.append(NEVER)

    def ahead_of(self, position: tuple[int, int]) -> View:
        """Return the group as it was just before a record."""
        return self._views[bisect_left(self._places, position) - 1]

    def between(self, start_us: int, end_us: int) -> Sequence[View]:
        """Return all views that a leader may have acted by at some moment between the two."""
        first = bisect_left(self._over_us, start_us)
        return self._views[first : bisect_right(self._from_us, end_us)]


def timelines(history: Sequence[Happening]) -> dict[str, MembershipTimeline]:
    """Build the timeline of each group whose life the log has from its beginning."""
    return {
        group: MembershipTimeline(own, history)
        for group, own in by_group(records_of(history)).items()
        if own[0].kind == "GroupCreated"
    }
