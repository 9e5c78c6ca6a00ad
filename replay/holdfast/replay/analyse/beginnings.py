"""Where the timelines of a group begin in a log whose first records were cut off (S24).

A checkpoint tells who is a member and what each was granted, not since when, and not how the
rebalance began that is under way. Plain Python over a group's state: no Spark, no files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from holdfast.coordinator.classic.state import Member
from holdfast.coordinator.classic.transitions import PREPARING
from holdfast.coordinator.consumer import state as consumer
from holdfast.coordinator.model.ids import MemberId, TopicPartition
from holdfast.coordinator.model.state import STABLE, Group
from holdfast.replay.analyse.convergence import Convergence
from holdfast.replay.analyse.intervals import Held, Ledger
from holdfast.replay.analyse.ownership import CONSUMER, OwnershipTimeline
from holdfast.replay.analyse.rebalances import RebalanceTimeline
from holdfast.replay.analyse.stepwise import StepwiseTimeline

if TYPE_CHECKING:
    from holdfast.coordinator.consumer.state import ConsumerGroup


def owned_by(group: Group[Any], begun_ms: int) -> OwnershipTimeline:
    """Return a timeline in which all that is owned has been owned since `begun_ms`."""
    if group.group_type == consumer.CONSUMER:
        stepwise = _stepwise(group, begun_ms)
        return OwnershipTimeline(group.group_id, now_ms=begun_ms, stepwise=stepwise)
    return _by_generations(group, begun_ms)


def _stepwise(group: ConsumerGroup, begun_ms: int) -> StepwiseTimeline:
    ledger = Ledger(group.group_id)
    speaking = {m.member_id for m in group.body.members.values() if m.classic is not None}
    timeline = StepwiseTimeline(ledger, owners=_owners(group), classic=speaking)
    timeline.predecessors_until_ms = group.body.predecessors_until_ms
    for member in group.body.members.values():
        member_id, name = member.member_id, timeline.owners[member.member_id]
        tokens = dict(_tokens((*member.owned, *member.revoking)))
        if member.released:
            timeline.kept[member_id] = tokens
            continue
        timeline.asked[member_id] = set(consumer.places(member.revoking))
        for place, token in tokens.items():
            grant = Held(name, token, begun_ms, member.predecessor_ms)
            ledger.held[place, member_id] = grant
    return timeline


def _tokens(held: Iterable[consumer.Holding]) -> Iterator[tuple[TopicPartition, int]]:
    for each in held:
        for number, index in zip(each.partitions, each.granted, strict=True):
            yield TopicPartition(each.topic, number), index


def _by_generations(group: Group[Any], begun_ms: int) -> OwnershipTimeline:
    timeline = OwnershipTimeline(
        group.group_id,
        owners=_owners(group),
        consumer=group.body.protocol_type == CONSUMER,
        stable=group.state == STABLE,
        now_ms=begun_ms,
    )
    for member in group.body.members.values():
        timeline.hold(member, begun_ms, in_force=_in_force(group, member))
    return timeline


def named_by(group: Group[Any]) -> RebalanceTimeline:
    """Return a timeline that knows the members' names; a rebalance under way is not in it."""
    timeline = RebalanceTimeline(group.group_id, owners=_owners(group), generation=group.generation)
    if group.group_type == consumer.CONSUMER:
        timeline.convergence = _converging(group)
    return timeline


def _converging(group: ConsumerGroup) -> Convergence:
    """Return who is on the way to the target."""
    body = group.body
    asked = {m.member_id: set(consumer.places(m.revoking)) for m in body.members.values()}
    return Convergence(
        set(body.members),
        {member_id for member_id in body.members if member_id not in body.settled},
        {member_id: places for member_id, places in asked.items() if places},
        body.assignment_epoch,
    )


def _owners(group: Group[Any]) -> dict[MemberId, str]:
    return {m.member_id: m.instance_id or m.member_id for m in group.body.members.values()}


def _in_force(group: Group[Any], member: Member) -> bool:
    """Return whether a member holds its grant: until the next generation, unless it released it.

    A swap in an open join phase passes on what comes back with the next assignment only.
    """
    if member.released:
        return False
    before = group.state == PREPARING and member.since_ms < group.state_since_ms
    return group.state == STABLE or before
