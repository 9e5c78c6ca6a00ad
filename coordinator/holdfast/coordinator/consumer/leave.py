"""Takes members out: they left, were removed, or were not heard in time (K-M21 to K-M25, K-N17).

The group epoch grows once for all that go together; the target is computed by the next heartbeat.
"""

from __future__ import annotations

from holdfast.coordinator.consumer import answers, sessions
from holdfast.coordinator.consumer.identities import identity
from holdfast.coordinator.consumer.mixed import downgrade
from holdfast.coordinator.consumer.state import ConsumerGroup, Member
from holdfast.coordinator.consumer.targets import epochs
from holdfast.coordinator.groups import removals
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.groups.lifecycle import invalid_group_id
from holdfast.coordinator.model.commands import (
    ConsumerGroupHeartbeat,
    LeaveGroup,
    LeavingMember,
    TriggerRebalance,
)
from holdfast.coordinator.model.events import (
    GroupEvent,
    MemberExpired,
    MembersLeft,
    MembersRemoved,
)
from holdfast.coordinator.model.ids import MemberId
from holdfast.coordinator.model.rejections import (
    GroupIdNotFound,
    InvalidRequest,
    Rejection,
    UnknownMemberId,
)
from holdfast.coordinator.model.replies import DoneReply, LeaveReply, MemberResult

_REASON_MAX = 255


def goodbye(draft: Draft, command: ConsumerGroupHeartbeat) -> None:
    """Let a member go for good (K-M21, K-N17)."""
    event = MembersLeft((command.member_id,), "")
    take_out(draft, (command.member_id,), event, "M21", "left")
    draft.answer(command.caller.call, answers.gone(command))


def expire(draft: Draft, member_id: MemberId, deadline: str, rule: str) -> None:
    """Take out a member that was not heard, or did not give partitions up, in time."""
    take_out(draft, (member_id,), MemberExpired(member_id, deadline), rule, "expired")


def take_out(
    draft: Draft,
    member_ids: tuple[MemberId, ...],
    event: GroupEvent,
    rule: str,
    cause: str,
    predecessor_ms: int = 0,
) -> None:
    """Record the end of members, stop their deadlines, raise the epoch once.

    A group that is to be a classic one keeps its epoch as its generation (K-Q12), unless something
    of those who are gone has to be kept with a new one (S12).
    """
    draft.emit(event, rule)
    for member_id in member_ids:
        sessions.forget(draft, member_id)
    if predecessor_ms or not downgrade.is_due(draft):
        epochs.raise_epoch(draft, cause, rule, predecessor_ms)


def leave(draft: Draft, command: LeaveGroup) -> LeaveReply:
    """Take members out by a classic leave, or for an operator; each entry has its own result."""
    error = invalid_group_id(command.group_id)
    if error is not None:
        return LeaveReply(error)
    going: dict[MemberId, bool] = {}  # in order, and whether its own id was named
    if command.everyone or command.prefix:
        draft.close()
        results = removals.unnamed(draft.group.body.members.values(), command, going)
    else:
        results = tuple(_leave_one(draft, command, entry, going) for entry in command.members)
    if going:
        _go(draft, command, going)
    return LeaveReply(None, results)


def _leave_one(
    draft: Draft, command: LeaveGroup, entry: LeavingMember, going: dict[MemberId, bool]
) -> MemberResult:
    """Find the member that an entry means (K-G4 to K-G12); the answer repeats what was asked."""
    named = entry.member_id or draft.group.body.instances.get(entry.instance_id or "", "")
    draft.settle(named)
    group: ConsumerGroup = draft.group
    member_id: MemberId = named
    error = identity.check(group, member_id, entry.instance_id)
    if error is None and member_id in going:
        error = UnknownMemberId(entry.member_id)  # K-G17
    if error is None and not command.operator:
        error = _of_another(draft, command, group.body.members[member_id])
    if error is None:
        going[member_id] = bool(entry.member_id)
    return MemberResult(entry.member_id, entry.instance_id, error)


def _of_another(draft: Draft, command: LeaveGroup, member: Member) -> Rejection | None:
    """Refuse that a principal takes out a static member of another."""
    principal = command.caller.principal
    return identity.of_another(draft.state, draft.group, member.instance_id, principal)


def _go(draft: Draft, command: LeaveGroup, going: dict[MemberId, bool]) -> None:
    """Take members out; one not named by its own id was removed, and may still run (S12)."""
    reason = command.reason or next((e.reason for e in command.members if e.reason), "")
    member_ids, told = tuple(going), reason[:_REASON_MAX]
    if not command.operator and all(going.values()):
        take_out(draft, member_ids, MembersLeft(member_ids, told), "G14", "left")
        return
    members = [draft.group.body.members[each] for each in member_ids]
    running = [sessions.timeout_ms(draft, each) for each in members if not each.released]
    predecessor_ms = max(running, default=0)
    event = MembersRemoved(member_ids, told)
    take_out(draft, member_ids, event, "G23", "removed", predecessor_ms)


def trigger(draft: Draft, command: TriggerRebalance) -> DoneReply:
    """Raise the epoch for an operator, so that the next heartbeat computes another target."""
    if draft.found is None:
        return DoneReply(GroupIdNotFound(command.group_id))
    if not draft.group.body.members:
        problem = "the group has no members, so there is nothing to rebalance"
        return DoneReply(InvalidRequest("group_id", problem))
    epochs.raise_epoch(draft, "asked", "operator")
    return DoneReply(None)
