"""Sessions of members: each accepted heartbeat starts one over; what is gone has no deadline."""

from __future__ import annotations

from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.model.ids import MemberId
from holdfast.coordinator.model.volatile import REBALANCE, SESSION, DeadlineKey


def heard(draft: Draft, member_id: MemberId) -> None:
    """Start a member's session over, or start it if it has none yet."""
    if DeadlineKey(SESSION, member_id) in draft.volatile.armed:
        draft.renew(member_id)
    else:
        draft.arm_session(member_id)


def forget(draft: Draft, member_id: MemberId) -> None:
    """Stop all deadlines of a member id that is gone."""
    draft.cancel(DeadlineKey(SESSION, member_id))
    draft.cancel(DeadlineKey(REBALANCE, member_id))
    confirmed = draft.volatile.confirmed.remove(member_id)
    draft.volatile = draft.volatile._replace(confirmed=confirmed)
