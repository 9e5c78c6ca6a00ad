"""A deadline fired: whether it counts, and what follows (S9, K-A7, K-A21, K-D5, K-E10, K-F9)."""

from __future__ import annotations

from holdfast.coordinator.commands import DeadlineFired
from holdfast.coordinator.decide.classic import removal, rounds
from holdfast.coordinator.decide.classic.join import drop_pending
from holdfast.coordinator.decide.draft import Draft
from holdfast.coordinator.ids import MemberId
from holdfast.coordinator.state import PREPARING
from holdfast.coordinator.volatile import JOIN_GUARD, OVERSIZE, PENDING, ROUND, SESSION, SYNC


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
        if key.member_id in draft.group.members:
            removal.expire(draft, (key.member_id,), JOIN_GUARD, "A21")
    elif key.kind == PENDING:
        if key.member_id in draft.volatile.pending:
            drop_pending(draft, key.member_id)
            rounds.settle(draft)
    elif key.kind == SYNC:
        removal.sync_overdue(draft)
    elif key.kind == OVERSIZE:
        rounds.shrink(draft)
    elif key.kind == ROUND and draft.group.state == PREPARING:
        rounds.fired(draft)


def _session_over(draft: Draft, member_id: MemberId, *, heard: bool) -> None:
    """A member that was heard since the deadline fired gets a full session again (S9)."""
    if member_id not in draft.group.members:
        return  # K-F13
    if heard:
        draft.arm_session(member_id)
    else:
        removal.expire(draft, (member_id,), SESSION, "F9")
