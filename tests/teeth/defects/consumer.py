"""Defects of groups of the heartbeat protocol: who may own, who may speak, and what must end."""

# ruff: noqa: ANN401 (a patch passes on whatever the function in whose place it stands takes)

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from unittest import mock

from holdfast.coordinator.consumer import (
    deadlines,
    evolve,
    holdings,
    leave,
    offsets,
    sessions,
)
from holdfast.coordinator.consumer.group_type import CONSUMER_TYPE
from holdfast.coordinator.consumer.identities import identity, static_members
from holdfast.coordinator.consumer.targets import (
    epochs,
    reconciliation,
    target,
    topics_digest,
)
from holdfast.coordinator.groups import assignment_bytes
from holdfast.coordinator.kernel import conversion, group_types
from holdfast.coordinator.model.consumer_events import GroupConverted
from holdfast.coordinator.model.events import StaticMemberReplaced
from holdfast.coordinator.model.ids import UNCOMMITTED
from holdfast.coordinator.model.volatile import SESSION, DeadlineKey
from holdfast.runtime.groups.heartbeat_cache import HeartbeatCache
from teeth.catalogue import Scenario, Simulated, seeded
from teeth.patching import entered, replaced

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from holdfast.coordinator.groups.draft import Draft

CONFORMANCE = "tests/conformance/"
DEADLINES = "tests/unit/coordinator/consumer/test_deadlines.py::"
IDENTITY = "tests/unit/coordinator/consumer/identities/test_identity.py::"


def _of_type(**changes: Any) -> AbstractContextManager[object]:
    """Put other functions into the line of the heartbeat protocol in the table of types."""
    changed = replace(CONSUMER_TYPE, **changes)
    return mock.patch.dict(group_types.TYPES, {changed.name: changed})


# --- partitions ---


@seeded("I1", Simulated(("I1", "I8"), "calm-beats"))
def grant_before_release() -> Iterator[None]:
    """A partition is given to its next owner while the one before still works on it."""
    step: Any = reconciliation.next_step

    def as_if_all_were_free(member: Any, goal: Any) -> Any:
        return step(member, goal._replace(is_free=lambda *_: True))

    def unchecked(body: Any, event: Any) -> Any:
        gone = {(topic, number): None for topic, some in event.freed for number in some}
        came = {(t, number): event.member_id for t, some in event.granted for number in some}
        return body.owners.changed({**gone, **came})

    with (
        replaced(reconciliation, "next_step", as_if_all_were_free),
        replaced(evolve, "_moved", unchecked),
    ):
        yield


@seeded("I1", Simulated(("I1",), "calm-beats"))
def null_list_taken_as_empty() -> Iterator[None]:
    """Who says nothing of what it owns is taken to own nothing: it works on what others get."""
    advance: Any = reconciliation.advance

    def as_empty(draft: Draft, member_id: str, owned: Any, **more: Any) -> None:
        advance(draft, member_id, () if owned is None else owned, **more)

    with replaced(reconciliation, "advance", as_empty):
        yield


@seeded("I3", Simulated(("I3",), "calm-beats"))
def member_epoch_advanced_before_its_revocation_is_heard() -> Iterator[None]:
    """A member that has to give something up is told the new epoch: nobody waits for its word."""
    towards: Any = reconciliation._towards

    def at_once(member: Any, goal: Any, assigned: Any, pending: Any) -> Any:
        step = towards(member, goal, assigned, pending)
        return step._replace(epoch=goal.epoch) if step.asked_back else step

    with replaced(reconciliation, "_towards", at_once):
        yield


@seeded("I8", Simulated(("I8",), "calm-beats"))
def stale_targets_are_kept() -> Iterator[None]:
    """Who is to own less keeps its older target: two are to own one partition."""
    changed: Any = target._changed

    def only_more(body: Any, assigned: Any) -> list[Any]:
        kept = []
        for each in changed(body, assigned):
            had = holdings.pairs(target._target_of(body, each.member_id))
            if had <= holdings.pairs(each.partitions):
                kept.append(each)
        return kept

    with replaced(target, "_changed", only_more):
        yield


@seeded("I8", Simulated(("I8",), "calm-beats"))
def target_computed_on_old_topics() -> Iterator[None]:
    """New partitions of a topic raise the epoch, and are in nobody's target."""
    counted: Any = topics_digest.sizes
    known: dict[str, int] = {}

    def as_at_first(body: Any, topics: Any) -> dict[str, int]:
        return {name: known.setdefault(name, size) for name, size in counted(body, topics).items()}

    with replaced(topics_digest, "sizes", as_at_first):
        yield


@seeded("I17", Simulated(("I17",), "calm-beats"))
def changed_topics_are_not_found() -> Iterator[None]:
    """A topic grows, no heartbeat sees it, and its new partitions are nobody's for ever."""
    with replaced(topics_digest, "moved", lambda _draft: False):
        yield


@seeded("I9", Simulated(("I9",), "calm-beats"))
def target_computed_from_nothing() -> Iterator[None]:
    """Each target is computed as if nobody had owned anything: all is moved around."""
    with replaced(target, "_target_of", lambda _body, _member_id: ()):
        yield


# --- tokens and epochs ---


@seeded("S13", Simulated(("I3", "I5", "I7"), "calm-beats"))
def token_kept_over_a_fence() -> Iterator[None]:
    """A partition is granted under the token that its last owner had, who may still write by it."""
    advanced: Any = holdings.granted
    tokens: dict[tuple[str, int], int] = {}

    def as_before(new: Any, epoch: int, index: int) -> Any:
        if index == UNCOMMITTED:
            return advanced(new, epoch, index)
        return tuple(
            each._replace(
                granted=tuple(tokens.setdefault((each.topic, n), index) for n in each.partitions)
            )
            for each in advanced(new, epoch, index)
        )

    with replaced(holdings, "granted", as_before):
        yield


@seeded("S12", Simulated(("I3", "I7"), "conversions", 8))
def static_swap_without_new_tokens() -> Iterator[None]:
    """A process whose place was taken has the token of the one that took it, and writes on."""
    folded: Any = evolve.FOLDS[StaticMemberReplaced]

    def as_it_was(group: Any, event: Any, record: Any) -> Any:
        after = folded(group, event, record)
        old = group.body.members[event.old_member_id]
        member = after.body.members[event.new_member_id]._replace(owned=old.owned)
        members = after.body.members.set(member.member_id, member)
        return after._replace(body=after.body._replace(members=members))

    with entered(evolve.FOLDS, StaticMemberReplaced, as_it_was):
        yield


@seeded(
    "I5",
    Scenario(
        f"{CONFORMANCE}test_heartbeat_offsets.py::"
        "test_j39_j40_a_commit_of_an_older_epoch_is_judged_by_each_partition"
    ),
)
def assignment_epoch_not_raised() -> Iterator[None]:
    """A partition that changes hands keeps its assignment epoch: an old commit passes."""
    granted: Any = holdings.granted

    def of_the_first_epoch(new: Any, _epoch: int, index: int) -> Any:
        return granted(new, 0, index)

    with replaced(holdings, "granted", of_the_first_epoch):
        yield


@seeded(
    "I5",
    Scenario(
        f"{CONFORMANCE}test_heartbeat_offsets.py::"
        "test_j39_j40_a_commit_of_an_older_epoch_is_judged_by_each_partition"
    ),
)
def commits_of_any_epoch() -> Iterator[None]:
    """A commit of an older epoch is taken for partitions that its member has not had since."""
    with replaced(offsets, "_kept", lambda *_: True):
        yield


@seeded("I1", Scenario(f"{IDENTITY}test_m12_a_late_list_of_an_earlier_epoch_gives_nothing_up"))
def heartbeats_of_any_epoch() -> Iterator[None]:
    """A heartbeat of the past is taken at its word: what it owned then, it gives up now.

    Those of `holdfast.client` have numbers, by which they are found out before (S26).
    """
    with replaced(identity, "check_epoch", lambda *_: None):
        yield


@seeded("I3", Simulated(("I3",), "conversions"))
def conversion_starts_epochs_anew() -> Iterator[None]:
    """A converted group counts from the beginning: commits and heartbeats of the past fit again."""
    event: Any = GroupConverted

    def from_the_first(group_type: str, generation: int, members: Any, *rest: Any) -> Any:
        return event(group_type, min(generation, 1), members, *rest)

    with replaced(conversion, "GroupConverted", from_the_first):
        yield


@seeded(
    "S11",
    Scenario(
        "tests/unit/coordinator/kernel/test_conversion.py::"
        "test_a_partition_of_two_owners_is_not_converted"
    ),
)
def conversion_with_two_owners() -> Iterator[None]:
    """A classic group in which two work on one partition goes on so, under grants."""
    owned: Any = conversion._owned

    def whoever_they_are(members: Any) -> Any:
        found = owned(members)
        if found is not None:
            return found
        read = assignment_bytes.partitions
        return [read(each.assignment or each.abandoned) or () for each in members]

    with replaced(conversion, "_owned", whoever_they_are):
        yield


# --- who is there ---


@seeded("I8", Simulated(("I8",), "calm-beats"))
def epoch_not_raised_for_a_departure() -> Iterator[None]:
    """What a member that went had is in nobody's target: nobody works on it any more."""
    raised: Any = epochs.raise_epoch

    def unless_somebody_went(draft: Draft, cause: str, *rest: Any) -> None:
        if cause not in {"left", "expired", "removed"}:
            raised(draft, cause, *rest)

    with replaced(epochs, "raise_epoch", unless_somebody_went):
        yield


@seeded("I17", Simulated(("I17", "alarm"), "calm-beats"))
def leave_forgets_its_partitions() -> Iterator[None]:
    """What a member that left had owned is never free, and whoever is to own it waits for ever."""
    with replaced(evolve, "_freed", lambda body, _held: body.owners):
        yield


@seeded("S9", Simulated(("I12",), "failing-over-beats"))
def session_not_armed_after_a_failover() -> Iterator[None]:
    """A new leader waits for nobody: who died with the old one owns its partitions for ever."""
    with _of_type(on_leading=lambda _draft: None):
        yield


@seeded(
    "S9",
    Scenario(f"{DEADLINES}test_s9_a_session_that_was_renewed_since_is_armed_again_in_full"),
)
def expiry_without_a_look_at_what_came() -> Iterator[None]:
    """A session ends although its member was heard since its time was up."""
    over: Any = deadlines._session_over

    def deaf(draft: Draft, member_id: str, *, heard: bool) -> None:
        del heard
        over(draft, member_id, heard=False)

    with replaced(deadlines, "_session_over", deaf):
        yield


@seeded("S8", Simulated(("I12",), "calm-beats"))
def heartbeats_renew_no_session() -> Iterator[None]:
    """A member is taken out a session after its join, however often it is heard."""

    def once(draft: Draft, member_id: str) -> None:
        if DeadlineKey(SESSION, member_id) not in draft.volatile.armed:
            draft.arm_session(member_id)

    with (
        replaced(sessions, "heard", once),
        replaced(HeartbeatCache, "remember_beat", lambda *_: None),
    ):
        yield


@seeded(
    "S11",
    Scenario(
        f"{CONFORMANCE}test_heartbeat_members.py::"
        "test_m25_who_does_not_give_up_in_its_own_rebalance_timeout_is_removed"
    ),
)
def who_does_not_give_up_is_waited_for() -> Iterator[None]:
    """A member that is asked for a partition keeps it for as long as it beats."""
    with replaced(leave, "expire", lambda *_: None):
        yield


# --- what must come, and what must not ---


@seeded("I17", Simulated(("I17",), "calm-beats"))
def waiting_members_are_not_served() -> Iterator[None]:
    """A member that waits for a partition is not given it when it is free."""
    step: Any = reconciliation.next_step

    def unless_it_waits(member: Any, goal: Any) -> Any:
        return None if member.waiting else step(member, goal)

    with replaced(reconciliation, "next_step", unless_it_waits):
        yield


@seeded("I17", Simulated(("I17",), "calm-beats"))
def large_groups_get_no_target() -> Iterator[None]:
    """A group of three or more stays Assigning: nobody computes its target."""
    due: Any = target.is_due

    def of_few(draft: Draft) -> bool:
        return len(draft.group.body.members) < 3 and due(draft)

    with replaced(target, "is_due", of_few):
        yield


@seeded("I9", Simulated(("I9",), "calm-beats"))
def a_bounce_raises_the_epoch() -> Iterator[None]:
    """A static process that stops for a while and returns counts as a new member."""
    swapped: Any = static_members.swap

    def as_a_join(draft: Draft, command: Any) -> None:
        chosen = len(draft.proposed)
        swapped(draft, command)
        if len(draft.proposed) > chosen:
            epochs.raise_epoch(draft, "joined", "M16")

    with replaced(static_members, "swap", as_a_join):
        yield


@seeded("I9", Simulated(("I9",), "failing-over-beats"))
def a_failover_raises_the_epoch() -> Iterator[None]:
    """A new leader begins with a new target, though nothing has changed."""
    taken: Any = deadlines.take_over

    def anew(draft: Draft) -> None:
        taken(draft)
        if draft.group.body.members:
            draft.volatile = draft.volatile._replace(topics_seen=None)
            seen.add(draft.group_id)

    seen: set[str] = set()
    moved: Any = topics_digest.moved

    def once_after_it(draft: Draft) -> bool:
        if draft.group_id in seen:
            seen.discard(draft.group_id)
            return True
        found: bool = moved(draft)
        return found

    with (
        _of_type(on_leading=anew),
        replaced(topics_digest, "moved", once_after_it),
    ):
        yield


@seeded("S16", Simulated(("I7", "I3"), "calm-beats"))
def answers_are_remembered_for_ever() -> Iterator[None]:
    """A heartbeat is answered as before although its member has moved on meanwhile."""
    with (
        replaced(HeartbeatCache, "forget_beats", lambda *_: None),
        replaced(HeartbeatCache, "forget_all_beats", lambda *_: None),
    ):
        yield


@seeded("I8", Simulated(("I8",), "calm-beats"))
def target_forgets_the_last_member() -> Iterator[None]:
    """One member is passed over: what it was to own is in nobody's target."""
    computed: Any = target._changed

    def but_one(body: Any, assigned: Any) -> Any:
        last = max(assigned, default="")
        return computed(body, {name: own for name, own in assigned.items() if name != last})

    with replaced(target, "_changed", but_one):
        yield
