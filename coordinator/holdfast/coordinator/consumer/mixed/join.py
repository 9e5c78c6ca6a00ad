"""JoinGroup to a group of the heartbeat protocol (K-Q5 to K-Q8).

A join is answered at once: it is what a heartbeat is for the other members. Its answer has the
epoch as the generation, and no group leader, since the service assigns.
"""

from __future__ import annotations

from holdfast.coordinator.consumer import sessions
from holdfast.coordinator.consumer.identities import identity, static_members
from holdfast.coordinator.consumer.mixed import told
from holdfast.coordinator.consumer.state import ConsumerGroup, Member
from holdfast.coordinator.consumer.targets import (
    computing,
    epochs,
    reconciliation,
    regexes,
    subscription,
    target,
)
from holdfast.coordinator.consumer.targets.subscription import Change
from holdfast.coordinator.consumer.validation import CLASSIC_ID_MAX
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.model.commands import JoinGroup
from holdfast.coordinator.model.ids import MemberId
from holdfast.coordinator.model.member_profile import (
    ClassicProfile,
    ConsumerProfile,
    MemberProfile,
)
from holdfast.coordinator.model.rejections import (
    InconsistentGroupProtocol,
    InvalidRequest,
    MemberIdRequired,
    Rejection,
)
from holdfast.coordinator.model.replies import JoinReply
from holdfast.coordinator.model.volatile import REBALANCE, SYNC, DeadlineKey


def join(draft: Draft, command: JoinGroup) -> None:
    """Answer a join, at once or as the batch closes. What needs no group was checked before."""
    error = _refusal(draft, command)
    if error is not None:
        draft.answer(command.caller.call, JoinReply(error, member_id=command.member_id))
    elif not command.member_id and command.instance_id is None:
        member_id = command.fresh_member_id
        draft.answer(
            command.caller.call, JoinReply(MemberIdRequired(member_id), member_id=member_id)
        )
    else:
        _accept(draft, command)


def _refusal(draft: Draft, command: JoinGroup) -> Rejection | None:
    """Say why this caller may not join; the order is Kafka's, who looks at the room first."""
    group: ConsumerGroup = draft.group
    if len(command.member_id.encode()) > CLASSIC_ID_MAX:
        return InvalidRequest("member_id", f"must have at most {CLASSIC_ID_MAX} bytes")
    return (
        static_members.no_room(draft, command)
        or _unsupported(group, command)
        or _stranger(group, command)
        or _of_another(draft, command)
        or _too_much(draft, command)
    )


def _unsupported(group: ConsumerGroup, command: JoinGroup) -> InconsistentGroupProtocol | None:
    """Check K-Q6: a protocol of type `consumer` that all classic members support."""
    counts, most = group.body.classic_protocols, len(group.body.classic_members)
    fits = any(counts.get(each.name, 0) == most for each in command.protocols)
    if command.protocol_type == told.PROTOCOL_TYPE and fits:
        return None
    return InconsistentGroupProtocol("the group's members and this one have no protocol in common")


def _stranger(group: ConsumerGroup, command: JoinGroup) -> Rejection | None:
    """Check the ids; a dynamic member may bring one that the group does not know.

    A retry by a process that was replaced meanwhile must not take the instance back (S14).
    """
    holder = static_members.holder_of(group, command)
    if command.member_id in group.body.members or (command.member_id and command.instance_id):
        return identity.check_running(group, command.member_id, command.instance_id)
    if holder is not None and command.caller.request_id in holder.replaced_requests:
        return identity.fenced(group, str(holder.instance_id))
    return None


def _of_another(draft: Draft, command: JoinGroup) -> Rejection | None:
    """Refuse a join as a static member of another principal, by either of its ids."""
    known: Member | None = draft.group.body.members.get(command.member_id)
    meant = command.instance_id if known is None else known.instance_id
    return identity.of_another(draft.state, draft.group, meant, command.caller.principal)


def _too_much(draft: Draft, command: JoinGroup) -> InvalidRequest | None:
    """Refuse topics with which the group would have more than it may (S7)."""
    holder = static_members.holder_of(draft.group, command)
    member_id = command.member_id if holder is None else holder.member_id
    return subscription.beyond(draft, member_id, _profile(command))


def _accept(draft: Draft, command: JoinGroup) -> None:
    """Take what a member says, and move it towards its target."""
    was = draft.group.body
    member_id = _placed(draft, command)
    change = _update(draft, command, member_id)
    epochs.raise_for(draft, change)
    regexes.refresh(draft, was, member_id)
    if target.is_due(draft) or draft.deferred:
        draft.defer(member_id, lambda: _close(draft, command, member_id, change))
    else:
        _answer(draft, command, member_id, change)


def _placed(draft: Draft, command: JoinGroup) -> MemberId:
    """Return the id under which the caller joins, in the place of an older process if it has one.

    The same request finds the member that it made (S14).
    """
    if command.member_id:
        return command.member_id
    holder = static_members.holder_of(draft.group, command)
    if holder is None:
        return command.fresh_member_id
    draft.settle(holder.member_id)
    old: Member = draft.group.body.members[holder.member_id]
    if old.classic is not None and not old.released and _same_request(command, old.classic):
        return old.member_id
    profile = MemberProfile(
        command.caller.client_id,
        command.caller.client_host,
        command.session_timeout_ms,
        _rebalance_ms(command),
        command.protocols,
    )
    new_id, request_id = command.fresh_member_id, command.caller.request_id
    static_members.replace(draft, old, new_id, profile, request_id, "Q7")
    return new_id


def _same_request(command: JoinGroup, classic: ClassicProfile) -> bool:
    request_id = command.caller.request_id
    return bool(request_id) and request_id == classic.request_id


def _rebalance_ms(command: JoinGroup) -> int:
    """Return the rebalance timeout; -1 stands for the session timeout, as in Kafka's oldest one."""
    told_ms = command.rebalance_timeout_ms
    return command.session_timeout_ms if told_ms < 0 else told_ms


def _update(draft: Draft, command: JoinGroup, member_id: MemberId) -> Change:
    """Note what a member says of itself; it wants the topics of its first protocol."""
    known: Member | None = draft.group.body.members.get(member_id)
    request_id = command.caller.request_id
    if known is not None:  # the request that made the member is the one that may come again
        request_id = known.classic.request_id if known.classic is not None else ""
    classic = ClassicProfile(command.session_timeout_ms, command.protocols, request_id)
    return subscription.note(draft, member_id, command.instance_id, _profile(command), classic)


def _profile(command: JoinGroup) -> ConsumerProfile:
    """Return what a caller is; the service chooses the assignor."""
    return ConsumerProfile(
        client_id=command.caller.client_id,
        client_host=command.caller.client_host,
        rack_id=command.rack_id,
        rebalance_timeout_ms=_rebalance_ms(command),
        topics=tuple(sorted(set(command.protocols[0].topics or ()))),
    )


def _close(draft: Draft, command: JoinGroup, member_id: MemberId, change: Change) -> None:
    """Answer a join that waited for the batch to close.

    Its member is still there: what ends a member finishes first what it said before.
    """
    computing.bring(draft, command.member_id)
    _answer(draft, command, member_id, change)


def _answer(draft: Draft, command: JoinGroup, member_id: MemberId, change: Change) -> None:
    """Take a member's step, and answer its join; now it has to sync in time (K-Q10)."""
    reconciliation.advance(draft, member_id, command.owned, resubscribed=change.resubscribed)
    member: Member = draft.group.body.members[member_id]
    draft.cancel(DeadlineKey(REBALANCE, member_id))
    draft.arm(DeadlineKey(SYNC, member_id), sessions.rebalance_ms(draft, member))
    sessions.heard(draft, member_id)
    draft.answer(command.caller.call, told.joined(draft, member_id))
