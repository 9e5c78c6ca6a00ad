"""One step of a member towards its target: revoke before assign, partition by partition.

Rules K-O1 to K-O17 (kafka: CurrentAssignmentBuilder). A partition is free once its holder's release
is on the log; then whoever is to own it takes it at its own next heartbeat. The step is a function
of the member, its target, and what it says that it owns; `advance` puts it on the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.consumer import holdings, sessions
from holdfast.coordinator.consumer.holdings import Pairs
from holdfast.coordinator.consumer.state import (
    UNRELEASED,
    UNREVOKED,
    ConsumerBody,
    Member,
    is_settled,
)
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.groups.sizes import of_event, of_partitions
from holdfast.coordinator.model.consumer_events import MemberAdvanced
from holdfast.coordinator.model.ids import MemberId, TopicName, TopicPartition, TopicPartitions
from holdfast.coordinator.model.volatile import REBALANCE, DeadlineKey

_NONE: Pairs = frozenset()
PLACE_BYTES_MAX: Final = 300
"""Of a partition in an event, if it is the only one of its topic: a name has 249 characters."""
SHARE: Final = 4
"""A step that is no more than this part of an entry fits beside all that one heartbeat causes."""
ENTRY_MARGIN: Final = 4 * 1024
"""Bytes of an entry for all that is no partition of a step."""


class Step(NamedTuple):
    """What a member comes to, as pairs of topic and partition."""

    epoch: int
    asked_back: Pairs = _NONE
    freed: Pairs = _NONE
    granted: Pairs = _NONE
    waiting: bool = False


class Goal(NamedTuple):
    """Where a member is to get, and what it says."""

    epoch: int
    """Of the target."""
    target: Pairs
    """Only of topics to which the member subscribes."""
    owned: Pairs | None
    """What the member says that it owns; None: not said, so it may own everything (K-O5)."""
    is_free: Callable[[TopicName, int], bool]

    def may_own(self, some: Pairs) -> bool:
        """Return whether the member may still own one of these."""
        return bool(some) and (self.owned is None or not self.owned.isdisjoint(some))


def next_step(member: Member, goal: Goal) -> Step | None:
    """Return the next step; None if there is nothing to do, or the member has to do it first."""
    assigned, pending = holdings.pairs(member.owned), holdings.pairs(member.revoking)
    if member.state == UNREVOKED and goal.may_own(pending):
        return None  # K-O5
    return _towards(member, goal, assigned, pending)


def _towards(member: Member, goal: Goal, assigned: Pairs, pending: Pairs) -> Step:
    """Compute a member's next assignment; what it had to give up, it has given up."""
    revoke = assigned - goal.target
    if goal.may_own(revoke):
        return Step(member.epoch, asked_back=revoke, freed=pending)  # K-O3, K-O11
    want = goal.target - assigned
    granted = frozenset([each for each in want if each in pending or goal.is_free(*each)])
    return Step(
        goal.epoch,
        freed=pending | revoke,  # K-O4: what it does not own any more, it need not revoke
        granted=granted,  # K-O7: what is given back needs nobody else
        waiting=len(granted) < len(want),  # K-O8
    )


def next_cut(member: Member, goal: Goal) -> Step | None:
    """Return the step of a member that unsubscribed before there is a new target (K-O13).

    Its epoch stays. `goal.target` is here all that it owns of topics to which it still subscribes.
    """
    assigned = holdings.pairs(member.owned)
    cut = assigned - goal.target
    if not cut:
        return None
    if goal.may_own(cut):
        return Step(member.epoch, asked_back=cut, waiting=member.waiting)
    return Step(member.epoch, freed=cut, waiting=member.waiting)


def advance(
    draft: Draft,
    member_id: MemberId,
    owned: tuple[TopicPartitions, ...] | None,
    *,
    resubscribed: bool,
    beat: int = 0,
) -> None:
    """Bring a member one step closer to the target in force, by its own heartbeat.

    `resubscribed`: its subscription changed with this heartbeat. `beat`: its number (S26). A member
    of the classic protocol takes its steps by joins, and its time runs from the heartbeat that
    tells it to join (K-Q9).
    """
    body = draft.group.body
    member = body.members[member_id]
    if is_settled(body, member) and not resubscribed:
        return  # K-O1, as nearly always
    step = _step(body, member, owned, resubscribed=resubscribed)
    if step is not None and _changes(member, step):
        step = _fitting(draft, step)
    if step is None or not _changes(member, step):
        _confirm(draft, member)
        return  # K-O9
    draft.emit(_event(member_id, step, beat), _rule(member, step))
    after: Member = draft.group.body.members[member_id]
    if after.state == UNREVOKED and after.classic is None:
        after_ms = sessions.rebalance_ms(draft, after)
        draft.arm(DeadlineKey(REBALANCE, member_id), after_ms)  # K-M25
    else:
        draft.cancel(DeadlineKey(REBALANCE, member_id))  # K-M26


def _fitting(draft: Draft, step: Step) -> Step | None:
    """Return what of a step an entry can hold beside what was decided before it (S7).

    Each part by itself is no longer than a target, for which there is room. What is granted waits
    for the next beat, or the whole step does.
    """
    entry = settings.of_cluster(draft.state).entry_bytes_max - ENTRY_MARGIN
    gone = step.asked_back | step.freed
    if (len(gone) + len(step.granted)) * PLACE_BYTES_MAX <= entry // SHARE:
        return step  # as nearly always
    size = of_partitions(holdings.by_topic(gone))
    whole = size + of_partitions(holdings.by_topic(step.granted))
    room = entry - sum([of_event(each.event) for each in draft.proposed])
    if whole <= max(room, entry // SHARE):
        return step  # if others leave no room, the node cuts what is decided together
    return step._replace(granted=_NONE, waiting=True) if step.granted and size <= room else None


def _confirm(draft: Draft, member: Member) -> None:
    """Note that a member that waits knows its epoch."""
    known = draft.volatile.confirmed
    if member.state == UNRELEASED and known.get(member.member_id) != member.epoch:
        confirmed = known.set(member.member_id, member.epoch)
        draft.volatile = draft.volatile._replace(confirmed=confirmed)


def _step(
    body: ConsumerBody,
    member: Member,
    owned: tuple[TopicPartitions, ...] | None,
    *,
    resubscribed: bool,
) -> Step | None:
    topics = subscription(body, member)
    told = None if owned is None else holdings.pairs(owned)
    target = body.targets.get(member.member_id)
    meant = () if target is None else target.partitions
    wanted = holdings.pairs(each for each in meant if each.topic in topics)
    goal = Goal(
        body.assignment_epoch,
        wanted,
        told,
        lambda topic, number: TopicPartition(topic, number) not in body.owners,
    )
    step = None
    if not is_settled(body, member):
        step = next_step(member, goal)
    if step is None and resubscribed:
        kept = holdings.pairs(each for each in member.owned if each.topic in topics)
        step = next_cut(member, goal._replace(target=kept))
    return step


def subscription(body: ConsumerBody, member: Member) -> frozenset[TopicName]:
    """Return the topics that a member wants; an expression not yet looked up matches nothing."""
    found = body.regexes.get(member.profile.regex)
    return frozenset((*member.profile.topics, *(found.topics if found else ())))


def subscriptions(
    body: ConsumerBody, members: Iterable[Member]
) -> Iterator[tuple[Member, frozenset[TopicName]]]:
    """Yield members with the topics that they want; those that want the same share a set."""
    sets: dict[tuple[tuple[TopicName, ...], str], frozenset[TopicName]] = {}
    for member in members:
        wishes = (member.profile.topics, member.profile.regex)
        if wishes not in sets:
            sets[wishes] = subscription(body, member)
        yield member, sets[wishes]


def _changes(member: Member, step: Step) -> bool:
    moves = step.asked_back or step.freed or step.granted
    return bool(moves) or step.epoch != member.epoch or step.waiting != member.waiting


def _event(member_id: MemberId, step: Step, beat: int) -> MemberAdvanced:
    return MemberAdvanced(
        member_id,
        step.epoch,
        holdings.by_topic(step.asked_back),
        holdings.by_topic(step.freed),
        holdings.by_topic(step.granted),
        step.waiting,
        beat,
    )


def _rule(member: Member, step: Step) -> str:
    """Return the id of the rule that a step follows."""
    if step.asked_back:
        return "O13" if step.epoch == member.epoch and not step.freed and member.waiting else "O3"
    if step.granted:
        return "O8" if step.waiting else "O2"
    return "O6" if step.freed else "O8" if step.waiting else "O2"
