"""What the second coordinator's consumer groups are made of.

What follows from it is computed whenever it is asked for: who holds a partition, which topics are
wanted, the state of the group. The rules are in `kafka_consumer_model`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.coordinator.consumer.assignors import ASSIGNORS, GroupSpec, MemberSpec
from holdfast.coordinator.model.ids import TopicPartitions

Json = Any
Partition = tuple[str, int]
STABLE, UNREVOKED, UNRELEASED = "stable", "unrevoked", "unreleased"
JOINING, LEAVING, AWAY = 0, -1, -2
"""What a heartbeat may say in the place of an epoch; a member at AWAY keeps its place."""
SERVER_ASSIGNORS = ("uniform", "range")
"""In the order of the base profile's settings."""
FIRST_EPOCH = 1
"""A new group's epoch and its target's; the first change makes it 2 (K-M5)."""


class Refused(Exception):
    """A call is refused with an error of this name, and nothing has changed."""


@dataclass
class Member:
    """A member of the heartbeat protocol.

    `owned` is what it may work on, `revoking` what it was asked to give up and may still work on;
    both have the epoch at which each partition was given to it. `knows`: it was answered at its
    epoch, so that the `previous` one does not count any more.
    """

    member_id: str
    instance: str | None = None
    client: str = ""
    rack: str | None = None
    rebalance: int = 0
    names: frozenset[str] = frozenset()
    regex: str = ""
    assignor: str | None = None
    epoch: int = JOINING
    previous: int = -1
    knows: bool = False
    state: str = STABLE
    owned: dict[Partition, int] = field(default_factory=dict)
    revoking: dict[Partition, int] = field(default_factory=dict)

    @property
    def holds(self) -> dict[Partition, int]:
        return self.owned | self.revoking


@dataclass
class Resolved:
    """What a regular expression was found to match, and when; how many topics had been made."""

    topics: frozenset[str]
    at: int
    made: int


@dataclass
class ConsumerGroup:
    """One group. `target` is what each member is to have at `target_epoch`, and was computed when.

    `digest` is what the subscribed topics looked like when the epoch was last raised; `stale` says
    that one of them may have changed since.
    """

    epoch: int = FIRST_EPOCH
    target_epoch: int = FIRST_EPOCH
    target_at: int | None = None
    target: dict[str, set[Partition]] = field(default_factory=dict)
    members: dict[str, Member] = field(default_factory=dict)
    resolved: dict[str, Resolved] = field(default_factory=dict)
    digest: list[tuple[str, int, int]] = field(default_factory=list)
    stale: bool = False
    computing: bool = False
    """A target is under way that comes late."""
    tries: int = 0
    """How many of these came in vain since there was a target, with the one under way."""
    offsets: dict[Partition, Json] = field(default_factory=dict)

    # --- who is who ---

    def holder(self, instance: str | None) -> Member | None:
        """The member that has an instance id."""
        known = [m for m in self.members.values() if m.instance == instance]
        return known[0] if instance is not None and known else None

    def taken_by_others(self, member: Member) -> set[Partition]:
        """What other members hold; nobody else may be given it before they let it go."""
        others = (each for each in self.members.values() if each.member_id != member.member_id)
        return {partition for each in others for partition in each.holds}

    # --- what is wanted ---

    def regexes(self) -> set[str]:
        return {m.regex for m in self.members.values() if m.regex}

    def wanted_by(self, member: Member) -> frozenset[str]:
        """Topics by name, and those that its regular expression is known to match."""
        found = self.resolved.get(member.regex)
        return member.names | (found.topics if found else frozenset())

    def aims_beyond(self, regex: str) -> bool:
        """Whether a member with it is to have what it wants no more: others are to get that."""
        users = [each for each in self.members.values() if each.regex == regex]
        return any(
            topic not in self.wanted_by(each)
            for each in users
            for topic, _ in self.target.get(each.member_id, ())
        )

    def may_have(self, target: Mapping[str, set[Partition]]) -> bool:
        """Whether a target gives something to members only, and only what they want."""
        given = {member_id: some for member_id, some in target.items() if some}
        return given.keys() <= self.members.keys() and all(
            topic in self.wanted_by(self.members[member_id])
            for member_id, some in given.items()
            for topic, _ in some
        )

    def wanted(self) -> set[str]:
        return {topic for member in self.members.values() for topic in self.wanted_by(member)}

    @property
    def assignor(self) -> str:
        """The one that most members prefer; of a tie, the first of the settings (K-P11)."""
        votes = Counter(m.assignor for m in self.members.values() if m.assignor)
        return max(SERVER_ASSIGNORS, key=lambda name: votes[name])

    # --- how it stands ---

    @property
    def state(self) -> str:
        if not self.members:
            return "Empty"
        if self.epoch > self.target_epoch:
            return "Assigning"
        there = all(
            member.state == STABLE and member.epoch == self.target_epoch
            for member in self.members.values()
        )
        return "Stable" if there else "Reconciling"


Assignor = Callable[[ConsumerGroup, Mapping[str, int]], dict[str, set[Partition]]]


def by_range(group: ConsumerGroup, topics: Mapping[str, int]) -> dict[str, set[Partition]]:
    """K-P12: of each topic one stretch each, static members first."""

    def place(member: Member) -> tuple[bool, str]:
        return member.instance is None, member.instance or member.member_id

    target: dict[str, set[Partition]] = {member_id: set() for member_id in group.members}
    for topic in sorted(group.wanted() & topics.keys()):
        members = [m for m in group.members.values() if topic in group.wanted_by(m)]
        each, extra = divmod(topics[topic], len(members))
        first = 0
        for number, member in enumerate(sorted(members, key=place)):
            last = first + each + (number < extra)
            target[member.member_id] |= {(topic, n) for n in range(first, last)}
            first = last
    return target


def by_uniform(group: ConsumerGroup, topics: Mapping[str, int]) -> dict[str, set[Partition]]:
    """K-P13, K-P14: by the core's own assignor, which has properties of its own to hold."""
    kinds = {(member.names, member.regex) for member in group.members.values()}
    names, regex = next(iter(kinds), (frozenset(), ""))
    members = {
        member_id: MemberSpec(
            instance_id=member.instance,
            rack_id=member.rack,
            topics=group.wanted_by(member),
            current=_sorted(group.target.get(member_id, set())),
        )
        for member_id, member in group.members.items()
    }
    alike = len(kinds) <= 1 and not (names and regex)
    target = ASSIGNORS["uniform"](GroupSpec(members, homogeneous=alike), topics)
    return {
        member_id: {(each.topic, number) for each in given for number in each.partitions}
        for member_id, given in target.items()
    }


def _sorted(partitions: set[Partition]) -> tuple[TopicPartitions, ...]:
    given = listed(partitions)["topic_partitions"]
    return tuple(TopicPartitions(each["topic"], tuple(each["partitions"])) for each in given)


def listed(partitions: Iterable[Partition]) -> Json:
    """Partitions in the JSON of the transcripts."""
    by_topic: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        by_topic.setdefault(topic, []).append(number)
    return {
        "topic_partitions": [
            {"topic": topic, "partitions": numbers} for topic, numbers in by_topic.items()
        ]
    }


def read(given: Json) -> set[Partition] | None:
    """Partitions of a request; None is not an empty list."""
    if given is None:
        return None
    return {(each["topic"], number) for each in given for number in each["partitions"]}
