"""Who gets the place of a static member: `group.consumer_takeover` (K-N11 to K-N13).

It says who may; the swap itself is in `static_members`.
"""

from __future__ import annotations

from typing import Final

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.consumer.identities import identity
from holdfast.coordinator.consumer.state import ConsumerGroup, Member
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.model.commands import ConsumerGroupHeartbeat
from holdfast.coordinator.model.rejections import Rejection

NEWEST: Final = "newest"
AFTER_SESSION: Final = "after_session"
"""Policies of `group.consumer_takeover`; the third is Kafka's."""


def may_take(draft: Draft, command: ConsumerGroupHeartbeat, holder: Member) -> Rejection | None:
    """Say why a caller may not take the place of a static member, or come back to its own.

    A process of the classic protocol cannot say that it stops, so nobody waits for it (K-N13); but
    one that such a process has replaced does not come back. Of processes that tell their lives the
    newest one has the place, if the group's policy says so.
    """
    group: ConsumerGroup = draft.group
    instance_id = str(holder.instance_id)
    if command.beat and not holder.life and command.life <= holder.replaced_life:
        return identity.fenced(group, instance_id)
    policy = settings.of(draft.state, draft.group_id).consumer.takeover
    comparable = bool(command.beat and holder.life)
    if comparable and command.life < holder.life and policy == NEWEST:
        return identity.fenced(group, instance_id)
    if holder.released or holder.classic is not None:
        return None
    if comparable and command.life == holder.life and command.member_id == holder.member_id:
        return None  # K-N12, bettered: it is the very process that has the place
    principal = command.caller.principal
    newer = comparable and command.life > holder.life and holder.principal == principal
    if newer and policy == NEWEST and command.member_id != holder.member_id:
        return None
    waited_for = bool(command.beat) and policy == AFTER_SESSION
    return identity.unreleased(group, instance_id, waited_for=waited_for)  # K-N11, K-N12
