"""How answers are built from the state; nothing is decided here."""

from __future__ import annotations

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.consumer import holdings, sessions
from holdfast.coordinator.consumer.client_side import choice
from holdfast.coordinator.consumer.state import FIRST_EPOCH, JOINING, ConsumerBody, Member
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.model.commands import ConsumerGroupHeartbeat
from holdfast.coordinator.model.ids import UNCOMMITTED, fencing_token
from holdfast.coordinator.model.rejections import Rejection
from holdfast.coordinator.model.replies import (
    AssignedMetadata,
    ConsumerHeartbeatReply,
    Grant,
    OwnedPartition,
)
from holdfast.coordinator.model.state import State


def refused(error: Rejection, kept_ms: int = 0) -> ConsumerHeartbeatReply:
    """Return an error answer: it says nothing else, but for how long an instance in use is kept."""
    return ConsumerHeartbeatReply(error, grant=Grant(0, kept_ms))


def gone(command: ConsumerGroupHeartbeat) -> ConsumerHeartbeatReply:
    """Return the answer to a leave, for good or for a while."""
    return ConsumerHeartbeatReply(None, command.member_id, command.member_epoch)


def beat(
    draft: Draft, command: ConsumerGroupHeartbeat, before: Member | None
) -> ConsumerHeartbeatReply:
    """Return the answer to an accepted heartbeat; `before`: the member as it was before it.

    It assigns when the member joins, says everything, or is to own something else (K-M13 to K-M15).
    """
    in_force = settings.of(draft.state, draft.group_id).consumer
    member: Member = draft.group.body.members[command.member_id]
    told = _is_full(command) or before is None or _others(before, member)
    told = told or _is_new_to(draft.group.body, before, member)
    return ConsumerHeartbeatReply(
        None,
        member.member_id,
        member.epoch,
        in_force.heartbeat_interval_ms,
        owned(draft.state, member) if told else None,
        Grant(
            0,
            min(in_force.session_timeout_ms, sessions.timeout_ms(draft, member)),  # S11
            member.profile.rebalance_timeout_ms,
            predecessor_ms(draft, member) if told else 0,
        ),
        choice.should_compute(draft.group, member.member_id),
        _assigned(draft.group.body, member) if told else None,
    )


def _is_new_to(body: ConsumerBody, before: Member | None, member: Member) -> bool:
    """Return whether a member has come to a target of which its own assignor has to be told."""
    if before is None or not member.profile.client_assignors:
        return False
    return before.epoch < member.epoch == body.assignment_epoch


def _assigned(body: ConsumerBody, member: Member) -> AssignedMetadata | None:
    """Return what the assignor of the target says to a member that has come to the target."""
    if not member.profile.client_assignors or member.epoch != body.assignment_epoch:
        return None
    if body.assignment_epoch == FIRST_EPOCH:
        return None  # there was no target yet
    target = body.targets.get(member.member_id)
    if target is None or not body.client_assignor:
        return AssignedMetadata(body.client_assignor)
    return AssignedMetadata(body.client_assignor, target.version, target.metadata)


def predecessor_ms(draft: Draft, member: Member) -> int:
    """Return how long older holders may still act on what the member was granted last (S12).

    It runs from when they went: a later answer tells less, and none at all in the end.
    """
    until_ms: int = draft.group.body.predecessors_until_ms
    return max(0, min(member.predecessor_ms, until_ms - draft.state.log_time_ms))


def _is_full(command: ConsumerGroupHeartbeat) -> bool:
    """Return whether a heartbeat says all that a member can say (K-M14)."""
    wants = command.topics is not None or command.regex is not None
    full = wants and command.rebalance_timeout_ms is not None and command.owned is not None
    return command.member_epoch == JOINING or full


def _others(before: Member, after: Member) -> bool:
    """Return whether a member is to own other partitions than before."""
    return before.owned is not after.owned and holdings.listed(before.owned) != holdings.listed(
        after.owned
    )


def owned(state: State, member: Member) -> tuple[OwnedPartition, ...]:
    """Return what a member owns, with the token of each partition (S13).

    The token of a grant that is not committed yet is `UNCOMMITTED`; `effects.settled` fills it in.
    """
    return tuple(
        OwnedPartition(each.topic, number, token(state, index))
        for each in member.owned
        for number, index in zip(each.partitions, each.granted, strict=True)
    )


def token(state: State, index: int) -> int:
    """Return the fencing token of a grant by the entry at `index` (S13)."""
    return index if index == UNCOMMITTED else fencing_token(state.recovery_number, index)
