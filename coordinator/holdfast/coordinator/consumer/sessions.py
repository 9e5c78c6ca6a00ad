"""Sessions of members: each accepted heartbeat starts one over; what is gone has no deadline."""

from __future__ import annotations

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.consumer import beat_order
from holdfast.coordinator.consumer.state import Member
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.model.ids import MemberId
from holdfast.coordinator.model.volatile import REBALANCE, SESSION, SYNC, DeadlineKey


def timeout_ms(draft: Draft, member: Member) -> int:
    """Return how long a member may be silent: a classic one says it, else it is the group's."""
    if member.classic is not None:
        return member.classic.session_timeout_ms
    return settings.of(draft.state, draft.group_id).consumer.session_timeout_ms


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
    draft.cancel(DeadlineKey(SYNC, member_id))
    confirmed = draft.volatile.confirmed.remove(member_id)
    draft.volatile = draft.volatile._replace(confirmed=confirmed)
    beat_order.forget(draft, member_id)
