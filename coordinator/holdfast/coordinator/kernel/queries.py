"""Reads of the state: groups, offsets, topics, settings. Pure views, no effects.

The server makes a read linearizable; here an answer is a function of the given state alone. Nothing
of the leader-local part is ever shown, so any node can answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.cluster.settings_catalogue import GROUP, REGISTRY
from holdfast.coordinator.consumer.targets import topics_digest
from holdfast.coordinator.kernel.group_types import type_of
from holdfast.coordinator.model.described import DescribedConsumerGroup, PreparedAssignment
from holdfast.coordinator.model.ids import TopicPartition
from holdfast.coordinator.model.rejections import (
    GroupIdNotFound,
    InvalidConfig,
    OtherGroupType,
    Rejection,
)
from holdfast.coordinator.model.state import DEAD, Group, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.coordinator.cluster.settings import InForce
    from holdfast.coordinator.groups.group_type import Fetcher
    from holdfast.coordinator.model.described import DescribedMember
    from holdfast.coordinator.model.events import TopicSize
    from holdfast.coordinator.model.ids import GroupId, MemberId, Principal, TopicName


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """One described group (K-K1 to K-K3). With an error the state is Dead and the rest is empty."""

    error: Rejection | None
    group_id: GroupId
    state: str = DEAD
    protocol_type: str = ""
    protocol_data: str = ""
    members: tuple[DescribedMember, ...] = ()
    generation: int = 0
    leader: MemberId = ""
    version: int = 0
    seq: int = 0
    state_since_ms: int = 0
    quarantined: str = ""
    """Why it is not served any more (S6); "" as a rule."""


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """One line of ListGroups."""

    group_id: GroupId
    protocol_type: str
    state: str
    group_type: str


@dataclass(frozen=True, slots=True)
class FetchedOffset:
    """The offset of one partition; -1 and no metadata if none is committed (K-J16)."""

    partition: TopicPartition
    offset: int = -1
    leader_epoch: int = -1
    metadata: str = ""
    committed_ms: int | None = None


def groups_to_clear(state: State) -> Iterator[GroupId]:
    """Yield the groups that still have members from before the last recovery (S13).

    Their removal is the first change that such a group gets after it.
    """
    for group_id, group in state.groups.items():
        if group.version < state.recovered_at and type_of(group).members(group):
            yield group_id


def newest_topic(state: State) -> int:
    """Return when the newest topic was created; 0 if there is none (K-P8)."""
    return topics_digest.newest_index(state.topics)


def describe_group(state: State, group_id: GroupId) -> DescribedGroup:
    """Describe a group and its members, oldest first; unknown: GroupIdNotFound and Dead (K-K3)."""
    found = describe_head(state, group_id)
    group = state.groups.get(group_id)
    if group is None or found.error is not None:
        return found
    kind = type_of(group)
    show = kind.describe_member
    members = sorted(kind.members(group).values(), key=kind.seniority)
    return replace(found, members=tuple([show(state, group, m) for m in members if show]))


def describe_consumer_group(state: State, group_id: GroupId) -> DescribedConsumerGroup:
    """Describe a group of the heartbeat protocol; of another type it is unknown (K-K5, K-K6)."""
    group = state.groups.get(group_id)
    show = None if group is None else type_of(group).describe_whole
    if group is None:
        return DescribedConsumerGroup(GroupIdNotFound(group_id), group_id)
    if show is None:
        other = "it is of the classic protocol. Ask with DescribeGroups"
        return DescribedConsumerGroup(OtherGroupType(group_id, other), group_id)
    return show(state, group)


def prepare_assignment(
    state: State, group_id: GroupId, member_id: MemberId, epoch: int, principal: Principal
) -> PreparedAssignment | Rejection:
    """Return what the chosen member of a group needs to compute its target (KIP-848)."""
    group = state.groups.get(group_id)
    prepare = None if group is None else type_of(group).prepare
    if group is None or prepare is None:
        return GroupIdNotFound(group_id)
    return prepare(state, group, member_id, epoch, principal)


def describe_head(state: State, group_id: GroupId) -> DescribedGroup:
    """Describe a group without its members, of which there may be many."""
    group = state.groups.get(group_id)
    if group is None:
        return DescribedGroup(GroupIdNotFound(group_id), group_id)
    if type_of(group).describe_member is None:
        other = "it is of the heartbeat protocol. Ask with ConsumerGroupDescribe"
        return DescribedGroup(OtherGroupType(group_id, other), group_id)
    shown = type_of(group).describe(group)
    return DescribedGroup(
        error=None,
        group_id=group_id,
        state=group.state,
        protocol_type=shown.protocol_type,
        protocol_data=shown.protocol_data,
        generation=group.generation,
        leader=shown.leader,
        version=group.version,
        seq=group.seq,
        state_since_ms=group.state_since_ms,
        quarantined=group.quarantined,
    )


def list_groups(
    state: State, states: Iterable[str] = (), types: Iterable[str] = ()
) -> tuple[ListedGroup, ...]:
    """List groups by id. No filter: all. Case is ignored; an unknown name fits nothing (K-K8)."""
    wanted = Wanted.of(states, types)
    found = (list_group(group) for group in state.groups.values() if wanted.takes(group))
    return tuple(sorted(found, key=lambda listed: listed.group_id))


def list_group(group: Group[Any]) -> ListedGroup:
    """Return the line of one group."""
    kind = type_of(group).describe(group).protocol_type
    return ListedGroup(group.group_id, kind, group.state, group.group_type)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The filters of a list of groups (K-K8): words in lower case; none: all."""

    states: frozenset[str]
    types: frozenset[str]

    @classmethod
    def of(cls, states: Iterable[str], types: Iterable[str]) -> Wanted:
        """Make the filters, which ignore case; an unknown name fits nothing."""
        return cls(frozenset(map(str.casefold, states)), frozenset(map(str.casefold, types)))

    def takes(self, group: Group[Any]) -> bool:
        """Return whether the group fits the filters."""
        return (not self.states or group.state.casefold() in self.states) and (
            not self.types or group.group_type.casefold() in self.types
        )


def fetch_refusal(state: State, group_id: GroupId, fetcher: Fetcher) -> Rejection | None:
    """Say why a caller may not read a group's offsets: its type decides.

    A group that does not exist refuses no caller (K-J16).
    """
    group = state.groups.get(group_id)
    return None if group is None else type_of(group).may_fetch(group, fetcher)


def fetch_offsets(
    state: State, group_id: GroupId, partitions: tuple[TopicPartition, ...] = ()
) -> tuple[FetchedOffset, ...]:
    """Return offsets of the given partitions, in their order; none given: all, sorted.

    An unknown group is no error (K-J16, K-J19); `fetch_refusal` says whether the caller may read.
    Offsets of a deleted topic are not shown, though they may still be stored (K-J34).
    """
    group = state.groups.get(group_id)
    if not partitions:
        partitions = tuple(sorted(committed(state, group)))
    return tuple(fetch_offset(state, group, partition) for partition in partitions)


def committed(state: State, group: Group[Any] | None) -> Iterator[TopicPartition]:
    """Yield the partitions that the group has offsets of, in no order."""
    if group is not None:
        yield from (place for place in group.offsets if place.topic in state.topics)


def fetch_offset(
    state: State, group: Group[Any] | None, partition: TopicPartition
) -> FetchedOffset:
    """Return one offset, as `fetch_offsets` does."""
    found = group.offsets.get(partition) if group else None
    if found is None or partition.topic not in state.topics:
        return FetchedOffset(partition)
    return FetchedOffset(
        partition, found.offset, found.leader_epoch, found.metadata, found.committed_ms
    )


def list_topics(state: State, names: Iterable[TopicName] = ()) -> tuple[TopicSize, ...]:
    """List topics by name; of those named, the ones that exist. No name: all."""
    wanted = set(names)
    found = (size for name, size in state.topics.items() if not wanted or name in wanted)
    return tuple(sorted(found))


def describe_settings(
    state: State, group_id: GroupId = "", names: Iterable[str] = ()
) -> tuple[InForce, ...] | InvalidConfig:
    """Return a group's settings in force ("": the cluster's); InvalidConfig for an unknown name.

    They are sorted by name. For a group: those that can be set for one. No name: all.
    """
    wanted = sorted(set(names)) or sorted(
        name for name, setting in REGISTRY.items() if not group_id or setting.scope == GROUP
    )
    unknown = next((name for name in wanted if name not in REGISTRY), None)
    if unknown is not None:
        return InvalidConfig(unknown, settings.no_such(unknown))
    return tuple(settings.in_force(state.settings, group_id, name) for name in wanted)
