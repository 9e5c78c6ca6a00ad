"""Events of the heartbeat protocol alone, and the values in them.

Its groups share the others with the classic protocol; `events` has these, and the union of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from holdfast.coordinator.model.ids import InstanceId, MemberId, TopicName, TopicPartitions
from holdfast.coordinator.model.member_profile import ConsumerProfile


class ResolvedRegex(NamedTuple):
    """The topics that a regular expression matches, as the node found out."""

    regex: str
    topics: tuple[TopicName, ...]
    """Sorted."""


class MemberTarget(NamedTuple):
    """What a member of the heartbeat protocol is to own."""

    member_id: MemberId
    partitions: tuple[TopicPartitions, ...]
    """By topic."""


@dataclass(frozen=True, slots=True)
class MemberSubscribed:
    """A member of the heartbeat protocol came, or says something new of itself (K-M5, K-M16)."""

    member_id: MemberId
    instance_id: InstanceId | None
    profile: ConsumerProfile
    joined: bool
    """It was no member before."""


@dataclass(frozen=True, slots=True)
class EpochRaised:
    """Something changed that asks for another target: the group epoch grows by one."""

    epoch: int
    cause: str
    """`joined`, `subscription`, `assignor`, `topics`, `regex`, `left`, `removed`, `expired` or
    `asked`."""
    digest: bytes
    """Of the topics that the group subscribes to, as they are now (K-M27); empty: of none."""
    predecessor_ms: int = 0
    """How long members that an operator removed may still act on what they owned (S12)."""


@dataclass(frozen=True, slots=True)
class RegexResolved:
    """It is known which topics a regular expression of the group matches (K-P1)."""

    regex: str
    topics: tuple[TopicName, ...]
    """Sorted."""
    newest_index: int
    """When the newest of all topics was created that were looked at (K-P8)."""


@dataclass(frozen=True, slots=True)
class TargetStored:
    """What each member is to own from this epoch on: the target (K-M5, K-M20)."""

    epoch: int
    """The group epoch that it answers."""
    assignor: str
    targets: tuple[MemberTarget, ...]
    """Of the members whose target is another one than before."""


@dataclass(frozen=True, slots=True)
class MemberAdvanced:
    """A member came closer to its target, by its own heartbeat (K-O1 to K-O17).

    What is freed belongs to nobody from here on, and may be granted by the next record.
    """

    member_id: MemberId
    epoch: int
    asked_back: tuple[TopicPartitions, ...]
    """What it has to give up and still may own."""
    freed: tuple[TopicPartitions, ...]
    """What it has given up."""
    granted: tuple[TopicPartitions, ...]
    """What it owns from here on: the grant of these (S13)."""
    waiting: bool
    """Something of its target still belongs to others (UNRELEASED_PARTITIONS)."""
