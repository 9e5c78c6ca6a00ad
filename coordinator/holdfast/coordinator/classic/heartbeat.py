"""Heartbeat: renews sessions, and announces a planned restart (K-F1 to K-F7, S12)."""

from __future__ import annotations

from holdfast.coordinator.classic import answers, identity, parked_calls
from holdfast.coordinator.classic.state import Member
from holdfast.coordinator.classic.transitions import PREPARING
from holdfast.coordinator.groups import releases
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.groups.lifecycle import invalid_group_id
from holdfast.coordinator.model.commands import Heartbeat
from holdfast.coordinator.model.rejections import (
    IllegalGeneration,
    RebalanceInProgress,
    Rejection,
)
from holdfast.coordinator.model.replies import HeartbeatReply
from holdfast.coordinator.model.volatile import SYNC, DeadlineKey


def heartbeat(draft: Draft, command: Heartbeat) -> None:
    """Answer a heartbeat; only a release writes to the log."""
    group = draft.found
    error: Rejection | None = invalid_group_id(command.group_id) or identity.check(
        group, command.member_id, command.instance_id
    )
    if error is not None or group is None:
        draft.answer(command.caller.call, HeartbeatReply(error))
        return
    member = group.body.members[command.member_id]
    if command.release:
        _release(draft, command, member)
        return
    if command.generation != group.generation:
        error = IllegalGeneration(command.generation, group.generation)
        draft.answer(command.caller.call, HeartbeatReply(error))
        return
    error = RebalanceInProgress() if group.state == PREPARING else None  # K-F5
    grant = answers.grant(draft.state, member)
    draft.answer(command.caller.call, HeartbeatReply(error, grant))
    draft.renew(member.member_id)


def _release(draft: Draft, command: Heartbeat, member: Member) -> None:
    """Release a static member before a planned restart (S12).

    Its parked calls end, and its sync is not waited for, unless it leads: then only the timeout
    decides (K-E11).
    """
    error = releases.refusal(member) or identity.of_another(
        draft.state, draft.found, member.instance_id, command.caller.principal
    )
    if error is not None:
        draft.answer(command.caller.call, HeartbeatReply(error))
        return
    releases.release(draft, member)
    _wait_no_more(draft, member)
    grant = answers.grant(draft.state, draft.group.body.members[member.member_id])
    draft.answer(command.caller.call, HeartbeatReply(None, grant))


def _wait_no_more(draft: Draft, member: Member) -> None:
    """End the parked calls of a member that was released, and do not wait for its sync."""
    fenced = identity.fenced(draft.group, str(member.instance_id))
    parked_calls.refuse(draft, member.member_id, fenced, member.member_id)
    awaiting = draft.volatile.awaiting_sync
    if member.member_id in awaiting and not draft.group.body.is_leader(member.member_id):
        awaiting = awaiting.remove(member.member_id)
        draft.volatile = draft.volatile._replace(awaiting_sync=awaiting)
        if not awaiting:
            draft.cancel(DeadlineKey(SYNC))
