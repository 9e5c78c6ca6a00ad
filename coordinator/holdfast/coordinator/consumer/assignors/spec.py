"""What a server assignor takes and gives, and what the assignors share. Knows no assignor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from holdfast.coordinator.model.ids import MemberId, TopicName, TopicPartitions
from holdfast.coordinator.model.member_profile import GroupSpec, MemberSpec

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["Assignor", "GroupSpec", "MemberSpec", "Target"]

Target: TypeAlias = Mapping[MemberId, tuple[TopicPartitions, ...]]
"""Every member, with each topic once, topics sorted by name, partitions in rising order."""

Assignor: TypeAlias = Callable[[GroupSpec, Mapping[TopicName, int]], Target]
"""From a group and the partition counts of all topics that exist to the new target."""


def subscribers_by_topic(
    walk: Sequence[MemberId],
    members: Mapping[MemberId, MemberSpec],
    counts: Mapping[TopicName, int],
) -> dict[TopicName, list[MemberId]]:
    """Return each subscribed topic that exists, sorted by name, with its subscribers as walked."""
    subscribers: dict[TopicName, list[MemberId]] = {}
    for member_id in walk:
        for topic in members[member_id].topics:
            if topic in subscribers:
                subscribers[topic].append(member_id)
            elif topic in counts:
                subscribers[topic] = [member_id]
    return dict(sorted(subscribers.items()))


def as_walked_by_range(members: Mapping[MemberId, MemberSpec]) -> list[MemberId]:
    """Sort static members by instance id, then dynamic ones by member id (K-P12).

    A static member keeps its place when it returns under a new member id.
    """

    def place(member_id: MemberId) -> tuple[int, bytes, bytes]:
        instance_id = members[member_id].instance_id
        if instance_id is None:
            return (1, utf16(member_id), b"")
        return (0, utf16(instance_id), utf16(member_id))

    return sorted(members, key=place)


def utf16(text: str) -> bytes:
    """Encode a text so that it sorts as in Java, by UTF-16 code units instead of code points."""
    return text.encode("utf-16-be", "surrogatepass")


_BUCKETS = 16
"""The size of a new HashMap in Java; up to 12 keys it does not grow."""


def as_walked_by_uniform(members: Mapping[MemberId, MemberSpec]) -> list[MemberId]:
    """Sort members as Kafka's uniform assignor meets them: by bucket of a Java hash map.

    The order decides who gets one partition more than others (K-P13), and in Kafka it is a
    function of the member ids, too. Kafka's map grows beyond 12 members, which reorders it and
    moves partitions for no reason; this one does not grow, so a member that comes or goes leaves
    the others' order as it is. Within a bucket members are sorted by id.
    """
    return sorted(members, key=_bucket_and_id)


def _bucket_and_id(member_id: MemberId) -> tuple[int, bytes]:
    units = utf16(member_id)
    hashed = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        hashed = hashed * 31 + high * 256 + low & 0xFFFFFFFF
    return ((hashed ^ hashed >> 16) % _BUCKETS, units)
