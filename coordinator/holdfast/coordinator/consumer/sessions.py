"""Sessions of members: each accepted heartbeat starts one over; what is gone has no deadline."""

from __future__ import annotations

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.consumer.identities import beat_order
from holdfast.coordinator.consumer.state import Member
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.model.consumer_events import MemberSubscribed
from holdfast.coordinator.model.ids import MemberId
from holdfast.coordinator.model.volatile import (
    COMPUTE,
    REBALANCE,
    SESSION,
    SYNC,
    DeadlineKey,
    LoweredSession,
)


def timeout_ms(draft: Draft, member: Member) -> int:
    """Return how long a member may be silent: a classic one says it, else what it may know.

    One that has stopped has said how long its place is to be kept, if it has said so at all.
    """
    if member.released and member.absence_ms:
        return member.absence_ms
    if member.classic is not None:
        return member.classic.session_timeout_ms
    return member.session_timeout_ms or _setting_ms(draft)


def _setting_ms(draft: Draft) -> int:
    return settings.of(draft.state, draft.group_id).consumer.session_timeout_ms


def rebalance_ms(draft: Draft, member: Member) -> int:
    """Return how long a member may take to give something up from now on, as it may know (S11)."""
    left_ms = member.unhurried_until_ms - draft.state.log_time_ms
    return max(member.profile.rebalance_timeout_ms, left_ms)


def lengthen(draft: Draft, before: Member | None, member_id: MemberId) -> None:
    """Have a rebalance timeout that a member has raised count at once (S11).

    It is told the longer one by this very answer, and acts by it on what it was asked for before.
    Whoever does not number its heartbeats gets Kafka's rule: the deadline stays as it is (K-M25).
    """
    member: Member = draft.group.body.members[member_id]
    key = DeadlineKey(REBALANCE, member_id)
    known_ms = 0 if before is None else before.profile.rebalance_timeout_ms
    if key in draft.volatile.armed and member.profile.rebalance_timeout_ms > known_ms:
        draft.arm(key, rebalance_ms(draft, member))


def agree(draft: Draft, member_id: MemberId) -> None:
    """Have the group's session timeout count for a member that is about to be told it (S11).

    A longer one counts at once. A shorter one is heard by an answer, and that may be lost: until
    what the member knew before must have run out, that counts.
    """
    member: Member = draft.group.body.members[member_id]
    known_ms, new_ms = timeout_ms(draft, member), _setting_ms(draft)
    if member.session_timeout_ms == new_ms:
        _lower(draft, member_id, None)
        return
    lowering = draft.volatile.lowered.get(member_id)
    if new_ms < known_ms and (lowering is None or lowering.to_ms != new_ms):
        until_ms = draft.state.log_time_ms + known_ms
        _lower(draft, member_id, LoweredSession(new_ms, until_ms))
    elif lowering is None or new_ms >= known_ms or _is_over(draft, lowering):
        _lower(draft, member_id, None)
        event = MemberSubscribed(
            member_id,
            member.instance_id,
            member.profile,
            joined=False,
            session_timeout_ms=new_ms,
        )
        draft.emit(event, "S11")


def _is_over(draft: Draft, lowering: LoweredSession) -> bool:
    """Return whether a session of the new length cannot end before what the member knew."""
    return draft.state.log_time_ms + lowering.to_ms >= lowering.until_ms


def _lower(draft: Draft, member_id: MemberId, lowering: LoweredSession | None) -> None:
    lowered = draft.volatile.lowered
    if lowering is not None:
        draft.volatile = draft.volatile._replace(lowered=lowered.set(member_id, lowering))
    elif member_id in lowered:
        draft.volatile = draft.volatile._replace(lowered=lowered.remove(member_id))


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
    if draft.found is not None and draft.group.body.asked is None:
        draft.cancel(DeadlineKey(COMPUTE))
    confirmed = draft.volatile.confirmed.remove(member_id)
    draft.volatile = draft.volatile._replace(confirmed=confirmed)
    beat_order.forget(draft, member_id)
    _lower(draft, member_id, None)
