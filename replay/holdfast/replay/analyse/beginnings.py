"""Where the timelines of a group begin in a log whose first records were cut off (S24).

A checkpoint tells who is a member and what each was granted, not since when, and not how the
rebalance began that is under way. Plain Python over a group's state: no Spark, no files.
"""

from __future__ import annotations

from typing import Any

from holdfast.coordinator.classic.state import Member
from holdfast.coordinator.classic.transitions import PREPARING
from holdfast.coordinator.model.ids import MemberId
from holdfast.coordinator.model.state import STABLE, Group
from holdfast.replay.analyse.ownership import CONSUMER, OwnershipTimeline
from holdfast.replay.analyse.rebalances import RebalanceTimeline


def owned_by(group: Group[Any], begun_ms: int) -> OwnershipTimeline:
    """Return a timeline in which all that is owned has been owned since `begun_ms`."""
    consumer = group.body.protocol_type == CONSUMER
    timeline = OwnershipTimeline(
        group.group_id,
        owners=_owners(group),
        consumer=consumer,
        stable=group.state == STABLE,
        now_ms=begun_ms,
    )
    for member in group.body.members.values():
        timeline.hold(member, begun_ms, in_force=_in_force(group, member))
    return timeline


def named_by(group: Group[Any]) -> RebalanceTimeline:
    """Return a timeline that knows the members' names; a rebalance under way is not in it."""
    return RebalanceTimeline(group.group_id, owners=_owners(group), generation=group.generation)


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
