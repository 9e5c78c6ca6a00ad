"""Members that come back: by id, or as a static instance in a new process.

Rules K-A14 to K-A20, K-B3 to K-B18.
"""

from __future__ import annotations

from holdfast.coordinator.classic import (
    answers,
    identity,
    parked_calls,
    protocol_votes,
    rebalance,
    validation,
)
from holdfast.coordinator.classic.state import ClassicGroup, Member
from holdfast.coordinator.classic.transitions import COMPLETING, PREPARING
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.model.commands import JoinGroup
from holdfast.coordinator.model.events import MemberUpdated, StaticMemberReplaced
from holdfast.coordinator.model.ids import MemberId
from holdfast.coordinator.model.member_profile import Protocol
from holdfast.coordinator.model.state import STABLE
from holdfast.coordinator.model.volatile import SYNC, DeadlineKey


def known(draft: Draft, command: JoinGroup, member: Member) -> None:
    """Decide a join of a member with its own id, which may ask for a rebalance by it (K-A15)."""
    group, unchanged = draft.group, member.profile.protocols == command.protocols
    if group.state == PREPARING:
        _update(draft, command, member, "A20")
        _park(draft, command, member.member_id)
    elif unchanged and (group.state == COMPLETING or _is_retry(command, member)):
        _answer_again(draft, command, member, "A17")
    elif unchanged and not group.body.is_leader(member.member_id):
        _answer_again(draft, command, member, "A14")
    else:
        rule = "A15" if unchanged else "A16" if group.state == STABLE else "A18"
        _update(draft, command, member, rule)
        reason = command.reason or _why(unchanged=unchanged)
        rebalance.open_join_phase(draft, rule, reason, member.member_id)
        _park(draft, command, member.member_id)


def _why(*, unchanged: bool) -> str:
    return "the leader asks for it" if unchanged else "a member's protocols changed"


def _is_retry(command: JoinGroup, member: Member) -> bool:
    """Return whether this join was served before and only its answer was lost (S14).

    The same id with other protocols is no repetition, but a new join.
    """
    request_id = command.caller.request_id
    same = request_id == member.request_id and command.protocols == member.profile.protocols
    return bool(request_id) and same


def _park(draft: Draft, command: JoinGroup, member_id: MemberId) -> None:
    parked_calls.park_join(draft, command.caller, member_id)
    rebalance.close_if_complete(draft)


def _update(draft: Draft, command: JoinGroup, member: Member, rule: str) -> None:
    """Record what is new about a member, if anything is (K-B17 bettered: timeouts count)."""
    known_as, profile = member.profile, validation.profile(command)
    if profile._replace(client_id=known_as.client_id, client_host=known_as.client_host) != known_as:
        event = MemberUpdated(member.member_id, profile, command.caller.request_id)
        draft.emit(event, rule)


def _answer_again(draft: Draft, command: JoinGroup, member: Member, rule: str) -> None:
    """Answer with the present generation and start nothing (K-A14, K-A17, S14).

    The leader gets the member list while it has still to assign. In a stable group it is told to
    skip that (K-B4); there only a retry comes here.
    """
    _update(draft, command, member, rule)
    group = draft.group
    leads = group.body.is_leader(member.member_id)
    reply = answers.joined(
        draft.state,
        group,
        member.member_id,
        members=answers.member_list(group) if leads else (),
        skip_assignment=leads and group.state == STABLE,
    )
    draft.answer(command.caller.call, reply)
    draft.renew(member.member_id)


# --- the static swap (KIP-345) ---


def returning(draft: Draft, command: JoinGroup, old: Member) -> None:
    """Decide a static instance's join with an empty member id: a new process, or a retry (S14).

    A retry by a process that was replaced meanwhile must not take the identity back: it was served
    once, and its holder is fenced.
    """
    if command.caller.request_id and command.caller.request_id in old.replaced_requests:
        error = identity.fenced(draft.group, old.instance_id or "")
        draft.answer(command.caller.call, answers.refused_join(error, command.member_id))
        return
    if _is_retry(command, old) and not old.released:
        if draft.group.state == PREPARING:
            _park(draft, command, old.member_id)
        else:
            _answer_again(draft, command, old, "S14")
        return
    before = draft.group
    _swap(draft, command, old)
    new_id = command.fresh_member_id
    cause = _rebalance_needed(draft, before, old)
    if before.state == STABLE and cause is None:
        _hand_over(draft, command, new_id)
        return
    rule, reason = cause or ("B11", "")
    rebalance.open_join_phase(draft, rule, reason, new_id)
    _park(draft, command, new_id)


def _swap(draft: Draft, command: JoinGroup, old: Member) -> None:
    """Fence the old id and bind the new one, in one event; nothing of the old id stays (K-B20)."""
    instance_id = old.instance_id or ""
    event = StaticMemberReplaced(
        instance_id=instance_id,
        old_member_id=old.member_id,
        new_member_id=command.fresh_member_id,
        profile=validation.profile(command),
        request_id=command.caller.request_id,
        predecessor_ms=_predecessor_ms(draft, old),
    )
    draft.emit(event, "B3")
    parked_calls.refuse(
        draft, old.member_id, identity.fenced(draft.group, instance_id), old.member_id
    )
    parked_calls.forget(draft, old.member_id)
    awaiting = draft.volatile.awaiting_sync
    if old.member_id in awaiting:
        rest = awaiting.remove(old.member_id)
        draft.volatile = draft.volatile._replace(awaiting_sync=rest)
        if not rest:
            draft.cancel(DeadlineKey(SYNC))


def _predecessor_ms(draft: Draft, old: Member) -> int:
    """Return how long an older holder may still act (S12): the last one, or those before it.

    One that was never granted anything has nothing to act on. The time of those before it runs from
    when they went, which the body knows.
    """
    own_ms = 0 if old.released or not old.granted_index else old.profile.session_timeout_ms
    rest_ms = draft.group.body.predecessors_until_ms - draft.state.log_time_ms
    return max(own_ms, rest_ms if old.predecessor_ms else 0, 0)


def _rebalance_needed(draft: Draft, before: ClassicGroup, old: Member) -> tuple[str, str] | None:
    """Return why the swap must start a rebalance, as rule and reason for people.

    None: it need not.
    """
    group = draft.group
    if group.state == COMPLETING:
        return "B12", "a static member came back while the assignment was awaited"
    if group.state != STABLE:
        return None
    new_id = group.body.instances[old.instance_id or ""]
    new = group.body.members[new_id]
    if (
        not protocol_votes.same_names(old.profile.protocols, new.profile.protocols)
        and _vote(group) != group.body.protocol_name
    ):
        return "B8", "a static member came back, and another protocol wins the vote"
    if not before.body.is_leader(old.member_id) and _topics(group, old) != _topics(group, new):
        return "B6", "a static member came back with other topics"
    return None


def _vote(group: ClassicGroup) -> str:
    members = tuple(group.body.members.values())
    return protocol_votes.vote(members, protocol_votes.count(members))


def _topics(group: ClassicGroup, member: Member) -> frozenset[str] | None:
    """Return the topics that a member subscribes to; None unless the type is `consumer`.

    A leader that comes back sees all subscriptions and asks for a rebalance itself (KIP-814).
    """
    chosen: Protocol | None = next(
        (p for p in member.profile.protocols if p.name == group.body.protocol_name), None
    )
    return None if chosen is None or chosen.topics is None else frozenset(chosen.topics)


def _hand_over(draft: Draft, command: JoinGroup, member_id: MemberId) -> None:
    """Give the new process what the old one held, so that nothing moves (K-B3, K-B4)."""
    group = draft.group
    leads = group.body.is_leader(member_id)
    reply = answers.joined(
        draft.state,
        group,
        member_id,
        members=answers.member_list(group) if leads else (),
        skip_assignment=leads,
    )
    draft.answer(command.caller.call, reply)
    draft.arm_session(member_id)
