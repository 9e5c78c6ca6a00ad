"""Has a target computed: at once, or beside the group's work where that takes long (K-M20).

Long is what exceeds `group.consumer_inline_work`, and what an entry cannot hold beside the steps of
members (S7). Until the node has computed it the group is Assigning: heartbeats are answered by the
target in force. The result is a command, and is looked at like one of a stranger: the group may
have changed, and then another target is computed, for all changes together. Who is overtaken again
and again has the next one computed at once, so nobody waits for ever (INV-16).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.consumer import usage
from holdfast.coordinator.consumer.client_side import choice
from holdfast.coordinator.consumer.state import ConsumerBody
from holdfast.coordinator.consumer.targets import epochs, target, topics_digest
from holdfast.coordinator.consumer.targets.reconciliation import subscriptions
from holdfast.coordinator.consumer.targets.subscription import Change
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.model.consumer_events import MemberTarget
from holdfast.coordinator.model.effects import ComputeTarget, InstallTarget
from holdfast.coordinator.model.ids import MemberId, TopicName
from holdfast.coordinator.model.volatile import TargetWork

TRIES_MAX: Final = 3
"""So many targets in a row may be overtaken; the next one is computed at once."""
SHARE: Final = 3
"""A target may be a third of an entry to be computed at once: with it come a member's step, which
frees and grants about as much at most, and what the member says."""


def bring(draft: Draft, speaker: MemberId) -> None:
    """Have the target of the group epoch computed, if it is time; `speaker`: by whose heartbeat."""
    if not target.is_due(draft):
        return
    if choice.ask(draft, speaker):
        return
    if _is_long(draft):
        _ask(draft)
    else:
        target.compute(draft)


def _is_long(draft: Draft) -> bool:
    """Return whether a target takes too long to compute, or too much of an entry."""
    body: ConsumerBody = draft.group.body
    sizes = topics_digest.sizes(body, draft.state.topics)
    allowed = settings.of(draft.state, draft.group_id).consumer.inline_work
    if len(body.members) + sum(sizes.values()) > allowed:
        return True
    most = settings.of_cluster(draft.state).entry_bytes_max // SHARE
    return usage.target_most(body, draft.state.topics, len(body.members)) > most


def _ask(draft: Draft) -> None:
    """Have the node compute it."""
    body, epoch, last = draft.group.body, draft.group.generation, draft.volatile.target_work
    tries = 1 if last is None else last.tries + 1
    work = TargetWork(epoch, draft.state.log_time_ms, under_way=True, tries=tries)
    draft.volatile = draft.volatile._replace(target_work=work)
    sizes = topics_digest.sizes(body, draft.state.topics)
    assignor = target.assignor_in_force(draft)
    draft.effects.append(ComputeTarget(epoch, assignor, target.group_spec(body), sizes))


def install(draft: Draft, command: InstallTarget) -> None:
    """Store a target that was computed beside the group's work, if it is true of the group now.

    It is passed over if nobody waits for it: the leader or the group is another one since.
    """
    work = draft.volatile.target_work
    if work is None or not work.under_way or work.epoch != command.epoch:
        return
    draft.volatile = draft.volatile._replace(target_work=work._replace(under_way=False))
    if draft.found is None or not draft.group.body.members:
        return
    epochs.raise_for(draft, Change())  # nobody may have looked at the topics since
    if not target.is_due(draft):
        return
    body = draft.group.body
    sizes = topics_digest.sizes(body, draft.state.topics)
    if choice.ask(draft, ""):
        return  # since it was asked for, all members have come to share an assignor
    if draft.group.generation == command.epoch and not untruth(body, sizes, command.targets):
        accept(draft, command)
    elif work.tries < TRIES_MAX:
        bring(draft, "")
    else:
        target.compute(draft)  # here nothing else is decided, so an entry holds it


def accept(draft: Draft, command: InstallTarget) -> None:
    """Store a target that was found true of the group as it is."""
    assigned = {each.member_id: each for each in command.targets}
    target.store(draft, command.assignor, assigned, command.installed_by)


def untruth(
    body: ConsumerBody, sizes: Mapping[TopicName, int], targets: Sequence[MemberTarget]
) -> str:
    """Say what of a target is not true of the group; "": all is.

    It names members, each once, and what they want, each partition once.
    """
    members = [body.members[each.member_id] for each in targets if each.member_id in body.members]
    if len(members) < len(targets):
        stranger = next(each.member_id for each in targets if each.member_id not in body.members)
        return f"{stranger!r} is no member of the group"
    if len({each.member_id for each in members}) < len(targets):
        return "a member is named twice"
    taken: dict[TopicName, set[int]] = {topic: set() for topic in sizes}
    for given, (_, wanted) in zip(targets, subscriptions(body, members), strict=True):
        for topic, numbers in given.partitions:
            if topic not in wanted or topic not in sizes:
                return f"member {given.member_id!r} does not subscribe to {topic!r}, or it is gone"
            before = len(taken[topic])
            taken[topic].update(numbers)
            if len(taken[topic]) < before + len(numbers):
                return f"a partition of {topic!r} is named twice"
    return _out_of_range(taken, sizes)


def _out_of_range(taken: Mapping[TopicName, set[int]], sizes: Mapping[TopicName, int]) -> str:
    for topic, numbers in taken.items():
        if numbers and (min(numbers) < 0 or max(numbers) >= sizes[topic]):
            return f"{topic!r} has the partitions 0 to {sizes[topic] - 1} alone"
    return ""
