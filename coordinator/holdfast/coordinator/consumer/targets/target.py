"""Computes the target of a group: who is to own what (K-P11, K-P15 to K-P17).

A change raises the group epoch; the next heartbeat finds that the target is older and computes it.
All heartbeats of one batch share one target: those that need it wait for the batch to close. Where
it is computed, `computing` says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.consumer import usage
from holdfast.coordinator.consumer.assignors import ASSIGNORS, GroupSpec, MemberSpec
from holdfast.coordinator.consumer.client_side import choice, negotiation
from holdfast.coordinator.consumer.state import NEVER, ConsumerBody, ConsumerGroup
from holdfast.coordinator.consumer.targets import topics_digest
from holdfast.coordinator.consumer.targets.reconciliation import subscriptions
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.model.consumer_events import MemberTarget, TargetStored
from holdfast.coordinator.model.ids import MemberId, TopicPartitions
from holdfast.coordinator.model.state import State

LOST_MS: Final = 60_000
"""After so long a target that is computed beside the group's work counts as lost."""


def is_due(draft: Draft) -> bool:
    """Return whether the target is to be computed now, and is under way nowhere.

    The last one must be old enough (K-P15), but for the first since the group had members (K-P17).
    """
    group: ConsumerGroup = draft.group
    if group.generation <= group.body.assignment_epoch or _is_under_way(draft):
        return False
    if choice.is_asked(group):
        return False
    if not _fits(draft):
        return False
    return draft.state.log_time_ms >= due_ms(draft.state, group)


def due_ms(state: State, group: ConsumerGroup) -> int:
    """Return the log time from which on the group may have another target (K-P15); 0: at once."""
    since_ms = group.body.target_ms
    interval_ms = settings.of(state, group.group_id).consumer.assignment_interval_ms
    return 0 if since_ms == NEVER else since_ms + interval_ms


def _is_under_way(draft: Draft) -> bool:
    """Return whether the node computes a target, and may be expected to bring it."""
    work, now_ms = draft.volatile.target_work, draft.state.log_time_ms
    return work is not None and work.under_way and now_ms - work.asked_ms <= LOST_MS


def _fits(draft: Draft) -> bool:
    """Return whether any target can be written (S7).

    Subscriptions are refused before that; but topics may grow. Then members keep what they have.
    """
    group: ConsumerGroup = draft.group
    most = usage.target_pool(settings.of(draft.state, draft.group_id))
    return usage.target_most(group.body, draft.state.topics, len(group.body.members)) <= most


def compute(draft: Draft) -> None:
    """Compute the target of the group epoch, and store what is new in it."""
    body: ConsumerBody = draft.group.body
    sizes = topics_digest.sizes(body, draft.state.topics)
    name = assignor_in_force(draft)
    assigned = ASSIGNORS[name](group_spec(body), sizes)
    store(draft, name, {each: MemberTarget(each, given) for each, given in assigned.items()})


def store(
    draft: Draft,
    assignor: str,
    assigned: Mapping[MemberId, MemberTarget],
    installed_by: MemberId = "",
) -> None:
    """Store what is new in a target of the group epoch; who is not in it is to own nothing."""
    group: ConsumerGroup = draft.group
    changed = tuple(_changed(group.body, assigned))
    passed_over = "" if installed_by else negotiation.name_of(group.body)
    stored = TargetStored(group.generation, assignor, changed, installed_by, passed_over)
    rule = "M5" if group.body.assignment_epoch == 1 else "M20"
    draft.emit(stored, choice.RULE if installed_by else rule)
    choice.rest(draft)
    draft.volatile = draft.volatile._replace(target_work=None)


def assignor_in_force(draft: Draft) -> str:
    """Return the service's assignor that most members would have, else the first (K-P11)."""
    known = settings.of(draft.state, draft.group_id).consumer.assignors
    return preferred(draft.group.body, known)


def preferred(body: ConsumerBody, known: tuple[str, ...]) -> str:
    """Return the assignor that most members would have, of a tie the first of the settings.

    One that the settings do not have any more counts no more.
    """
    return max(known, key=lambda name: body.assignor_users.get(name, 0))


def group_spec(body: ConsumerBody) -> GroupSpec:
    """Return what an assignor is told of the group."""
    members = {
        member.member_id: MemberSpec(
            *(member.instance_id, member.profile.rack_id),
            *(topics, _target_of(body, member.member_id)),
        )
        for member, topics in subscriptions(body, body.members.values())
    }
    return GroupSpec(members, _is_homogeneous(body))


def _is_homogeneous(body: ConsumerBody) -> bool:
    """Return whether all members name the same topics, or have one regular expression alone."""
    everyone = {len(body.members)}
    by_regex = set(body.regex_users.values()) == everyone and not body.topic_users
    by_name = set(body.topic_users.values()) <= everyone and not body.regex_users
    return by_name or (by_regex and len(body.regex_users) == 1)


def _target_of(body: ConsumerBody, member_id: MemberId) -> tuple[TopicPartitions, ...]:
    target = body.targets.get(member_id)
    return () if target is None else target.partitions


def _changed(body: ConsumerBody, assigned: Mapping[MemberId, MemberTarget]) -> list[MemberTarget]:
    """Return the targets that are not as before, in the order of the members' ids."""
    found = [assigned.get(each, MemberTarget(each, ())) for each in sorted(body.members)]
    return [each for each in found if each != _known(body, each.member_id)]


def _known(body: ConsumerBody, member_id: MemberId) -> MemberTarget:
    return body.targets.get(member_id) or MemberTarget(member_id, ())
