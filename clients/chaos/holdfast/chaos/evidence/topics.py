"""How many partitions each topic had, along the log. Knows no group and no invariant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from holdfast.chaos.history.happenings import Recorded

Sizes: TypeAlias = dict[str, int]


class Topics:
    """The sizes of topics, along the cluster's own records."""

    def __init__(self) -> None:
        self.sizes: Sizes = {}
        self.largest: Sizes = {}
        """Of each topic that ever was."""
        self.changed: dict[str, int] = {}
        """The entry that changed a topic last."""

    def follow(self, record: Recorded) -> None:
        """Take in one record; a group's record changes nothing."""
        if record.kind in {"TopicsCreated", "PartitionsAdded"}:
            for topic in record.fields["topics"]:
                name, size = topic["name"], topic["num_partitions"]
                self.sizes[name] = size
                self.largest[name] = max(size, self.largest.get(name, 0))
                self.changed[name] = record.index
        elif record.kind == "TopicsDeleted":
            for name in record.fields["names"]:
                self.sizes.pop(name, None)
                self.changed[name] = record.index

    def may_have(self, partition: tuple[str, int]) -> bool:
        """Return whether a partition exists, or is of a topic that the log does not mention."""
        topic, number = partition
        return topic not in self.largest or number < self.sizes.get(topic, 0)


def missing(
    wanted: Iterable[str], sizes: Sizes, given: Iterable[tuple[str, int]]
) -> list[tuple[str, int]]:
    """Return the partitions of the wanted topics that no member was given."""
    have = set(given)
    return [
        (topic, number)
        for topic in sorted(wanted)
        for number in range(sizes.get(topic, 0))
        if (topic, number) not in have
    ]
