"""What a new leader does with each group before it serves it, and an old one with its parked calls.

No session can expire because a leader died: every deadline starts anew, in full (S9, S16).
"""

from __future__ import annotations

from holdfast.coordinator.decide.draft import NOBODY, Draft
from holdfast.coordinator.effects import Answer
from holdfast.coordinator.pmap import PMap
from holdfast.coordinator.rejections import NotCoordinator
from holdfast.coordinator.replies import JoinReply, SyncReply
from holdfast.coordinator.state import COMPLETING, PREPARING
from holdfast.coordinator.volatile import ROUND, SYNC, DeadlineKey, Volatile


def take_over(draft: Draft) -> None:
    """Arm what the group's state asks for (L4, S16).

    An open join phase starts with nobody rejoined and its full time, and it closes as soon as all
    are there, even if an initial delay was running before.
    """
    group = draft.group
    for member_id in group.members:
        draft.arm_session(member_id)
    if group.state == PREPARING:
        draft.arm(DeadlineKey(ROUND), group.round_timeout_ms)
    elif group.state == COMPLETING:
        awaiting = PMap((each, True) for each in group.rejoined if each in group.members)
        draft.volatile = draft.volatile._replace(awaiting_sync=awaiting)
        longest_ms = max(member.rebalance_timeout_ms for member in group.members.values())
        draft.arm(DeadlineKey(SYNC), longest_ms)


def dismissed(volatile: Volatile) -> tuple[Answer, ...]:
    """The answers to all parked calls of a node that leads no more (L16, S5)."""
    joins = (
        Answer(join.call, JoinReply(NotCoordinator(), member_id=member_id))
        for member_id, join in volatile.joins.items()
        if join.call != NOBODY
    )
    syncs = (Answer(sync.call, SyncReply(NotCoordinator())) for sync in volatile.syncs.values())
    return (*joins, *syncs)
