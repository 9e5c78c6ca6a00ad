"""The body of a group of the heartbeat protocol, and its members, targets and expressions.

Only this room and the tests read it; all others ask the table (`groups.group_type`). Immutable
values. Durations are milliseconds; times are log time in milliseconds (S8).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias

from holdfast.coordinator.groups.sizes import of_assignor
from holdfast.coordinator.model.consumer_events import MemberTarget, ResolvedRegex
from holdfast.coordinator.model.ids import (
    InstanceId,
    Life,
    MemberId,
    Principal,
    RequestId,
    TopicName,
    TopicPartition,
)
from holdfast.coordinator.model.member_profile import ClassicProfile, ConsumerProfile
from holdfast.coordinator.model.state import Group
from holdfast.coordinator.structures.pmap import PMap

CONSUMER: Final = "consumer"
"""The name of the type."""

IS_STABLE: Final = "stable"
"""A member owns all of its target, as far as it knows of it."""
UNREVOKED: Final = "unrevoked"
"""A member has been asked to give partitions up, and has not said that it did."""
UNRELEASED: Final = "unreleased"
"""A member waits for partitions that others own."""

JOINING: Final = 0
"""The epoch of a member that has not been answered yet."""
LEFT: Final = -1
"""The epoch by which a member leaves."""
RELEASED: Final = -2
"""The epoch of a static member whose process has stopped, and whose place is kept (K-N2)."""
NEVER: Final = -1
"""The time of a target that was not computed yet."""
FIRST_EPOCH: Final = 1
"""The epoch of a new group, since 0 means joining; the first target has the next one (K-M5)."""


class Asked(NamedTuple):
    """The member that is to compute the target, by an assignor of its own (KIP-848)."""

    member_id: MemberId
    epoch: int
    """The group epoch at which it was looked at last whether that is right."""
    assignor: str
    overtaken: bool = False
    """Since then a member goes on under another id, or an expression was looked up, which raises no
    epoch: what the assignor was given may be of the past."""


class Runnable(NamedTuple):
    """What counts of an assignor that a member can run, when one is sought that all share."""

    name: str
    minimum_version: int
    maximum_version: int
    version: int
    """Of what the member says for it."""

    def understands(self, version: int) -> bool:
        """Return whether the member can read metadata of this version."""
        return self.minimum_version <= version <= self.maximum_version


class Holding(NamedTuple):
    """Partitions of one topic that a member owns; the three lists have the same order."""

    topic: TopicName
    partitions: tuple[int, ...]
    """Sorted."""
    epochs: tuple[int, ...]
    """The epoch at which the member, or its instance, got each (K-O16)."""
    granted: tuple[int, ...]
    """The entry that granted each: its token (S13)."""


class Member(NamedTuple):
    """One member."""

    member_id: MemberId
    instance_id: InstanceId | None
    """Makes it static."""
    profile: ConsumerProfile
    joined_seq: int
    """The group_seq of its joining, the order in which members are shown; a swap keeps it."""
    since_ms: int
    """The log time at which this member id took its place."""
    epoch: int = JOINING
    previous_epoch: int = JOINING
    """The epoch before the last step: an answer that told the new one may be lost (K-M11)."""
    owned: tuple[Holding, ...] = ()
    """By topic."""
    revoking: tuple[Holding, ...] = ()
    """What it was asked to give up and still may own, by topic."""
    waiting: bool = False
    """Something of its target belonged to others at its last step."""
    predecessor_ms: int = 0
    """How long an older holder may still act on what was granted last (S12)."""
    principal: Principal = ""
    """The principal that joined, whose instance id it is."""
    classic: ClassicProfile | None = None
    """What it says in the classic protocol; None: it speaks the heartbeat protocol."""
    replaced_requests: tuple[RequestId, ...] = ()
    """The last request ids of classic joins whose members this one has replaced (S14)."""
    replaced_life: Life = ""
    """The newest life of those that had its instance before it (S12); "": none told one."""
    life: Life = ""
    """The life of its process (S26); "": it does not number its heartbeats."""
    beat: int = 0
    """The number of the last of its heartbeats in that life that is on the log."""
    session_timeout_ms: int = 0
    """How long it may be silent, as it may know it (S11); 0: as the group's setting says."""
    unhurried_until_ms: int = 0
    """Until when, in log time, it may reckon with a longer rebalance timeout than it has (S11)."""
    absence_ms: int = 0
    """Of one that has stopped: for how long its place is kept; 0: until its session ends (K-N3)."""

    @property
    def state(self) -> str:
        """Its state, by Kafka's words."""
        if self.revoking:
            return UNREVOKED
        return UNRELEASED if self.waiting else IS_STABLE

    @property
    def released(self) -> bool:
        """Whether its process has stopped, and its place is kept (S12)."""
        return self.epoch == RELEASED


class ConsumerBody(NamedTuple):
    """The body of a group of the heartbeat protocol; the group epoch is the head's `generation`."""

    assignment_epoch: int = FIRST_EPOCH
    """The group epoch that the target answers."""
    target_ms: int = NEVER
    """When the target was computed; `NEVER`: not since there were no members (K-P17)."""
    digest: bytes = b""
    """Of the topics that the group subscribes to, at the last epoch (K-M27)."""
    predecessors_until_ms: int = 0
    """Until when a removed member may still act on an old grant (S12)."""
    regexes_ms: int = NEVER
    """When a search for the topics of regular expressions last found something new (K-P5)."""
    regexes_index: int = 0
    """When the newest topic was created that this search looked at (K-P8)."""
    client_assignor: str = ""
    """The assignor of the target, if it ran in a member; "": it is one of the service's."""
    asked: Asked | None = None
    """None: no member is to compute a target."""
    late: tuple[MemberId, ...] = ()
    """Members that were asked and have not installed a target in time, the last one last."""
    members: PMap[MemberId, Member] = PMap()
    targets: PMap[MemberId, MemberTarget] = PMap()
    """What members are to own; a member without a target is to own nothing."""
    regexes: PMap[str, ResolvedRegex] = PMap()
    """Those regular expressions of members that were looked up."""
    instances: PMap[InstanceId, MemberId] = PMap()
    owners: PMap[TopicPartition, MemberId] = PMap()
    """Who owns each partition, or still may own it; a partition without owner is free."""
    settled: PMap[MemberId, bool] = PMap()
    """The members that own all of the present target: without them nothing is in motion."""
    topic_users: PMap[TopicName, int] = PMap()
    """How many members name each topic."""
    regex_users: PMap[str, int] = PMap()
    """How many members have each regular expression."""
    assignor_users: PMap[str, int] = PMap()
    """How many members would have each assignor."""
    client_assignor_kinds: PMap[tuple[Runnable, ...], int] = PMap()
    """How many members say the same of the assignors that they can run themselves, but for metadata
    and reasons; who can run none is not counted."""
    client_assignor_bytes: PMap[str, int] = PMap()
    """How many bytes all of them together say for each."""
    classic_members: PMap[MemberId, bool] = PMap()
    """The members that speak the classic protocol (K-Q5)."""
    classic_protocols: PMap[str, int] = PMap()
    """How many of these support each protocol (K-Q6)."""


ConsumerGroup: TypeAlias = Group[ConsumerBody]

Stored: TypeAlias = Member | MemberTarget | ResolvedRegex
"""What has a record of its own."""


def is_settled(body: ConsumerBody, member: Member) -> bool:
    """Return whether a member owns all of the present target."""
    return member.epoch == body.assignment_epoch and not member.revoking and not member.waiting


def protocol_names(classic: ClassicProfile | None) -> tuple[str, ...]:
    """Return the names of the protocols that a member supports, each once."""
    return () if classic is None else tuple({each.name: None for each in classic.protocols})


def runnable(profile: ConsumerProfile) -> tuple[Runnable, ...]:
    """Return the assignors that a member can run, the most wanted first."""
    return tuple(
        [
            Runnable(each.name, each.minimum_version, each.maximum_version, each.version)
            for each in profile.client_assignors
        ]
    )


def assignor_bytes(profile: ConsumerProfile) -> dict[str, int]:
    """Return how many bytes a member says for each assignor that it can run, on the log."""
    return {each.name: of_assignor(each) for each in profile.client_assignors}


def places(held: Iterable[Holding]) -> Iterator[TopicPartition]:
    """Yield the partitions of holdings."""
    for holding in held:
        for partition in holding.partitions:
            yield TopicPartition(holding.topic, partition)


def _summed(counts: Iterable[dict[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return total


def restored(body: ConsumerBody, records: Iterable[Stored]) -> ConsumerBody:
    """Return the body with what has records of its own, and with what follows from these."""
    every = tuple(records)
    members = [each for each in every if isinstance(each, Member)]
    profiles = [each.profile for each in members]
    topics = Counter(topic for profile in profiles for topic in profile.topics)
    return body._replace(
        members=PMap((each.member_id, each) for each in members),
        targets=PMap((each.member_id, each) for each in every if isinstance(each, MemberTarget)),
        regexes=PMap((each.regex, each) for each in every if isinstance(each, ResolvedRegex)),
        instances=PMap((m.instance_id, m.member_id) for m in members if m.instance_id),
        owners=PMap(
            (place, m.member_id) for m in members for place in places((*m.owned, *m.revoking))
        ),
        settled=PMap((m.member_id, True) for m in members if is_settled(body, m)),
        topic_users=PMap(topics),
        regex_users=PMap(Counter(each.regex for each in profiles if each.regex)),
        assignor_users=PMap(
            Counter(each.server_assignor for each in profiles if each.server_assignor)
        ),
        client_assignor_kinds=PMap(
            Counter(runnable(each) for each in profiles if each.client_assignors)
        ),
        client_assignor_bytes=PMap(_summed(map(assignor_bytes, profiles))),
        classic_members=PMap((m.member_id, True) for m in members if m.classic is not None),
        classic_protocols=PMap(
            Counter(name for m in members for name in protocol_names(m.classic))
        ),
    )
