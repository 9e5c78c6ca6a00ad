"""JoinGroup: refuses what no group takes, and lets new members in.

Rules K-A1 to K-A13, K-B1, K-B2, K-I1 to K-I12.
"""

from __future__ import annotations

from typing import Final

from holdfast.coordinator.classic import (
    answers,
    identity,
    parked_calls,
    protocol_votes,
    rebalance,
    rejoin,
    validation,
)
from holdfast.coordinator.classic.state import ClassicGroup
from holdfast.coordinator.classic.transitions import PREPARING
from holdfast.coordinator.cluster import settings
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.model.commands import JoinGroup
from holdfast.coordinator.model.events import GroupCreated, MemberJoined, MemberRefused
from holdfast.coordinator.model.ids import MemberId
from holdfast.coordinator.model.rejections import (
    GroupMaxSizeReached,
    InconsistentGroupProtocol,
    MemberIdRequired,
    Rejection,
    UnknownMemberId,
    UnknownServerError,
)
from holdfast.coordinator.model.state import EMPTY
from holdfast.coordinator.model.volatile import PENDING, DeadlineKey, Pending, Support

_INCONSISTENT: Final = "the group's members and this one have no protocol of one type in common"
_NAMELESS: Final = "a protocol type and at least one protocol are needed to join an empty group"


def join(draft: Draft, command: JoinGroup) -> None:
    """Answer or park a join."""
    refusal = (
        validation.of_join(draft, command)
        or _refused_if_absent(draft, command)
        or _of_another(draft, command)
    )
    if refusal is not None:
        _refuse(draft, command, refusal)
    elif not _has_room(draft, command):
        _refuse_for_size(draft, command)
    elif (problem := _inconsistent(draft, command)) is not None:
        _refuse(draft, command, InconsistentGroupProtocol(problem))
    elif (too_much := _oversized(draft, command)) is not None:
        _refuse(draft, command, too_much)
    elif command.member_id:
        _join_with_id(draft, command)
    elif command.instance_id is not None:
        _join_static(draft, command)
    else:
        _require_member_id(draft, command)


def _refuse(draft: Draft, command: JoinGroup, error: Rejection) -> None:
    draft.answer(command.caller.call, answers.refused_join(error, command.member_id))


def _refused_if_absent(draft: Draft, command: JoinGroup) -> Rejection | None:
    """Refuse a member id that the group never gave out: it does not create the group (K-A11)."""
    absent = draft.found is None and command.member_id
    return UnknownMemberId(command.member_id) if absent else None


def _of_another(draft: Draft, command: JoinGroup) -> Rejection | None:
    """Refuse a join as a static member of another principal, by either of its ids."""
    meant = identity.instance_meant(draft.found, command.member_id, command.instance_id)
    return identity.of_another(draft.state, draft.found, meant, command.caller.principal)


# --- room (K-I9 to K-I12) ---


def _has_room(draft: Draft, command: JoinGroup) -> bool:
    """Return whether there is room for this join; a returning instance is a member (K-I12)."""
    group = draft.found
    if group is None or group.state == EMPTY:
        return True
    most = settings.of(draft.state, draft.group_id).max_size
    holder = _holder(group, command)
    if group.state == PREPARING:
        return holder in draft.volatile.joins or len(draft.volatile.joins) < most
    return holder in group.body.members or len(group.body.members) < most


def _holder(group: ClassicGroup, command: JoinGroup) -> MemberId:
    if command.member_id or command.instance_id is None:
        return command.member_id
    return group.body.instances.get(command.instance_id, "")


def _refuse_for_size(draft: Draft, command: JoinGroup) -> None:
    """Refuse a join, because the group is full.

    Remove a known member that comes too late (K-I10).
    """
    most = settings.of(draft.state, draft.group_id).max_size
    draft.answer(command.caller.call, answers.refused_join(GroupMaxSizeReached(most)))
    member_id, group = command.member_id, draft.group
    if member_id in draft.volatile.pending:
        drop_pending(draft, member_id)
    elif identity.check(group, member_id, command.instance_id) is None:  # only in Preparing
        draft.emit(MemberRefused(member_id), "I10")
        parked_calls.forget(draft, member_id)
    rebalance.close_if_complete(draft)


# --- protocols (K-I1 to K-I4, S7) ---


def _inconsistent(draft: Draft, command: JoinGroup) -> str | None:
    group = draft.found
    if group is None or group.state == EMPTY:
        return None if command.protocol_type and command.protocols else _NAMELESS
    if command.protocol_type != group.body.protocol_type:
        return f"the group's protocol type is {group.body.protocol_type!r}"
    counts = _counts(draft, group)
    fits = protocol_votes.in_common(counts, command.protocols, len(group.body.members))
    return None if fits else _INCONSISTENT


def _counts(draft: Draft, group: ClassicGroup) -> Support:
    counts = draft.volatile.support
    if counts is None:
        counts = protocol_votes.count(group.body.members.values())
        draft.volatile = draft.volatile._replace(support=counts)
    return counts


def _oversized(draft: Draft, command: JoinGroup) -> Rejection | None:
    size = _counts(draft, draft.found).size if draft.found else 0
    return validation.of_metadata(draft, command, size)


# --- new members ---


def _require_member_id(draft: Draft, command: JoinGroup) -> None:
    """Tell a dynamic member its id first, so that a lost answer leaves nothing behind (K-A1)."""
    if draft.found is None:
        draft.emit(GroupCreated(), "A1")
    caller, volatile = command.caller, draft.volatile
    member_id = volatile.offered.get(caller.request_id, command.fresh_member_id)  # S14
    offered = volatile.offered
    if caller.request_id:
        offered = offered.set(caller.request_id, member_id)
    pending = volatile.pending.set(member_id, Pending(caller.request_id))
    draft.volatile = volatile._replace(pending=pending, offered=offered)
    draft.arm(DeadlineKey(PENDING, member_id), command.session_timeout_ms)
    _answer_required(draft, command, member_id)


def _answer_required(draft: Draft, command: JoinGroup, member_id: MemberId) -> None:
    refusal = answers.refused_join(MemberIdRequired(member_id), member_id)
    draft.answer(command.caller.call, refusal)


def drop_pending(draft: Draft, member_id: MemberId) -> None:
    """Forget an id that was given out and not used (K-A7, K-A8)."""
    volatile = draft.volatile
    given_to = volatile.pending[member_id].request_id
    draft.volatile = volatile._replace(
        pending=volatile.pending.remove(member_id), offered=volatile.offered.remove(given_to)
    )
    draft.cancel(DeadlineKey(PENDING, member_id))


def _join_with_id(draft: Draft, command: JoinGroup) -> None:
    member_id = command.member_id
    if member_id in draft.volatile.pending:
        _join_pending(draft, command)
        return
    error = identity.check(draft.group, member_id, command.instance_id)
    if error is not None:
        _refuse(draft, command, error)
    else:
        rejoin.known(draft, command, draft.group.body.members[member_id])


def _join_pending(draft: Draft, command: JoinGroup) -> None:
    if command.instance_id is not None:  # K-A10: the id was given to a dynamic member
        problem = "this member id was given to a member without an instance id"
        draft.answer(command.caller.call, answers.refused_join(UnknownServerError(problem)))
        return
    drop_pending(draft, command.member_id)
    _admit(draft, command, command.member_id, "A5")


def _join_static(draft: Draft, command: JoinGroup) -> None:
    instance_id = command.instance_id
    group = draft.found
    holder = None if group is None or instance_id is None else group.body.instances.get(instance_id)
    if group is not None and holder is not None:
        rejoin.returning(draft, command, group.body.members[holder])
        return
    if group is None:
        draft.emit(GroupCreated(), "B1")
    _admit(draft, command, command.fresh_member_id, "B1")


def _admit(draft: Draft, command: JoinGroup, member_id: MemberId, rule: str) -> None:
    """Make the caller a member, and park its join."""
    delay = draft.volatile.initial_delay
    reason = command.reason or "a new member joins"
    profile = validation.profile(command)
    rebalance.open_join_phase(
        draft, rule, reason, member_id, joining_ms=profile.rebalance_timeout_ms
    )
    event = MemberJoined(
        member_id=member_id,
        instance_id=command.instance_id,
        profile=profile,
        protocol_type=command.protocol_type,
        request_id=command.caller.request_id,
    )
    draft.emit(event, rule)
    if delay is not None:  # whoever opened the join phase was there when the delay was armed
        draft.volatile = draft.volatile._replace(initial_delay=delay._replace(joined=True))
    parked_calls.park_join(draft, command.caller, member_id, is_new=True)
    rebalance.close_if_complete(draft)
