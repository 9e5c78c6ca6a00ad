"""Judges deadlines that fired (S9, K-A7, K-A21, K-D5, K-E10, K-F9), and arms a new leader's.

No session can expire because a leader died: every deadline starts anew, in full (S9, S16).
"""

from __future__ import annotations

from holdfast.coordinator.classic import leave, rebalance
from holdfast.coordinator.classic.join import drop_pending
from holdfast.coordinator.classic.transitions import COMPLETING, PREPARING
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.model.commands import DeadlineFired
from holdfast.coordinator.model.ids import MemberId
from holdfast.coordinator.model.volatile import (
    JOIN_GUARD,
    JOIN_PHASE,
    OVERSIZE,
    PENDING,
    SESSION,
    SYNC,
    DeadlineKey,
)
from holdfast.coordinator.structures.pmap import PMap


def fired(draft: Draft, command: DeadlineFired) -> None:
    """Act on a deadline, or drop it: one with another arming number was armed anew or cancelled."""
    key = command.key
    if draft.volatile.armed.get(key) != command.arming:
        return
    seen = draft.volatile.renewals.get(key.member_id, 0)
    draft.disarm(key)
    if key.kind == SESSION:
        _session_over(draft, key.member_id, heard=seen != command.renewals)
    elif key.kind == JOIN_GUARD:
        if key.member_id in draft.group.body.members:
            leave.expire(draft, (key.member_id,), JOIN_GUARD, "A21")
    elif key.kind == PENDING:
        if key.member_id in draft.volatile.pending:
            drop_pending(draft, key.member_id)
            rebalance.close_if_complete(draft)
    elif key.kind == SYNC:
        leave.sync_overdue(draft)
    elif key.kind == OVERSIZE:
        rebalance.shrink(draft)
    elif key.kind == JOIN_PHASE and draft.group.state == PREPARING:
        rebalance.fired(draft)


def _session_over(draft: Draft, member_id: MemberId, *, heard: bool) -> None:
    """End a member's session; if it was heard since the deadline fired, renew it in full (S9)."""
    if member_id not in draft.group.body.members:
        return  # K-F13
    if heard:
        draft.arm_session(member_id)
    else:
        leave.expire(draft, (member_id,), SESSION, "F9")


def take_over(draft: Draft) -> None:
    """Arm what the group's state needs (K-L4, S16).

    An open join phase starts again without rejoined members and with its full time. It closes as
    soon as all are there, even if an initial delay was running before.
    """
    group = draft.group
    for member_id in group.body.members:
        draft.arm_session(member_id)
    if group.state == PREPARING:
        draft.arm(DeadlineKey(JOIN_PHASE), group.body.round_timeout_ms)
    elif group.state == COMPLETING:
        awaiting = PMap((each, True) for each in group.body.rejoined if each in group.body.members)
        draft.volatile = draft.volatile._replace(awaiting_sync=awaiting)
        longest_ms = max(
            member.profile.rebalance_timeout_ms for member in group.body.members.values()
        )
        draft.arm(DeadlineKey(SYNC), longest_ms)
    if rebalance.too_large(draft):
        draft.arm(DeadlineKey(OVERSIZE), 0)
