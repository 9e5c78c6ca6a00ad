"""Events of the heartbeat protocol alone, and the values in them.

Its groups share the others with the classic protocol; `events` has these, and the union of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from holdfast.coordinator.model.ids import InstanceId, Life, MemberId, TopicName, TopicPartitions
from holdfast.coordinator.model.member_profile import ClassicProfile, ConsumerProfile


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
    version: int = 0
    """That of `metadata`."""
    metadata: bytes = b""
    """What an assignor that ran in a member says to this one beside that (KIP-848)."""


class ConvertedMember(NamedTuple):
    """A member of a group that changes its protocol."""

    member_id: MemberId
    topics: tuple[TopicName, ...]
    """Those that it names, sorted; none where the group becomes a classic one."""
    partitions: tuple[TopicPartitions, ...]
    """What it owns, or still may own, by topic."""


@dataclass(frozen=True, slots=True)
class MemberSubscribed:
    """A member of the heartbeat protocol came, or says something new of itself (K-M5, K-M16)."""

    member_id: MemberId
    instance_id: InstanceId | None
    profile: ConsumerProfile
    joined: bool
    """It was no member before."""
    classic: ClassicProfile | None = None
    """What it says in the classic protocol, if it speaks that (K-Q5)."""
    life: Life = ""
    """The life of its process (S26); "": it does not number its heartbeats, or not this one."""
    beat: int = 0
    """The number of the heartbeat that said so, in that life; 0: it has none."""
    session_timeout_ms: int = 0
    """Its session timeout from here on (S11); 0: as before."""


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
class AssignmentRequested:
    """A member was chosen to compute the target, by the assignor that all members share (KIP-848).

    It stays the chosen one until there is a target, or another one is chosen.
    """

    member_id: MemberId
    epoch: int
    """The group epoch for which it was chosen."""
    assignor: str
    late: MemberId = ""
    """The member that was chosen before and has not installed a target in time, or has said that it
    makes none; "": none."""
    problem: str = ""
    """Why that one makes none, in its own words, cut; "": its time was over."""


@dataclass(frozen=True, slots=True)
class TargetStored:
    """What each member is to own from this epoch on: the target (K-M5, K-M20)."""

    epoch: int
    """The group epoch that it answers."""
    assignor: str
    targets: tuple[MemberTarget, ...]
    """Of the members whose target is another one than before."""
    installed_by: MemberId = ""
    """The member whose assignor has computed it; "": one of the service's has."""
    passed_over: str = ""
    """The assignor that all members share, and that was given to none of them to run: the group is
    too large for it (ADR 57); "": there is none."""


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
    beat: int = 0
    """The number of the heartbeat that brought it there (S26); 0: it has none."""


@dataclass(frozen=True, slots=True)
class GroupConverted:
    """The group goes on under another protocol, with its members and offsets (K-Q1 to K-Q14).

    Each member keeps what it owns, and the tokens of it; what it may do next, the new type says.
    """

    group_type: str
    """From here on."""
    generation: int
    """Or the group epoch, from here on."""
    members: tuple[ConvertedMember, ...]
    """All of them, in the order of joining."""
    protocol_name: str = ""
    """Of a classic group with members."""
    leader: MemberId = ""
    """Of a classic group with members."""
