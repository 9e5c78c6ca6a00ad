"""What every assignor takes and gives, and the order of members that they share.

An assignor is a pure function from subscriptions and partition counts to an assignment. It runs in
the client of the group leader (classic protocol), so the same input must give the same output in
every process and under any hash seed. Imports only the standard library.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Assignment: TypeAlias = dict[str, dict[str, list[int]]]
"""Member id -> topic -> partitions in rising order. Every member has a key; topics without a
partition have none."""

GENERATION_UNKNOWN = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSubscription:
    """One member as the group leader sees it."""

    member_id: str
    topics: frozenset[str]
    instance_id: str | None = None
    owned: Mapping[str, Sequence[int]] = field(default_factory=dict, hash=False)
    """What the member says that it owned, by topic."""
    generation: int = GENERATION_UNKNOWN
    """The generation of that claim, GENERATION_UNKNOWN if it did not say: of two claims on one
    partition the newer one counts."""
    weight: int = 1
    """How much it can carry relative to others; only the weighted assignor uses it."""


@runtime_checkable
class Assignor(Protocol):
    """Shares partitions out among members."""

    @property
    def name(self) -> str:
        """The protocol name that members vote on in JoinGroup."""
        ...

    @property
    def uses_owned(self) -> bool:
        """Whether members must say what they owned.

        Members that need not say it do not: a changed claim is a changed subscription, and for a
        known follower that means a rebalance (K-A16).
        """
        ...

    @property
    def cooperative(self) -> bool:
        """Whether members keep working during a rebalance and let go only of what moves (KIP-429).

        Such an assignor gives no member a partition that another member still says it owns.
        """
        ...

    def assign(
        self, members: Sequence[MemberSubscription], partition_counts: Mapping[str, int]
    ) -> Assignment:
        """Give each partition of `partition_counts` to one member that subscribes to its topic.

        Topics that no member subscribes to stay out; a subscribed topic without a count (it does
        not exist yet) gives nothing. A cooperative assignor holds back what another member must
        let go of first; the next round gives it out. Raises nothing on well-formed input.
        """
        ...


def in_member_order(members: Iterable[MemberSubscription]) -> list[MemberSubscription]:
    """Sort as Kafka's clients do: static members by instance id, then dynamic ones by member id.

    The order depends on the instance id and not on the member id, which changes at each restart: so
    a static member that comes back under a new member id keeps its place (KIP-345).
    """
    return sorted(members, key=_member_key)


def identity(member: MemberSubscription) -> str:
    """Return the name that outlives a restart: the instance id, else the member id."""
    return member.member_id if member.instance_id is None else member.instance_id


def subscribers_by_topic(
    members: Sequence[MemberSubscription], partition_counts: Mapping[str, int]
) -> dict[str, list[MemberSubscription]]:
    """Return each existing, subscribed topic (sorted) with its subscribers, in members' order."""
    by_topic: dict[str, list[MemberSubscription]] = {
        topic: [] for topic in sorted(partition_counts, key=_utf16) if partition_counts[topic] > 0
    }
    for member in members:
        for topic in member.topics:
            if topic in by_topic:
                by_topic[topic].append(member)
    return {topic: subscribers for topic, subscribers in by_topic.items() if subscribers}


def _member_key(member: MemberSubscription) -> tuple[int, bytes, bytes]:
    if member.instance_id is None:
        return (1, _utf16(member.member_id), b"")
    return (0, _utf16(member.instance_id), _utf16(member.member_id))


def _utf16(text: str) -> bytes:
    # Java compares UTF-16 code units, Python code points: they differ above U+FFFF.
    return text.encode("utf-16-be", "surrogatepass")
