"""Calls of the classic protocol to a group of the heartbeat protocol (K-Q6, K-Q11)."""

from __future__ import annotations

from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.model.commands import Heartbeat, JoinGroup, SyncGroup
from holdfast.coordinator.model.rejections import (
    InconsistentGroupProtocol,
    Rejection,
    UnknownMemberId,
)
from holdfast.coordinator.model.replies import HeartbeatReply, JoinReply, Reply, SyncReply


def answer(draft: Draft, command: JoinGroup | SyncGroup | Heartbeat) -> None:
    """Refuse a call: nobody here speaks the classic protocol."""
    draft.answer(command.caller.call, refused(command, _refusal(command)))


def _refusal(command: JoinGroup | SyncGroup | Heartbeat) -> Rejection:
    if isinstance(command, JoinGroup):
        return InconsistentGroupProtocol("the members of the group speak the heartbeat protocol")
    return UnknownMemberId(command.member_id)


def refused(command: JoinGroup | SyncGroup | Heartbeat, error: Rejection) -> Reply:
    """Return the answer to a call that is refused."""
    match command:
        case JoinGroup(member_id=member_id):
            return JoinReply(error, member_id=member_id)
        case SyncGroup():
            return SyncReply(error)
        case Heartbeat():
            return HeartbeatReply(error)
