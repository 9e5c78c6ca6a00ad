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

    from holdfast.coordinator.model.consumer_events import MemberTarget
    from holdfast.coordinator.model.events import Event
    from holdfast.coordinator.model.ids import TopicPartitions
    from holdfast.coordinator.model.member_profile import ClientAssignor

TEXT_ON_LOG: Final = 3
"""Beside a text on the log: its tag and length."""
LIST_ON_LOG: Final = 10
"""Beside the partitions of a topic: tags and lengths."""
NUMBER_ON_LOG: Final = 3
"""One partition's number, below two millions."""
ASSIGNOR_ON_LOG: Final = 48
"""Beside the name and the metadata of a member's assignor: versions, reason, tags, lengths."""
VERSION_ON_LOG: Final = 4
"""A version of an assignor's metadata, with its tag."""
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


def of_target(target: MemberTarget) -> int:
    """Return at most the bytes of what a member is to own, with what its assignor says to it."""
    size = of_name(target.member_id) + of_partitions(target.partitions) + LIST_ON_LOG
    said = VERSION_ON_LOG + LIST_ON_LOG if target.metadata or target.version else 0
    return size + said + len(target.metadata)


def of_assignor(said: ClientAssignor) -> int:
    """Return at most the bytes of what a member says for an assignor that it can run."""
    return len(said.name.encode()) + len(said.metadata) + ASSIGNOR_ON_LOG


def of_event(event: Event) -> int:
    """Return the bytes of an event that is as long as its group is large; 0: it never is."""
    match event:
        case TargetStored(targets=targets, assignor=assignor, installed_by=who, passed_over=other):
            return EVENT_ON_LOG + of_names((assignor, who, other)) + sum(map(of_target, targets))
        case MemberAdvanced(asked_back=asked_back, freed=freed, granted=granted):
            return EVENT_ON_LOG + sum(map(of_partitions, (asked_back, freed, granted)))
        case RegexResolved(topics=topics):
            return EVENT_ON_LOG + of_names(topics)
        case MemberSubscribed(profile=profile):
            said = sum(map(of_assignor, profile.client_assignors))
            return EVENT_ON_LOG + of_names(profile.topics) + said
        case _:
            return 0
