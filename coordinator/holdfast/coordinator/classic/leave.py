"""Takes members out: they left, were removed by an operator, or were not heard in time.

Rules K-F9 to K-F11, K-G4 to K-G20, K-E10 to K-E12.
"""

from __future__ import annotations

from holdfast.coordinator.classic import identity, parked_calls, rebalance
from holdfast.coordinator.classic.join import drop_pending
from holdfast.coordinator.classic.state import ClassicGroup
from holdfast.coordinator.groups import removals
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.groups.lifecycle import invalid_group_id
from holdfast.coordinator.model.commands import LeaveGroup, LeavingMember, TriggerRebalance
from holdfast.coordinator.model.events import GroupEvent, MemberExpired, MembersLeft, MembersRemoved
from holdfast.coordinator.model.ids import MemberId
from holdfast.coordinator.model.rejections import (
    GroupIdNotFound,
    InvalidRequest,
    Rejection,
    UnknownMemberId,
)
from holdfast.coordinator.model.replies import DoneReply, LeaveReply, MemberResult
from holdfast.coordinator.model.volatile import SYNC

_REASON_MAX = 255


def leave(draft: Draft, command: LeaveGroup) -> LeaveReply:
    """Take members out, one rebalance for the whole list (K-G14); each entry has its own result."""
    error = invalid_group_id(command.group_id)
    if error is not None:
        return LeaveReply(error)
    going: dict[MemberId, bool] = {}  # in order, and whether its own id was named
    if command.everyone or command.prefix:
        members = draft.found.body.members.values() if draft.found else ()
        results = removals.unnamed(members, command, going)
    else:
        results = tuple(_leave_one(draft, command, entry, going) for entry in command.members)
    if going:
        reason = command.reason or next((e.reason for e in command.members if e.reason), "")
        _go(draft, command, going, reason[:_REASON_MAX])
    elif any(result.error is None for result in results):
        _pending_left(draft)
    return LeaveReply(None, results)


def _leave_one(
    draft: Draft, command: LeaveGroup, entry: LeavingMember, going: dict[MemberId, bool]
) -> MemberResult:
    """Find the member that an entry means (K-G4 to K-G13). The answer repeats what was asked."""
    if entry.member_id in draft.volatile.pending:
        drop_pending(draft, entry.member_id)
        return MemberResult(entry.member_id, entry.instance_id, None)
    check = identity.named if command.operator else identity.check
    member_id, error = _meant(draft.found, entry, going, check)
    if error is None and not command.operator:
        error = _of_another(draft, command, member_id)
    if error is None:
        going[member_id] = bool(entry.member_id)
    return MemberResult(entry.member_id, entry.instance_id, error)


def _of_another(draft: Draft, command: LeaveGroup, member_id: MemberId) -> Rejection | None:
    """Refuse that a principal takes out a static member of another."""
    instance_id = draft.group.body.members[member_id].instance_id
    return identity.of_another(draft.state, draft.found, instance_id, command.caller.principal)


def _meant(
    group: ClassicGroup | None,
    entry: LeavingMember,
    going: dict[MemberId, bool],
    check: identity.Check,
) -> tuple[MemberId, Rejection | None]:
    """Return the member to take out: by instance id alone its holder, else as `check` says.

    A member that an earlier entry of the list took out is gone already (K-G17).
    """
    unknown = UnknownMemberId(entry.member_id)
    holder = None
    if group is not None and entry.instance_id is not None:
        holder = group.body.instances.get(entry.instance_id)
    if holder in going:
        return "", unknown
    if not entry.member_id:
        return (holder, None) if holder is not None else ("", unknown)
    error = check(group, entry.member_id, entry.instance_id)
    if error is None and entry.member_id in going:
        error = unknown
    return entry.member_id, error


def _pending_left(draft: Draft) -> None:
    """Handle a leave of unused ids alone: Kafka opens a join phase for these, too."""
    if draft.group.body.members:
        rebalance.open_join_phase(draft, "G13", "a member left before it joined")
    rebalance.close_if_complete(draft)


def _go(draft: Draft, command: LeaveGroup, going: dict[MemberId, bool], reason: str) -> None:
    """Take members out; one not named by its own id was removed, and may still run (S12)."""
    member_ids = tuple(going)
    event: GroupEvent
    if command.operator or not all(going.values()):
        event, rule = MembersRemoved(member_ids, reason), "G23"
    else:
        event, rule = MembersLeft(member_ids, reason), "G14"
    take_out(draft, member_ids, (event,), rule, reason or "members left")


def expire(draft: Draft, member_ids: tuple[MemberId, ...], deadline: str, rule: str) -> None:
    """Take out members that were not heard in time."""
    events = tuple(MemberExpired(member_id, deadline) for member_id in member_ids)
    take_out(draft, member_ids, events, rule, f"a member's {deadline} deadline passed")


def take_out(
    draft: Draft,
    member_ids: tuple[MemberId, ...],
    events: tuple[GroupEvent, ...],
    rule: str,
    reason: str,
) -> None:
    """Answer parked calls of members, open a join phase, record their end, forget them (K-G19)."""
    for member_id in member_ids:
        parked_calls.refuse(draft, member_id, UnknownMemberId(member_id))
    rebalance.open_join_phase(draft, rule, reason, member_ids[0], leaving=frozenset(member_ids))
    for event in events:
        draft.emit(event, rule)
    for member_id in member_ids:
        parked_calls.forget(draft, member_id)
    rebalance.close_if_complete(draft)


def sync_overdue(draft: Draft) -> None:
    """Take out members that were answered and never synced, static or not (K-E10 to K-E12)."""
    late = tuple(m for m in draft.volatile.awaiting_sync if m in draft.group.body.members)
    if late:
        expire(draft, late, SYNC, "E10")


def trigger(draft: Draft, command: TriggerRebalance) -> DoneReply:
    """Open a join phase for an operator."""
    group = draft.found
    if group is None:
        return DoneReply(GroupIdNotFound(command.group_id))
    if not group.body.members:
        problem = "the group has no members, so there is nothing to rebalance"
        return DoneReply(InvalidRequest("group_id", problem))
    rebalance.open_join_phase(draft, "operator", command.reason or "an operator asked for it")
    rebalance.close_if_complete(draft)
    return DoneReply(None)
