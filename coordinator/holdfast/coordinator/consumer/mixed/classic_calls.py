"""Calls of the classic protocol to a group of the heartbeat protocol (K-Q5 to K-Q11).

A member that speaks the classic protocol takes its steps by joins. Its generation is its epoch, it
is never the group leader, and what it owns is told by the answer of its sync.
"""

from __future__ import annotations

from holdfast.coordinator.consumer import sessions
from holdfast.coordinator.consumer.identities import identity, static_members
from holdfast.coordinator.consumer.mixed import join, recall, told
from holdfast.coordinator.consumer.state import UNREVOKED, ConsumerGroup, Member
from holdfast.coordinator.groups import releases
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.model.commands import Heartbeat, JoinGroup, SyncGroup
from holdfast.coordinator.model.rejections import (
    IllegalGeneration,
    InconsistentGroupProtocol,
    RebalanceInProgress,
    Rejection,
    UnknownMemberId,
)
from holdfast.coordinator.model.replies import HeartbeatReply, JoinReply, Reply, SyncReply
from holdfast.coordinator.model.volatile import REBALANCE, SYNC, DeadlineKey


def answer(draft: Draft, command: JoinGroup | SyncGroup | Heartbeat) -> None:
    """Decide a call of the classic protocol."""
    match command:
        case JoinGroup():
            join.join(draft, command)
        case SyncGroup():
            _sync(draft, command)
        case Heartbeat():
            _heartbeat(draft, command)


def refused(command: JoinGroup | SyncGroup | Heartbeat, error: Rejection) -> Reply:
    """Return the answer to a call that is refused."""
    match command:
        case JoinGroup(member_id=member_id):
            return JoinReply(error, member_id=member_id)
        case SyncGroup():
            return SyncReply(error)
        case Heartbeat():
            return HeartbeatReply(error)


def _stranger(group: ConsumerGroup, command: SyncGroup | Heartbeat) -> Rejection | None:
    """Check that the caller is a member, and speaks this protocol (K-Q11)."""
    error = identity.check_running(group, command.member_id, command.instance_id)
    if error is None and group.body.members[command.member_id].classic is None:
        return UnknownMemberId(command.member_id)
    return error


def _heartbeat(draft: Draft, command: Heartbeat) -> None:
    """Answer a heartbeat: it renews the session, and tells who has to rejoin (K-Q9)."""
    group: ConsumerGroup = draft.group
    error = _stranger(group, command)
    if error is not None:
        draft.answer(command.caller.call, HeartbeatReply(error))
        return
    member = group.body.members[command.member_id]
    if command.release:
        _release(draft, command, member)
        return
    if command.generation != member.epoch:
        error = IllegalGeneration(command.generation, member.epoch)
        draft.answer(command.caller.call, HeartbeatReply(error))
        return
    rejoin = recall.must_rejoin(draft, member)
    recall.tell(draft, member, rejoin=rejoin)
    reply = HeartbeatReply(RebalanceInProgress() if rejoin else None, told.grant(draft, member))
    draft.answer(command.caller.call, reply)
    draft.renew(member.member_id)


def _release(draft: Draft, command: Heartbeat, member: Member) -> None:
    """Keep the place of a static member before a planned restart (S12)."""
    error = releases.refusal(member) or identity.of_another(
        draft.state, draft.group, member.instance_id, command.caller.principal
    )
    if error is None:
        draft.settle(member.member_id)
        releases.release(draft, member)
        static_members.wait_no_more(draft, member.member_id)
    now: Member = draft.group.body.members[member.member_id]
    draft.answer(command.caller.call, HeartbeatReply(error, told.grant(draft, now)))


def _sync(draft: Draft, command: SyncGroup) -> None:
    """Tell a member what it owns at its epoch."""
    error = _refusal_of_sync(draft, command)
    if error is not None:
        draft.answer(command.caller.call, SyncReply(error))
        return
    member: Member = draft.group.body.members[command.member_id]
    draft.cancel(DeadlineKey(SYNC, member.member_id))
    overdue = DeadlineKey(REBALANCE, member.member_id)
    if overdue in draft.volatile.armed:  # what it may do counts from this answer (S11)
        draft.arm(overdue, sessions.rebalance_ms(draft, member))
    sessions.heard(draft, member.member_id)
    draft.answer(command.caller.call, told.synced(draft, member))


def _refusal_of_sync(draft: Draft, command: SyncGroup) -> Rejection | None:
    if command.protocol_type is None or command.protocol_name is None:  # K-E8 as a broker has it
        return InconsistentGroupProtocol("protocol_type and protocol_name are needed")
    group: ConsumerGroup = draft.group
    error = _stranger(group, command)
    if error is not None:
        return error
    member = group.body.members[command.member_id]
    error = identity.of_another(draft.state, group, member.instance_id, command.caller.principal)
    if error is not None:
        return error
    if command.generation != member.epoch:
        return IllegalGeneration(command.generation, member.epoch)
    if (command.protocol_type, command.protocol_name) != told.protocol(member):
        current = ", ".join(map(repr, told.protocol(member)))
        return InconsistentGroupProtocol(f"the member has protocol type and name {current}")
    if member.state != UNREVOKED and recall.is_behind(draft, member):
        recall.tell(draft, member, rejoin=True)
        return RebalanceInProgress()
    return None
