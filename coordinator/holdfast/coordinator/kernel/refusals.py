"""The refusal of a whole call, in the form in which each call is answered. No rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from holdfast.coordinator.classic import answers
from holdfast.coordinator.cluster import requests
from holdfast.coordinator.model.commands import Heartbeat, JoinGroup, SyncGroup
from holdfast.coordinator.model.replies import HeartbeatReply, SyncReply

if TYPE_CHECKING:
    from holdfast.coordinator.model.rejections import Rejection
    from holdfast.coordinator.model.replies import Reply

Asked: TypeAlias = JoinGroup | SyncGroup | Heartbeat | requests.OneShot
"""Commands that somebody waits for."""


def of_call(command: Asked, error: Rejection) -> Reply:
    """The answer of a call that is refused whole."""
    match command:
        case JoinGroup(member_id=member_id):
            return answers.refused_join(error, member_id)
        case SyncGroup():
            return SyncReply(error)
        case Heartbeat():
            return HeartbeatReply(error)
        case _:
            return requests.refusal(command, error)
