"""At most how many bytes the lists of the heartbeat protocol take on the log (S7). Knows values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.coordinator.model.ids import TopicPartitions

TEXT_ON_LOG: Final = 3
"""Beside a text on the log: its tag and length."""
LIST_ON_LOG: Final = 10
"""Beside the partitions of a topic: tags and lengths."""
NUMBER_ON_LOG: Final = 3
"""One partition's number, below two millions."""


def of_name(name: str) -> int:
    """Return the bytes of a text."""
    return len(name.encode()) + TEXT_ON_LOG


def of_names(names: Iterable[str]) -> int:
    """Return the bytes of a list of texts."""
    return sum(map(of_name, names))


def of_partitions(lists: Iterable[TopicPartitions]) -> int:
    """Return at most the bytes of partitions, by topic."""
    return sum(
        [of_name(topic) + LIST_ON_LOG + NUMBER_ON_LOG * len(numbers) for topic, numbers in lists]
    )
