"""When a member of the classic protocol has to join again, and how long it may take (K-Q9, K-Q10).

The time runs from the first heartbeat that says so: all that the member may do by an earlier one
ends before (S11).
"""

from __future__ import annotations

from holdfast.coordinator.consumer import holdings, sessions
from holdfast.coordinator.consumer.state import UNRELEASED, UNREVOKED, ConsumerGroup, Member
from holdfast.coordinator.consumer.targets import target
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.model.ids import TopicPartition
from holdfast.coordinator.model.volatile import REBALANCE, DeadlineKey


def must_rejoin(draft: Draft, member: Member) -> bool:
    """Return whether a join would take a member further: only joins do."""
    if member.state == UNREVOKED or is_behind(draft, member):
        return True
    return member.state == UNRELEASED and _all_free(draft.group, member)


def is_behind(draft: Draft, member: Member) -> bool:
    """Return whether there is a later target than the member's, or its join would bring one.

    That the group epoch is later is not enough: the target may be on its way, or not be due yet.
    Then a join brings nothing, and who is told to join by its answer would do so without a pause.
    """
    group: ConsumerGroup = draft.group
    return member.epoch < group.body.assignment_epoch or target.is_due(draft)


def _all_free(group: ConsumerGroup, member: Member) -> bool:
    """Return whether nobody else owns anything of a member's target any more."""
    body = group.body
    target = body.targets.get(member.member_id)
    wanted = holdings.pairs(target.partitions) if target else frozenset()
    owners = (body.owners.get(TopicPartition(*each)) for each in wanted)
    return all(owner in {None, member.member_id} for owner in owners)


def tell(draft: Draft, member: Member, *, rejoin: bool) -> None:
    """Start the time in which a member has to join, or stop it."""
    key = DeadlineKey(REBALANCE, member.member_id)
    if not rejoin:
        draft.cancel(key)
    elif key not in draft.volatile.armed:
        draft.arm(key, sessions.rebalance_ms(draft, member))
