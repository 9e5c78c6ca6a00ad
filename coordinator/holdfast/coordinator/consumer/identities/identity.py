"""Who a call comes from: checks of member id, instance id and epoch, in Kafka's order."""

from __future__ import annotations

from holdfast.coordinator.consumer import holdings
from holdfast.coordinator.consumer.state import ConsumerGroup, Member
from holdfast.coordinator.groups import principals
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.model.ids import InstanceId, MemberId, Principal, TopicPartitions
from holdfast.coordinator.model.rejections import (
    FencedInstanceId,
    FencedMemberEpoch,
    InstanceForbidden,
    Rejection,
    UnknownMemberId,
    UnreleasedInstanceId,
)
from holdfast.coordinator.model.state import State


def check(
    group: ConsumerGroup, member_id: MemberId, instance_id: InstanceId | None
) -> Rejection | None:
    """Check that `member_id` is a member, and holds `instance_id` if one is named.

    The instance is looked at first (K-N14 to K-N16).
    """
    if instance_id is not None:
        holder = group.body.instances.get(instance_id)
        if holder is None:
            return UnknownMemberId(member_id)
        if holder != member_id:
            return fenced(group, instance_id)
    return None if member_id in group.body.members else UnknownMemberId(member_id)


def check_running(
    group: ConsumerGroup, member_id: MemberId, instance_id: InstanceId | None
) -> Rejection | None:
    """Check as `check` does, and that the member's process has not said that it stops (S12)."""
    error = check(group, member_id, instance_id)
    if error is None and group.body.members[member_id].released:
        return UnknownMemberId(member_id) if instance_id is None else fenced(group, instance_id)
    return error


def check_epoch(
    draft: Draft, member: Member, epoch: int, owned: tuple[TopicPartitions, ...] | None
) -> FencedMemberEpoch | None:
    """Check that a heartbeat speaks of the member's epoch (K-M10 to K-M12, K-N10, K-N18).

    It may speak of the one before, if it owns nothing that it was not given: the answer that told
    the new one was lost.
    """
    if epoch == member.epoch:
        return None
    confirmed = draft.volatile.confirmed.get(member.member_id) == member.epoch
    lost = epoch == member.previous_epoch and epoch < member.epoch and not confirmed
    if lost and owned is not None and holdings.pairs(owned) <= holdings.pairs(member.owned):
        return None
    return FencedMemberEpoch(epoch, member.epoch)


def fenced(group: ConsumerGroup, instance_id: InstanceId) -> FencedInstanceId:
    """Return the refusal of an older holder; it names the present one, and what it is above."""
    holder = _holder(group, instance_id)
    name, life = holder.profile.client_id, holder.life or holder.replaced_life
    return FencedInstanceId(instance_id, holder.member_id, name, holder.since_ms, life)


def unreleased(
    group: ConsumerGroup, instance_id: InstanceId, *, waited_for: bool = False
) -> UnreleasedInstanceId:
    """Return the refusal of a newcomer while the instance is in use; it names the holder."""
    holder = _holder(group, instance_id)
    name = holder.profile.client_id
    return UnreleasedInstanceId(instance_id, holder.member_id, name, holder.since_ms, waited_for)


def of_another(
    state: State, group: ConsumerGroup | None, instance_id: InstanceId | None, principal: Principal
) -> InstanceForbidden | None:
    """Refuse an instance id that belongs to another principal, as in the classic protocol."""
    if group is None or instance_id is None or instance_id not in group.body.instances:
        return None
    owner = _holder(group, instance_id).principal
    return principals.of_another(state, group.group_id, instance_id, owner, principal)


def _holder(group: ConsumerGroup, instance_id: InstanceId) -> Member:
    return group.body.members[group.body.instances[instance_id]]
