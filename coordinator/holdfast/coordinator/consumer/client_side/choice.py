"""Who computes the target: one member is chosen, told so, and relieved if it takes too long.

The choice is on the log, so a failover changes nothing of it. The member that speaks is chosen if
it can do it: it lives, and its answer tells it at once. Who was too late before is asked last. A
chosen member that does not install a target within its rebalance timeout is not fenced: another is
chosen, and so at once if it says that it makes none. It stays the chosen one when the group changes
meanwhile.
"""

from __future__ import annotations

from typing import Final

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.consumer import sessions
from holdfast.coordinator.consumer.client_side import negotiation, picture
from holdfast.coordinator.consumer.client_side.negotiation import Shared
from holdfast.coordinator.consumer.state import ConsumerBody, ConsumerGroup
from holdfast.coordinator.consumer.targets import topics_digest
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.model.consumer_events import AssignmentRequested, EpochRaised
from holdfast.coordinator.model.ids import MemberId
from holdfast.coordinator.model.volatile import COMPUTE, DeadlineKey

RULE: Final = "KIP-848"
"""Kafka never built this: its text is the rule."""
_KEY: Final = DeadlineKey(COMPUTE)
PROBLEM_MAX: Final = 256
"""So many characters of why a member makes no target go on the log (S7)."""


def is_asked(group: ConsumerGroup) -> bool:
    """Return whether a member computes the target of the group epoch, as far as is known."""
    asked = group.body.asked
    return asked is not None and asked.epoch == group.generation


def should_compute(group: ConsumerGroup, member_id: MemberId) -> bool:
    """Return whether it is this member that is to compute the target."""
    asked = group.body.asked
    return is_asked(group) and asked is not None and asked.member_id == member_id


def ask(draft: Draft, speaker: MemberId) -> bool:
    """Have a member compute the target, which is due; return False if the service has to."""
    group: ConsumerGroup = draft.group
    shared = negotiation.shared(group.body)
    if shared is None or not picture.fits(group.body, draft.state.topics, shared.name):
        return False
    before = group.body.asked
    chosen = _chosen(group.body, shared, speaker)
    draft.emit(AssignmentRequested(chosen, group.generation, shared.name), RULE)
    if before is None or before.member_id != chosen or _KEY not in draft.volatile.armed:
        arm(draft)
    return True


def relieve(draft: Draft, problem: str = "") -> None:
    """Choose another member, since the chosen one has not installed a target in time.

    `problem`: why it makes none, if it has said so. If nobody can compute one any more, the next
    heartbeat has the service compute it: also if the group has become too large meanwhile.
    """
    group: ConsumerGroup = draft.group
    asked, shared = group.body.asked, negotiation.shared(group.body)
    if asked is None or shared is None:
        return
    if not picture.fits(group.body, draft.state.topics, shared.name):
        _void(draft)
        return
    late = asked.member_id
    others = shared._replace(able=shared.able - {late}) if len(shared.able) > 1 else shared
    chosen = _chosen(group.body._replace(asked=None), others, "")
    told = AssignmentRequested(chosen, group.generation, shared.name, late, problem[:PROBLEM_MAX])
    draft.emit(told, RULE)
    arm(draft)


def _void(draft: Draft) -> None:
    """Raise the epoch, so that nobody is asked for the target of the newest one."""
    if is_asked(draft.group):
        epoch = draft.group.generation + 1
        draft.emit(EpochRaised(epoch, "assignor", topics_digest.now(draft)), RULE)


def _chosen(body: ConsumerBody, shared: Shared, speaker: MemberId) -> MemberId:
    """Return who is to compute: who does already, or who speaks, or the oldest; the late ones last.

    Of those that were late, the one for which that is longest ago. One that was late, and does
    already, was asked again because there was nobody else: who has come since, is asked now.
    """
    before = "" if body.asked is None else body.asked.member_id
    if before in shared.able and before not in body.late:
        return before
    lateness = {member_id: place for place, member_id in enumerate(body.late, 1)}

    def rank(member_id: MemberId) -> tuple[int, bool, int]:
        seniority = body.members[member_id].joined_seq
        return lateness.get(member_id, 0), member_id != speaker, seniority

    return min(shared.able, key=rank)


def arm(draft: Draft) -> None:
    """Start the time of the chosen member; it cannot be shorter than the way to its next beat."""
    body: ConsumerBody = draft.group.body
    if body.asked is None:
        return
    in_force = settings.of(draft.state, draft.group_id).consumer
    after_ms = sessions.rebalance_ms(draft, body.members[body.asked.member_id])
    draft.arm(_KEY, max(after_ms, in_force.heartbeat_interval_ms))


def rest(draft: Draft) -> None:
    """Stop the time of the chosen member: there is a target, or the member is gone."""
    draft.cancel(_KEY)
