"""Who may commit and read offsets of a group of the heartbeat protocol (K-J35 to K-J42)."""

from __future__ import annotations

from holdfast.coordinator.consumer import holdings
from holdfast.coordinator.consumer.state import ConsumerGroup, Member
from holdfast.coordinator.groups.group_type import Fetcher
from holdfast.coordinator.model.commands import CommitOffsets
from holdfast.coordinator.model.events import OffsetCommitted
from holdfast.coordinator.model.rejections import (
    IllegalGeneration,
    Rejection,
    StaleMemberEpoch,
    UnknownMemberId,
)
from holdfast.coordinator.model.state import State


def may_commit(state: State, group: ConsumerGroup, command: CommitOffsets) -> Rejection | None:
    """Say why this caller may not commit to this group now; all of the commit fails, or nothing.

    The instance id is never looked at (K-J36).
    """
    body, epoch = group.body, command.generation
    if epoch < 0 and not body.members:
        return None  # K-J35
    member = body.members.get(command.member_id)
    if member is None:
        return UnknownMemberId(command.member_id)  # K-J36
    if epoch == member.epoch or (epoch < member.epoch and _kept(state, member, command)):
        return None  # K-J39
    if member.classic is not None:
        return IllegalGeneration(epoch, member.epoch)  # the word of its protocol for it
    return StaleMemberEpoch(epoch, member.epoch)  # K-J38, K-J40


def _kept(state: State, member: Member, command: CommitOffsets) -> bool:
    """Return whether the member has owned all of these since the epoch that it speaks of.

    What it was asked to give up counts; partitions that do not exist are refused by themselves.
    """
    grants = holdings.grants((*member.owned, *member.revoking))
    places = [(each.topic, each.partition) for each in command.offsets if _exists(state, each)]
    return all(
        place in grants and grants[place][0] <= command.generation
        for place in places
        if place[0] not in command.forbidden
    )


def _exists(state: State, place: OffsetCommitted) -> bool:
    size = state.topics.get(place.topic)
    return size is not None and 0 <= place.partition < size.num_partitions


def may_fetch(group: ConsumerGroup, fetcher: Fetcher) -> Rejection | None:
    """Say why this caller may not read offsets (K-J42): an onlooker always may."""
    if fetcher.member_id is None and fetcher.member_epoch < 0:
        return None
    member_id = fetcher.member_id or ""
    member = group.body.members.get(member_id)
    if member is None:
        return UnknownMemberId(member_id)
    if fetcher.member_epoch != member.epoch:
        return StaleMemberEpoch(fetcher.member_epoch, member.epoch)
    return None
