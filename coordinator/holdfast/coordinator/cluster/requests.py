"""Repeated requests (S14, S15): a repetition gets the stored answer and has no effect.

One-shot effects only: leave, commit, administration. Joins, syncs and heartbeats are answered anew
from current state each time; a request id only finds their member. A call that changed nothing is
not recorded: repeated, it is decided again. Knows nothing of what the commands mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, TypeVar

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.cluster.request_ids import made_at_ms
from holdfast.coordinator.model import stored_replies
from holdfast.coordinator.model.commands import (
    AlterAcls,
    AlterRevocations,
    AlterSettings,
    CommitOffsets,
    CreatePartitions,
    CreateTopics,
    DeleteGroup,
    DeleteOffsets,
    DeleteTopics,
    InstallAssignment,
    LeaveGroup,
    OneShot,
    RaiseLevel,
    ReportBackup,
    SealLog,
    TriggerRebalance,
)
from holdfast.coordinator.model.events import RequestRecorded
from holdfast.coordinator.model.rejections import (
    InvalidRequest,
    Rejection,
    RequestIdReused,
    RequestTooOld,
)
from holdfast.coordinator.model.replies import (
    DoneReply,
    LeaveReply,
    NamedReply,
    NamedResult,
    OffsetsReply,
)
from holdfast.coordinator.model.state import RequestKey, RequestRecord

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.coordinator.groups.draft import Draft
    from holdfast.coordinator.model.commands import Caller
    from holdfast.coordinator.model.ids import GroupId
    from holdfast.coordinator.model.state import State
    from holdfast.coordinator.model.stored_replies import StoredReply

_Named: TypeAlias = CreateTopics | CreatePartitions | DeleteTopics | AlterSettings
_ClusterOneShot: TypeAlias = (
    _Named | RaiseLevel | ReportBackup | SealLog | AlterAcls | AlterRevocations
)

C = TypeVar("C", bound=OneShot)


def once(
    draft: Draft,
    command: C,
    rule: Callable[[Draft, C], StoredReply],
    heard: Callable[[Draft, C], None] | None = None,
) -> StoredReply:
    """Return the stored answer of a repeated request; else call `rule` and store its answer (S15).

    The record is the last event of the command, in the same part: either both are on the log or
    neither is. `heard` is called for a repetition, on this leader alone; it decides no event.
    """
    match _served(draft.state, command):
        case RequestRecord() as served:
            if heard is not None:
                heard(draft, command)
            return stored_replies.thaw(served.answer)
        case None:
            return _serve(draft, command, rule)
        case problem:
            return refusal(command, problem)


def _serve(draft: Draft, command: C, rule: Callable[[Draft, C], StoredReply]) -> StoredReply:
    caller = command.caller
    before = len(draft.proposed)
    reply = rule(draft, command)
    if caller.request_id and len(draft.proposed) > before:
        event = RequestRecorded(caller.request_id, caller.digest, stored_replies.freeze(reply))
        draft.emit(event, "S15")
    return reply


def group_of(command: OneShot) -> GroupId:
    """Return the group whose part of the log the command changes; "" for the cluster's own.

    A group's settings belong to the cluster's part, because they may be set before the group exists
    and outlive it.
    """
    return "" if isinstance(command, _ClusterOneShot) else command.group_id


def refusal(command: OneShot, rejection: Rejection) -> StoredReply:
    """Return the refusal of a whole call, in the form of the call's answer."""
    match command:
        case CommitOffsets() | DeleteOffsets():
            return OffsetsReply(rejection)
        case LeaveGroup():
            return LeaveReply(rejection)
        case TriggerRebalance() | InstallAssignment() | RaiseLevel() | ReportBackup():
            return DoneReply(rejection)
        case SealLog() | AlterAcls() | AlterRevocations():
            return DoneReply(rejection)
        case _:
            return NamedReply(tuple(NamedResult(name, rejection) for name in _names(command)))


def _names(command: DeleteGroup | _Named) -> tuple[str, ...]:
    match command:
        case DeleteGroup(group_id=group_id):
            return (group_id,)
        case CreateTopics(topics=topics) | CreatePartitions(topics=topics):
            return tuple(topic.name for topic in topics)
        case DeleteTopics(names=names):
            return names
        case AlterSettings(changes=changes):
            return tuple(change.key for change in changes)


def _served(state: State, command: OneShot) -> RequestRecord | Rejection | None:
    """Return the record of a served request, or why it is unknown or not for this caller.

    None: new.
    """
    caller = command.caller
    if not caller.request_id:
        return None
    served = state.requests.get(RequestKey(caller.principal, group_of(command), caller.request_id))
    if served is None:
        return _untellable(state, caller)
    return served if served.digest == caller.digest else RequestIdReused(caller.request_id)


def _untellable(state: State, caller: Caller) -> Rejection | None:
    """Say why it is unknown whether this request was served before; None if it surely was not."""
    made_ms = made_at_ms(caller.request_id)
    if made_ms is None:
        return InvalidRequest("holdfast.request_id", "is no UUIDv7; send one, or none")
    window_ms = settings.of_cluster(state).dedupe_window_ms
    if made_ms < state.log_time_ms - window_ms or made_ms <= state.requests_floor_ms:
        return RequestTooOld(caller.request_id, window_ms)
    return None
