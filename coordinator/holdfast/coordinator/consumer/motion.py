"""What a member has to do next to own its target: whoever pushes hints asks this.

It decides nothing: a member moves by its own heartbeat, and only there (`targets.reconciliation`).
"""

from __future__ import annotations

from holdfast.coordinator.consumer import holdings
from holdfast.coordinator.consumer.client_side import choice
from holdfast.coordinator.consumer.state import ConsumerGroup
from holdfast.coordinator.consumer.targets import target
from holdfast.coordinator.groups.group_type import Move
from holdfast.coordinator.model.ids import MemberId, TopicPartition
from holdfast.coordinator.model.state import State


def target_due_ms(state: State, group: ConsumerGroup) -> int | None:
    """Return when the heartbeat of any member brings a target for the group epoch (K-P15).

    None if it has one. Nobody can bring one to a group without members, and nobody waits for it.
    While a member computes it, others can do nothing for it.
    """
    waits = group.generation > group.body.assignment_epoch and bool(group.body.members)
    if not waits or choice.is_asked(group):
        return None
    return target.due_ms(state, group)


def move(group: ConsumerGroup, member_id: MemberId) -> Move | None:
    """Return what a member has to do; None: it owns what it is to own, or its process has stopped.

    A member that owns all of the target and does not know its epoch yet is in no hurry.
    """
    body = group.body
    member = body.members.get(member_id)
    if member is None or member.released or member_id in body.settled:
        return None
    target = body.targets.get(member_id)
    meant = () if target is None else target.partitions
    if holdings.listed(member.owned) == meant and not member.revoking:
        return None
    wanted, owned = holdings.pairs(meant), holdings.pairs(member.owned)
    places = [TopicPartition(*each) for each in wanted - owned]
    blocked = [each for each in places if body.owners.get(each, member_id) != member_id]
    return Move(not owned <= wanted, bool(member.revoking), frozenset(blocked))
