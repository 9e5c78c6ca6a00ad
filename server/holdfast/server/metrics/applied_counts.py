"""Counts what applied records did to groups: rebalances, members that went, time without owners.

Each node counts the records that it applies, from its start on; so the leader's and the followers'
counts are about equal, and none may be added to another's. What a node gets as a snapshot, it never
applies. A listener of the replica.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from holdfast.coordinator.model.events import GroupDeleted, RebalanceStarted
from holdfast.coordinator.model.membership import (
    CONVERTED,
    ENDED,
    EXPIRED,
    FREED,
    GRANTED,
    LATE,
    LEFT,
    REFUSED,
    RELEASED,
    REMOVED,
    REPLACED,
    TABLE,
    line_of,
)
from holdfast.storage.durations import Durations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.coordinator.model.events import Record
    from holdfast.coordinator.model.ids import GroupId
    from holdfast.runtime.ports import ReplicaLike

_JOINED, _LEADER_ASKED, _CHANGED, _RETURNED = "joined", "leader", "changed", "returned"
_OPERATOR, _TOO_LARGE, OTHER = "operator", "too_large", "other"
CAUSES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("A5", "B1"), _JOINED),
    "A15": _LEADER_ASKED,
    **dict.fromkeys(("A16", "A18"), _CHANGED),
    **dict.fromkeys(("B6", "B8", "B12"), _RETURNED),
    **dict.fromkeys(("G13", "G14"), LEFT),
    "G23": REMOVED,
    **dict.fromkeys(("A21", "E10"), LATE),
    "F9": EXPIRED,
    "I13": _TOO_LARGE,
    "operator": _OPERATOR,
}
"""Why a rebalance began, by the rule that opened its join phase. The rule of a newer node's log is
`other`: a label must not have any value."""
WAYS: Final = (LEFT, REMOVED, EXPIRED, REFUSED, LATE, REPLACED, RELEASED)
"""How a member goes, or is fenced."""
_COUNTED: Final = frozenset(
    kind for kind, line in TABLE.items() if line.kind in WAYS or line.everyone
) | {GroupDeleted}
"""Events of which something is counted; commits, which are most of all, are not among them."""


class AppliedCounts:
    """The counts of one node."""

    def __init__(self) -> None:
        self.records = 0
        self.rebalances: Counter[str] = Counter()
        """By the values of `CAUSES`."""
        self.gone: Counter[str] = Counter(dict.fromkeys(WAYS, 0))
        """Members that went or were fenced, by the kind of `model.membership`."""
        self.rebalance_s, self.without_owner_s = Durations(), Durations()
        self._rebalancing: dict[GroupId, int] = {}
        self._freed: dict[GroupId, int] = {}

    def listen(self, replica: ReplicaLike) -> None:
        """Subscribe to the replica."""
        replica.subscribe(on_applied=self.on_applied)

    def on_applied(self, records: Sequence[Record], index: int) -> None:
        """Count what these records did."""
        del index
        self.records += len(records)
        for record in records:
            if type(record.event) in _COUNTED:
                self._count(record)

    def _count(self, record: Record) -> None:
        line = line_of(record.event)
        if line.kind in self.gone:
            count = 1 if line.kind == RELEASED else len(line.went(record.event))
            self.gone[line.kind] += count  # who released its instance id is fenced, and stays
        if line.everyone or isinstance(record.event, GroupDeleted):
            self._follow(record, line.everyone)

    def _follow(self, record: Record, everyone: str) -> None:
        group_id, now_ms = record.group_id, record.log_time_ms
        if isinstance(record.event, RebalanceStarted):
            self.rebalances[CAUSES.get(record.cause.rule, OTHER)] += 1
            self._rebalancing[group_id] = now_ms
        elif everyone == FREED:
            self._freed[group_id] = now_ms
        elif everyone == GRANTED:
            _end(self._rebalancing, group_id, now_ms, self.rebalance_s)
            _end(self._freed, group_id, now_ms, self.without_owner_s)
        elif everyone in {CONVERTED, ENDED} or isinstance(record.event, GroupDeleted):
            self._rebalancing.pop(group_id, None)
            self._freed.pop(group_id, None)


def _end(since: dict[GroupId, int], group_id: GroupId, now_ms: int, into: Durations) -> None:
    began_ms = since.pop(group_id, None)
    if began_ms is not None:
        into.add((now_ms - began_ms) / 1000)
