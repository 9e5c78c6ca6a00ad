"""Judges deadlines that fired (S9, K-M24, K-M25, K-N4, K-Q10); arms a new leader's (K-L8, K-L9)."""

from __future__ import annotations

from holdfast.coordinator.consumer import leave, sessions
from holdfast.coordinator.consumer.client_side import choice
from holdfast.coordinator.consumer.mixed import recall
from holdfast.coordinator.consumer.state import UNREVOKED, ConsumerBody, Member
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.model.commands import DeadlineFired
from holdfast.coordinator.model.ids import MemberId
from holdfast.coordinator.model.volatile import COMPUTE, REBALANCE, SESSION, SYNC, DeadlineKey


def fired(draft: Draft, command: DeadlineFired) -> None:
    """Act on a deadline, or drop it: one with another arming number was armed anew or cancelled."""
    key = command.key
    draft.settle(key.member_id)
    if draft.volatile.armed.get(key) != command.arming:
        return
    seen = draft.volatile.renewals.get(key.member_id, 0)
    draft.disarm(key)
    if key.kind == COMPUTE:
        choice.relieve(draft)
        return
    body: ConsumerBody = draft.group.body
    member = body.members.get(key.member_id)
    if member is None:
        return  # K-N19
    if key.kind == SESSION:
        _session_over(draft, key.member_id, heard=seen != command.renewals)
    elif member.classic is not None:
        _classic_overdue(draft, member, key.kind)
    elif key.kind == REBALANCE and member.state == UNREVOKED:
        leave.expire(draft, key.member_id, REBALANCE, "M25")


def _classic_overdue(draft: Draft, member: Member, kind: str) -> None:
    """Take out a member of the classic protocol that did not rejoin, or sync, in time (K-Q10)."""
    if kind == SYNC or recall.must_rejoin(draft, member):
        leave.expire(draft, member.member_id, kind, "Q10")


def _session_over(draft: Draft, member_id: MemberId, *, heard: bool) -> None:
    """End a member's session; if it was heard since the deadline fired, renew it in full (S9)."""
    if heard:
        draft.arm_session(member_id)
    else:
        leave.expire(draft, member_id, SESSION, "M24")


def take_over(draft: Draft) -> None:
    """Arm every session in full, and the time of each member that something is asked of."""
    body: ConsumerBody = draft.group.body
    for member_id, member in body.members.items():
        draft.arm_session(member_id)
        if member.state == UNREVOKED:
            after_ms = sessions.rebalance_ms(draft, member)
            draft.arm(DeadlineKey(REBALANCE, member_id), after_ms)
    choice.arm(draft)
