"""Rebalances, each from the beginning of a generation to its assignment.

Each invariant about assignments notes something of its own when a generation begins, and gets it
back when the assignment is stored. Knows no invariant.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from holdfast.chaos.evidence.log_view import NOTHING, View, fold
from holdfast.chaos.evidence.owned_partitions import OwnedPartitions
from holdfast.chaos.evidence.topics import Topics
from holdfast.chaos.history.happenings import Recorded

Begun = TypeVar("Begun")
Note: TypeAlias = Callable[[View, OwnedPartitions, Topics], Begun]
"""What to keep of a beginning: the group, what its members said they owned, and the topics."""


@dataclass(frozen=True, slots=True)
class Rebalance(Generic[Begun]):
    """A generation that got its assignment."""

    begun: Begun
    """What was noted when the generation began."""
    before: View
    after: View
    record: Recorded
    """The assignment, which stands between `before` and `after`."""
    topics: Topics
    """The topics at this record; they change with the next one."""


def rebalances(records: Iterable[Recorded], note: Note[Begun]) -> Iterator[Rebalance[Begun]]:
    """Yield the rebalances of all groups, in the order of their assignments."""
    topics = Topics()
    groups: dict[str, View] = {}
    owned: dict[str, OwnedPartitions] = defaultdict(OwnedPartitions)
    begun: dict[str, Begun] = {}
    for record in records:
        topics.follow(record)
        if not record.group:
            continue
        before = groups.get(record.group, NOTHING)
        after = groups[record.group] = fold(before, record)
        owned[record.group].follow(record)
        if record.kind == "GenerationStarted":
            begun[record.group] = note(after, owned[record.group], topics)
        elif record.kind == "AssignmentStored" and record.group in begun:
            yield Rebalance(begun[record.group], before, after, record, topics)
