"""What a new leader arms for each group before it serves it.

No session can expire because a leader died: every deadline starts anew, in full (S9, S16).
"""

from __future__ import annotations

from holdfast.coordinator.classic import rebalance
from holdfast.coordinator.classic.transitions import COMPLETING, PREPARING
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.model.pmap import PMap
from holdfast.coordinator.model.volatile import JOIN_PHASE, OVERSIZE, SYNC, DeadlineKey


def take_over(draft: Draft) -> None:
    """Arm what the group's state needs (K-L4, S16).

    An open join phase starts again without rejoined members and with its full time. It closes as
    soon as all are there, even if an initial delay was running before.
    """
    group = draft.group
    for member_id in group.body.members:
        draft.arm_session(member_id)
    if group.state == PREPARING:
        draft.arm(DeadlineKey(JOIN_PHASE), group.body.round_timeout_ms)
    elif group.state == COMPLETING:
        awaiting = PMap((each, True) for each in group.body.rejoined if each in group.body.members)
        draft.volatile = draft.volatile._replace(awaiting_sync=awaiting)
        longest_ms = max(
            member.profile.rebalance_timeout_ms for member in group.body.members.values()
        )
        draft.arm(DeadlineKey(SYNC), longest_ms)
    if rebalance.too_large(draft):
        draft.arm(DeadlineKey(OVERSIZE), 0)
