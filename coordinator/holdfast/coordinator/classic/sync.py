"""SyncGroup: takes the leader's assignment, gives each member its share (K-E1 to K-E10)."""

from __future__ import annotations

from holdfast.coordinator.classic import answers, identity, parked_calls, validation
from holdfast.coordinator.classic.state import ClassicGroup
from holdfast.coordinator.classic.transitions import PREPARING
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.groups.lifecycle import invalid_group_id
from holdfast.coordinator.model.commands import SyncGroup
from holdfast.coordinator.model.events import Assigned, AssignmentStored
from holdfast.coordinator.model.ids import MemberId
from holdfast.coordinator.model.rejections import (
    IllegalGeneration,
    InconsistentGroupProtocol,
    RebalanceInProgress,
    Rejection,
)
from holdfast.coordinator.model.replies import SyncReply
from holdfast.coordinator.model.state import STABLE
from holdfast.coordinator.model.volatile import SYNC, DeadlineKey


def sync(draft: Draft, command: SyncGroup) -> None:
    """Answer or park a sync."""
    refusal = _refusal(draft, command)
    if refusal is not None:
        draft.answer(command.caller.call, SyncReply(refusal))
        return
    member_id = command.member_id
    _synced(draft, member_id)
    group = draft.group
    if group.state == STABLE:
        member = group.body.members[member_id]
        draft.answer(command.caller.call, answers.synced(draft.state, group, member))  # K-E7
        draft.renew(member_id)
        return
    parked_calls.park_sync(draft, command.caller, member_id)
    if group.body.is_leader(member_id):
        _store(draft, command)


def _refusal(draft: Draft, command: SyncGroup) -> Rejection | None:
    if command.protocol_type is None or command.protocol_name is None:  # K-E8 as a broker has it
        return InconsistentGroupProtocol("protocol_type and protocol_name are needed")
    group = draft.found
    error = invalid_group_id(command.group_id) or identity.check(
        group, command.member_id, command.instance_id
    )
    error = error or _of_another(draft, command)
    if error is not None or group is None:
        return error
    if command.generation != group.generation:
        return IllegalGeneration(command.generation, group.generation)
    if not _agrees(group, command):
        current = f"{group.body.protocol_type!r}, {group.body.protocol_name!r}"
        return InconsistentGroupProtocol(f"the group has protocol type and name {current}")
    if group.state == PREPARING:
        return RebalanceInProgress()
    leads = group.state != STABLE and group.body.is_leader(command.member_id)
    return validation.of_assignments(draft, command) if leads else None


def _of_another(draft: Draft, command: SyncGroup) -> Rejection | None:
    """Refuse a sync as a static member of another principal: it would take that one's place."""
    meant = identity.instance_meant(draft.found, command.member_id, command.instance_id)
    return identity.of_another(draft.state, draft.found, meant, command.caller.principal)


def _agrees(group: ClassicGroup, command: SyncGroup) -> bool:
    """Return whether the caller names the group's protocol (K-E8, K-E9), if there is one yet."""
    chosen = (None, command.protocol_name)
    return command.protocol_type == group.body.protocol_type and group.body.protocol_name in chosen


def _synced(draft: Draft, member_id: MemberId) -> None:
    """Note that a member has synced; the timer ends with the last one that must (K-E13)."""
    awaiting = draft.volatile.awaiting_sync
    if member_id not in awaiting:
        return
    awaiting = awaiting.remove(member_id)
    draft.volatile = draft.volatile._replace(awaiting_sync=awaiting)
    if not awaiting:
        draft.cancel(DeadlineKey(SYNC))


def _store(draft: Draft, command: SyncGroup) -> None:
    """Store the assignment: members left out get nothing, strangers are dropped (K-E5)."""
    group = draft.group
    given = {
        each.member_id: each for each in command.assignments if each.member_id in group.body.members
    }
    ordered: tuple[Assigned, ...] = tuple(given.values())
    draft.emit(AssignmentStored(group.generation, ordered), "E5")
    group = draft.group
    for member_id in tuple(draft.volatile.syncs):
        parked = parked_calls.take_sync(draft, member_id)
        if parked is not None:
            member = group.body.members[member_id]
            draft.answer(parked.call, answers.synced(draft.state, group, member))
            draft.arm_session(member_id)
