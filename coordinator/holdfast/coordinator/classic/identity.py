"""The check of member id and instance id that all calls share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from holdfast.coordinator.classic.state import ClassicGroup
from holdfast.coordinator.groups import principals
from holdfast.coordinator.model.access import DENY
from holdfast.coordinator.model.ids import InstanceId, MemberId, Principal
from holdfast.coordinator.model.rejections import (
    FencedInstanceId,
    Rejection,
    UnknownMemberId,
)
from holdfast.coordinator.model.state import State

Check: TypeAlias = Callable[[ClassicGroup | None, MemberId, InstanceId | None], Rejection | None]


def check(
    group: ClassicGroup | None, member_id: MemberId, instance_id: InstanceId | None
) -> Rejection | None:
    """Check that `member_id` is a member and may act, as `instance_id` if one is named.

    A member id that was released is fenced like one that was replaced (S12).
    """
    error = named(group, member_id, instance_id)
    if error is None and group is not None and group.body.members[member_id].released:
        return UnknownMemberId(member_id) if instance_id is None else fenced(group, instance_id)
    return error


def named(
    group: ClassicGroup | None, member_id: MemberId, instance_id: InstanceId | None
) -> Rejection | None:
    """Check that `member_id` is a member, and holds `instance_id` if one is named.

    The instance map is read first (K-C2), a call without an instance id skips it (K-C6, K-C7).
    Enough for an operator, who calls about a member and not as it.
    """
    if group is None:
        return UnknownMemberId(member_id)
    if instance_id is not None:
        holder = group.body.instances.get(instance_id)
        if holder is None:
            return UnknownMemberId(member_id)
        if holder != member_id:
            return fenced(group, instance_id)
    return None if member_id in group.body.members else UnknownMemberId(member_id)


def of_another(
    state: State, group: ClassicGroup | None, instance_id: InstanceId | None, principal: Principal
) -> Rejection | None:
    """Refuse an instance id that belongs to another principal: its first, while its member exists.

    Only where grants decide what may be done. An administrator of the group may take it over.
    """
    if group is None or instance_id is None or state.access_mode != DENY:
        return None
    holder = group.body.instances.get(instance_id)
    owner = "" if holder is None else group.body.members[holder].principal
    return principals.of_another(state, group.group_id, instance_id, owner, principal)


def instance_meant(
    group: ClassicGroup | None, member_id: MemberId, instance_id: InstanceId | None
) -> InstanceId | None:
    """Return the instance id that a caller acts as: the one it names, else that of its member id.

    A call may leave the instance id out (K-C6), and acts as the static member all the same.
    """
    member = None if group is None else group.body.members.get(member_id)
    return member.instance_id if instance_id is None and member is not None else instance_id


def fenced(group: ClassicGroup, instance_id: InstanceId) -> FencedInstanceId:
    """Return the refusal of an older holder; it names the present one, so that twins are found."""
    holder = group.body.members[group.body.instances[instance_id]]
    return FencedInstanceId(
        instance_id, holder.member_id, holder.profile.client_id, holder.since_ms
    )
