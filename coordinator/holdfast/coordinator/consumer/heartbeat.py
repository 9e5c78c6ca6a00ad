"""ConsumerGroupHeartbeat: all that a member says, and the answer that assigns (K-M1 to K-M22).

The order is Kafka's: what needs no group, who it is, what it says of itself, the epoch of the
group, the target, its own step, the answer. A heartbeat that needs a new target waits for the close
of its batch, so that all of a batch share one (`target`).
"""

from __future__ import annotations

from holdfast.coordinator.consumer import answers, leave, sessions, validation
from holdfast.coordinator.consumer.identities import beat_order, identity, static_members
from holdfast.coordinator.consumer.state import CONSUMER, JOINING, RELEASED, ConsumerGroup, Member
from holdfast.coordinator.consumer.targets import (
    computing,
    epochs,
    reconciliation,
    regexes,
    subscription,
    target,
)
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.model.commands import ConsumerGroupHeartbeat
from holdfast.coordinator.model.consumer_events import MemberSubscribed
from holdfast.coordinator.model.events import GroupCreated
from holdfast.coordinator.model.levels import too_low
from holdfast.coordinator.model.rejections import GroupIdNotFound, Rejection


def heartbeat(draft: Draft, command: ConsumerGroupHeartbeat) -> None:
    """Answer a heartbeat, at once or as the batch closes."""
    _settle(draft, command)
    error = validation.of_heartbeat(draft, command) or _refusal(draft, command)
    if error is not None:
        kept_ms = static_members.kept_ms(draft, error)
        draft.answer(command.caller.call, answers.refused(error, kept_ms))
    elif command.member_epoch >= JOINING and beat_order.is_repeated(draft, command):
        _answer_again(draft, command)
    elif command.member_epoch == RELEASED:
        static_members.release(draft, command)
    elif command.member_epoch < JOINING:
        leave.goodbye(draft, command)
    else:
        _accept(draft, command)


def _answer_again(draft: Draft, command: ConsumerGroupHeartbeat) -> None:
    """Answer the last heartbeat once more, from what is: its answer was lost (S14).

    It may have been sent again, and its sender reckons from that (S11): so it renews the session.
    """
    sessions.heard(draft, command.member_id)
    draft.answer(command.caller.call, answers.beat(draft, command, None))


def _settle(draft: Draft, command: ConsumerGroupHeartbeat) -> None:
    """Finish what a member said before in this batch, if this may end it, or take its place.

    So it is before a join, which may begin another life, and before an answer from what is (S26).
    """
    if command.member_epoch <= JOINING or beat_order.is_repeated(draft, command):
        draft.settle(command.member_id)
    if command.instance_id is not None and draft.found is not None:
        holder = draft.found.body.instances.get(command.instance_id)
        if holder is not None and holder != command.member_id:
            draft.settle(holder)


def _refusal(draft: Draft, command: ConsumerGroupHeartbeat) -> Rejection | None:
    """Say why this caller may not say this, in this group as it is."""
    group: ConsumerGroup | None = draft.found
    if group is None and command.member_epoch != JOINING:
        return GroupIdNotFound(command.group_id)  # K-M6, K-M22
    error: Rejection | None = beat_order.refusal(draft, command)
    if error is None and command.member_epoch == JOINING:
        error = _of_join(draft, command)
    elif error is None:
        error = _of_member(draft, command)
    meant = command.instance_id
    if group is not None and meant is None and command.member_id in group.body.members:
        meant = group.body.members[command.member_id].instance_id
    principal = command.caller.principal
    return (
        error
        or identity.of_another(draft.state, group, meant, principal)
        or validation.of_regex(command)
        or subscription.too_much(draft, command)
    )


def _of_join(draft: Draft, command: ConsumerGroupHeartbeat) -> Rejection | None:
    """Check that the caller may be a member; a join that is repeated was checked (S14)."""
    low = too_low(draft.state, MemberSubscribed, "the heartbeat protocol")
    if low is None and beat_order.is_repeated(draft, command):
        return identity.check(draft.group, command.member_id, command.instance_id)
    return low or static_members.may_join(draft, command)


def _of_member(draft: Draft, command: ConsumerGroupHeartbeat) -> Rejection | None:
    """Check that the caller is a member, and speaks of its epoch; a leave speaks of none."""
    group: ConsumerGroup = draft.group
    stranger = identity.check(group, command.member_id, command.instance_id)
    leaves = command.member_epoch < JOINING
    if stranger is not None or leaves or beat_order.is_repeated(draft, command):
        return stranger
    member = group.body.members[command.member_id]
    return identity.check_epoch(draft, member, command.member_epoch, command.owned)


def _accept(draft: Draft, command: ConsumerGroupHeartbeat) -> None:
    """Take what a member says, and move it towards its target."""
    if draft.found is None:
        draft.emit(GroupCreated(CONSUMER), "M5")
    was = draft.group.body
    before = was.members.get(command.member_id)
    static_members.swap(draft, command)
    if command.regex:
        regexes.cut(draft, command.regex, command.caller.principal)
    change = subscription.update(draft, command)
    beat_order.hear(draft, command)
    epochs.raise_for(draft, change)
    regexes.refresh(draft, was, command.member_id)
    if target.is_due(draft) or draft.deferred:
        draft.defer(command.member_id, lambda: _close(draft, command, before, change))
    else:
        _answer(draft, command, before, change)


def _close(
    draft: Draft,
    command: ConsumerGroupHeartbeat,
    before: Member | None,
    change: subscription.Change,
) -> None:
    """Answer a heartbeat that waited for the batch to close.

    Its member is still there: what ends a member finishes first what it said before.
    """
    computing.bring(draft, command.member_id)
    _answer(draft, command, before, change)


def _answer(
    draft: Draft,
    command: ConsumerGroupHeartbeat,
    before: Member | None,
    change: subscription.Change,
) -> None:
    member_id, owned = command.member_id, command.owned
    resubscribed = change.resubscribed
    reconciliation.advance(draft, member_id, owned, resubscribed=resubscribed, beat=command.beat)
    beat_order.advanced(draft, command)
    if command.beat:
        sessions.lengthen(draft, before, member_id)
    sessions.agree(draft, member_id)
    sessions.heard(draft, member_id)
    draft.answer(command.caller.call, answers.beat(draft, command, before))
