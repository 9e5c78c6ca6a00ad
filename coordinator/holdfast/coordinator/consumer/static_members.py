"""Static members: who may take an instance, its swap, and its place kept (K-N1 to K-N23, K-H4).

A member id never changes its instance id, so an identity has one life.
"""

from __future__ import annotations

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.consumer import answers, identity, sessions
from holdfast.coordinator.consumer.state import ConsumerGroup, Member
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.model.commands import ConsumerGroupHeartbeat
from holdfast.coordinator.model.events import InstanceReleased, StaticMemberReplaced
from holdfast.coordinator.model.member_profile import MemberProfile
from holdfast.coordinator.model.rejections import (
    GroupMaxSizeReached,
    InvalidRequest,
    Rejection,
)
from holdfast.coordinator.model.volatile import REBALANCE, DeadlineKey


def may_join(draft: Draft, command: ConsumerGroupHeartbeat) -> Rejection | None:
    """Say why a caller may not join, or join again, with these ids."""
    group: ConsumerGroup | None = draft.found
    if group is None:
        return None
    known = group.body.members.get(command.member_id)
    holder = _holder(group, command)
    if known is not None and command.instance_id not in {None, known.instance_id}:
        problem = f"member {command.member_id!r} is {known.instance_id!r}, and stays it"
        return InvalidRequest("instance_id", problem)  # K-H4
    if holder is not None:
        # K-N11, K-N12; a full group takes an instance that returns: K-N20, K-N21
        return None if holder.released else identity.unreleased(group, str(holder.instance_id))
    return None if known is not None else _full(draft, len(group.body.members))  # K-M8, K-N22


def _full(draft: Draft, members: int) -> GroupMaxSizeReached | None:
    most = settings.of(draft.state, draft.group_id).consumer.max_size
    return GroupMaxSizeReached(most) if members >= most else None


def _holder(group: ConsumerGroup, command: ConsumerGroupHeartbeat) -> Member | None:
    """Return the member that holds the instance that the caller names."""
    held = group.body.instances.get(command.instance_id or "")
    return None if held is None else group.body.members[held]


def swap(draft: Draft, command: ConsumerGroupHeartbeat) -> None:
    """Put a new process into the place of one that released it, if the caller is one (K-N6).

    A process that returns with its own id (K-N7) is the member that it was.
    """
    old = _holder(draft.group, command)
    if old is None or old.member_id == command.member_id:
        return
    timeout_ms = command.rebalance_timeout_ms
    profile = MemberProfile(
        command.caller.client_id,
        command.caller.client_host,
        0,
        old.profile.rebalance_timeout_ms if timeout_ms is None else timeout_ms,
        (),
    )
    draft.emit(
        StaticMemberReplaced(
            str(old.instance_id),
            old.member_id,
            command.member_id,
            profile,
            command.caller.request_id,
            predecessor_ms=0,
        ),
        "N6",
    )
    sessions.forget(draft, old.member_id)


def release(draft: Draft, command: ConsumerGroupHeartbeat) -> None:
    """Keep the place of a static member whose process stops (K-N2).

    Its session is not started over: it ends when it would have ended (K-N3).
    """
    member: Member = draft.group.body.members[command.member_id]
    if not member.released:
        draft.emit(InstanceReleased(str(member.instance_id), member.member_id), "N2")
        draft.cancel(DeadlineKey(REBALANCE, member.member_id))  # K-N23
    draft.answer(command.caller.call, answers.gone(command))
