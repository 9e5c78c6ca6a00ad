"""At most how many bytes events of the heartbeat protocol take on the log (S7).

Never too low, so that what is found to fit into an entry does fit. Knows values and no rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.coordinator.model.consumer_events import (
    MemberAdvanced,
    MemberSubscribed,
    RegexResolved,
    TargetStored,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.coordinator.model.events import Event
    from holdfast.coordinator.model.ids import TopicPartitions

TEXT_ON_LOG: Final = 3
"""Beside a text on the log: its tag and length."""
LIST_ON_LOG: Final = 10
"""Beside the partitions of a topic: tags and lengths."""
NUMBER_ON_LOG: Final = 3
"""One partition's number, below two millions."""
EVENT_ON_LOG: Final = 256
"""Beside the lists of an event: who caused it, by what, and by which rule."""


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


def of_event(event: Event) -> int:
    """Return the bytes of an event that is as long as its group is large; 0: it never is."""
    match event:
        case TargetStored(targets=targets):
            owned = [of_name(each.member_id) + of_partitions(each.partitions) for each in targets]
            return EVENT_ON_LOG + LIST_ON_LOG * len(owned) + sum(owned)
        case MemberAdvanced(asked_back=asked_back, freed=freed, granted=granted):
            return EVENT_ON_LOG + sum(map(of_partitions, (asked_back, freed, granted)))
        case RegexResolved(topics=topics):
            return EVENT_ON_LOG + of_names(topics)
        case MemberSubscribed(profile=profile):
            return EVENT_ON_LOG + of_names(profile.topics)
        case _:
            return 0
