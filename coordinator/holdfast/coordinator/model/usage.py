"""What a cluster's state takes up: counts, and about how many bytes of a node's memory.

`of` counts anew; `difference` tells what lies between two states, in time that follows the
difference. The bytes are about what a leading node holds for each thing, with its share of the
persistent maps, measured in CPython; texts are counted as they are, or four bytes a sign where they
are not ASCII. Nothing here is replicated, and no answer depends on an exact number. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from holdfast.coordinator.model.events import TopicSize
    from holdfast.coordinator.model.ids import GroupId, TopicPartition
    from holdfast.coordinator.model.member_profile import Protocol
    from holdfast.coordinator.model.pmap import PMap
    from holdfast.coordinator.model.state import (
        Group,
        Member,
        Offset,
        RequestKey,
        RequestRecord,
        State,
    )

K = TypeVar("K")
V = TypeVar("V")

GROUP_BYTES: Final = 2_000
MEMBER_BYTES: Final = 3_000
"""With its ids and those of the processes it replaced, so that a restart is no growth."""
PENDING_BYTES: Final = 1_300
"""A member id that was handed out and not used yet; it is leader-local."""
PROTOCOL_BYTES: Final = 150
REBALANCE_BYTES: Final = 2_000
"""One that people are told of, with its lists, as it is in small groups.

Rebalances are kept by a projection, which the state does not know and on which nothing may depend.
So each generation counts as one rebalance, up to as many as are kept: never fewer than have ended.
"""
REBALANCES_MAX: Final = 10
"""Rebalances of a group that are kept."""
LISTED_BYTES: Final = 100
"""One name in a list, beside its text."""
OFFSET_BYTES: Final = 350
TOPIC_BYTES: Final = 400
REQUEST_BYTES: Final = 1_200
SETTING_BYTES: Final = 400
_SIGN_BYTES_MAX: Final = 4


class Usage(NamedTuple):
    """How many there are, and about how many bytes of memory they take; or a difference of that."""

    groups: int = 0
    topics: int = 0
    partitions: int = 0
    members: int = 0
    state_bytes: int = 0

    def plus(self, other: Usage) -> Usage:
        """Both together."""
        return Usage(
            self.groups + other.groups,
            self.topics + other.topics,
            self.partitions + other.partitions,
            self.members + other.members,
            self.state_bytes + other.state_bytes,
        )

    def minus(self, other: Usage) -> Usage:
        """What is left without the other."""
        return Usage(
            self.groups - other.groups,
            self.topics - other.topics,
            self.partitions - other.partitions,
            self.members - other.members,
            self.state_bytes - other.state_bytes,
        )


NOTHING: Final = Usage()


def of(state: State) -> Usage:
    """Count everything in a state."""
    groups = state.groups.values()
    size = sum(_weight_of_group(group) for group in groups)
    size += sum(_offset(*each) for group in groups for each in group.offsets.items())
    size += sum(_member(member) for group in groups for member in group.members.values())
    size += sum(_request(*each) for each in state.requests.items())
    size += sum(_topic(*each) for each in state.topics.items())
    size += sum(_settings(*each) for each in state.settings.groups.items())
    return Usage(
        groups=len(state.groups),
        topics=len(state.topics),
        partitions=sum(topic.num_partitions for topic in state.topics.values()),
        members=sum(len(group.members) for group in groups),
        state_bytes=size,
    )


def difference(before: State, after: State, group_id: GroupId | None = None) -> Usage:
    """What `after` takes up more than `before`; costs what changed, if one came from the other.

    `group_id`: the only group that differs, if that is known.
    """
    if before is after:
        return NOTHING
    members, size = 0, 0
    changed = after.groups.changed_since(before.groups) if group_id is None else (group_id,)
    for name in changed:
        old, new = before.groups.get(name), after.groups.get(name)
        members += (len(new.members) if new else 0) - (len(old.members) if old else 0)
        size += _of_group(old, new)
    size += _grown(before.requests, after.requests, _request)
    size += _grown(before.topics, after.topics, _topic)
    size += _grown(before.settings.groups, after.settings.groups, _settings)
    return Usage(
        groups=len(after.groups) - len(before.groups),
        topics=len(after.topics) - len(before.topics),
        partitions=_grown(before.topics, after.topics, _partitions),
        members=members,
        state_bytes=size,
    )


def _of_group(old: Group | None, new: Group | None) -> int:
    if old is None or new is None:
        return (_whole(new) if new else 0) - (_whole(old) if old else 0)
    size = _grown(old.members, new.members, _named_member)
    size += _grown(old.offsets, new.offsets, _offset)
    if old.generation != new.generation:
        size += _weight_of_group(new) - _weight_of_group(old)
    return size


def _whole(group: Group) -> int:
    size = _weight_of_group(group) + sum(map(_member, group.members.values()))
    return size + sum(_offset(*each) for each in group.offsets.items())


def _grown(before: PMap[K, V], after: PMap[K, V], weigh: Callable[[K, V], int]) -> int:
    """What the entries of a map weigh more than those that they came from."""
    if before is after:
        return 0
    size = 0
    for key in after.changed_since(before):
        old, new = before.get(key), after.get(key)
        size += (0 if new is None else weigh(key, new)) - (0 if old is None else weigh(key, old))
    return size


# --- what one thing weighs ---


def _text(text: str) -> int:
    return len(text) if text.isascii() else _SIGN_BYTES_MAX * len(text)


def _texts(texts: Iterable[str]) -> int:
    return sum(LISTED_BYTES + _text(text) for text in texts)


def _weight_of_group(group: Group) -> int:
    """A group without its members and offsets."""
    told = min(group.generation, REBALANCES_MAX) * REBALANCE_BYTES
    return GROUP_BYTES + _text(group.group_id) + told


def _member(member: Member) -> int:
    held = len(member.assignment) + len(member.abandoned)
    return MEMBER_BYTES + held + of_protocols(member.profile.protocols)


def _named_member(_member_id: str, member: Member) -> int:
    return _member(member)


def of_protocols(protocols: tuple[Protocol, ...]) -> int:
    """What a member's protocols weigh."""
    return sum(
        PROTOCOL_BYTES + _text(each.name) + len(each.metadata) + _texts(each.topics or ())
        for each in protocols
    )


def _offset(place: TopicPartition, offset: Offset) -> int:
    return OFFSET_BYTES + _text(place.topic) + _text(offset.metadata)


def _request(key: RequestKey, record: RequestRecord) -> int:
    return REQUEST_BYTES + _text(key.principal) + _text(key.group_id) + len(record.answer)


def _topic(name: str, _topic_size: TopicSize) -> int:
    return TOPIC_BYTES + _text(name)


def _partitions(_name: str, topic: TopicSize) -> int:
    return topic.num_partitions


def _settings(group_id: GroupId, own: PMap[str, str]) -> int:
    return SETTING_BYTES * (1 + len(own)) + _text(group_id)
