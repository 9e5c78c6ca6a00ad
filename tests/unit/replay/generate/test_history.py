"""A generated history is one that the rules allow, with all that its options promise."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from holdfast.coordinator.kernel import invariants
from holdfast.coordinator.kernel.apply import replay
from holdfast.coordinator.kernel.decide import decide
from holdfast.coordinator.kernel.queries import describe_consumer_group, describe_group
from holdfast.coordinator.model.commands import Caller, CommitOffsets
from holdfast.coordinator.model.events import (
    GroupDeleted,
    InstanceReleased,
    MemberExpired,
    OffsetsCommitted,
    OffsetsDeleted,
    SegmentSealed,
    StaticMemberReplaced,
    TopicsDeleted,
)
from holdfast.coordinator.model.state import State
from holdfast.coordinator.model.volatile import Volatile
from holdfast.replay.generate.commits import OUTSIDE, Commits
from holdfast.replay.generate.history import History
from holdfast.replay.generate.plan import BOUNCES, DELETIONS, EXPIRIES, FAILOVERS, FAULTS, Plan
from holdfast.replay.generate.witness import Witness
from unit.replay.generate.logs import Kept, played

if TYPE_CHECKING:
    from holdfast.coordinator.model.events import Event, Proposed, Record
    from holdfast.coordinator.model.ids import MemberId
    from holdfast.replay.generate.cast import Cast

EVENTS = 6_000
OF_ANY_PLAN = {
    "AssignmentStored", "ClusterFormed", "EpochRaised", "GenerationStarted", "GroupCreated",
    "MemberAdvanced", "MemberJoined", "MemberSubscribed", "MembersLeft", "OffsetsCommitted",
    "RebalanceStarted", "RequestRecorded", "TargetStored", "TopicsCreated",
}  # fmt: skip
OF_FAULTS: dict[str, set[type[Event]]] = {
    BOUNCES: {InstanceReleased, StaticMemberReplaced},
    EXPIRIES: {MemberExpired},
    DELETIONS: {GroupDeleted, OffsetsDeleted, TopicsDeleted},
}
"""The events that are there with a kind of fault, and never without."""


def kinds(records: list[Record]) -> set[str]:
    return {type(record.event).__name__ for record in records}


@pytest.mark.parametrize("seed", range(4))
def test_the_log_leads_to_a_state_without_contradiction(seed: int) -> None:
    """S6: the records, replayed from nothing, give the leader's state; no invariant is broken."""
    history, kept = played(Plan(EVENTS, groups=30, giant=0.3, seed=seed))

    assert len(kept.records) == EVENTS
    assert replay(State(), kept.records) == history.leader.state
    assert invariants.check(history.leader.state) == []


@pytest.mark.parametrize("events", [10, 11, 50, 333, 1_000])
def test_there_are_exactly_as_many_records_as_were_asked_for(events: int) -> None:
    _, kept = played(Plan(events, groups=5, giant=0.5))

    assert len(kept.records) == events


def test_every_kind_of_event_is_there_that_the_options_promise() -> None:
    """Also those of groups of both protocols, and of the operator."""
    _, kept = played(Plan(EVENTS, groups=30, seed=1, segment_events=2_000))

    of_faults = {event.__name__ for events in OF_FAULTS.values() for event in events}
    assert kinds(kept.records) >= {*OF_ANY_PLAN, *of_faults, SegmentSealed.__name__}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_is_not_wanted_does_not_happen(fault: str) -> None:
    history, kept = played(Plan(EVENTS, faults=tuple(each for each in FAULTS if each != fault)))

    unwanted = {event.__name__ for event in OF_FAULTS.get(fault, set())}
    assert not kinds(kept.records) & unwanted
    assert (history.leader.term == 1) is (fault == FAILOVERS)


def test_failovers_leave_entries_without_records() -> None:
    """A new leader's first entry is its own; the log shows a gap in indexes, and no other one."""
    history, kept = played(Plan(EVENTS))

    places = [record.position.index for record in kept.records]
    gaps = [after - before - 1 for before, after in pairwise(places) if after > before + 1]
    assert sum(gaps) == history.leader.term - 1 > 0


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_the_giant_has_its_share_of_all_events(share: float) -> None:
    _, kept = played(Plan(20_000, groups=50, giant=share))

    found = Counter(record.group_id for record in kept.records)
    assert found["group-0000000"] / 20_000 == pytest.approx(share, abs=0.02)


def test_without_giant_and_skew_no_group_stands_out() -> None:
    _, kept = played(Plan(20_000, groups=20, skew=0, faults=()))

    found = Counter(record.group_id for record in kept.records)
    del found[""], found[OUTSIDE]
    assert len(found) == 20
    assert max(found.values()) < 2 * min(found.values())


def test_skew_makes_the_first_groups_busier() -> None:
    _, kept = played(Plan(20_000, groups=64, skew=1.5, faults=()))

    found = Counter(record.group_id for record in kept.records)
    first, later = found["group-0000001"], found["group-0000031"]
    assert first > 10 * later > 0


def test_no_more_records_are_held_than_a_segment_has() -> None:
    """Memory does not grow with the log: what is sealed is given away and forgotten."""
    held: list[int] = []
    plan = Plan(12_000, groups=20, giant=0.5, segment_events=1_000)
    entry_max = 1_100  # of the giant's commits, and what others do

    _, kept = played(plan, lambda history: held.append(history.held))

    assert max(held) <= plan.segment_events + entry_max
    assert len(kept.sealed) >= 12_000 // (plan.segment_events + entry_max)


def test_a_boundary_is_told_by_the_next_record_and_lies_behind_an_entry() -> None:
    """S22: `SegmentSealed` names the last record of the segment, and is in the one after it."""
    _, kept = played(Plan(12_000, groups=20, segment_events=1_000))

    after = [*kept.sealed[1:], kept.tail]
    told = [record.event for record in kept.records if isinstance(record.event, SegmentSealed)]
    assert [event.last for event in told] == [part[-1].position for part in kept.sealed]
    for part, following in zip(kept.sealed, after, strict=True):
        assert following[0].position.index > part[-1].position.index
        assert len(part) >= 1_000


def test_commits_by_template_are_those_that_would_be_decided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each is decided as well, as a member's call to the group as it is."""
    by_template, compared = Commits.proposed, Counter[str]()

    def checked(self: Commits, cast: Cast, count: int) -> tuple[Proposed, ...]:
        made = by_template(self, cast, count)
        for each in made:
            assert _decided(history, cast, each) == (each,)
            compared[cast.group_id] += 1
        return made

    monkeypatch.setattr(Commits, "proposed", checked)
    history = History(Plan(EVENTS, groups=20, giant=0.2), Kept(), Witness(None))
    history.play(lambda _: None)

    assert compared.total() > EVENTS // 3
    assert len(compared) > 10


def _decided(history: History, cast: Cast, made: Proposed) -> tuple[Proposed, ...]:
    assert isinstance(made.event, OffsetsCommitted)
    state, group_id = history.leader.state, cast.group_id
    member_id, epoch, instance_id = _committer(state, cast)
    caller = Caller(1, made.principal)
    offsets = made.event.offsets
    command = CommitOffsets(caller, group_id, epoch, member_id, instance_id, offsets)
    return decide(state, Volatile(), command, history.leader.now_ms).events


def _committer(state: State, cast: Cast) -> tuple[MemberId, int, str | None]:
    """A member that may commit, or nobody for a group that has none."""
    if cast.group_id == OUTSIDE:
        return "", -1, None
    if cast.classic:
        shown = describe_group(state, cast.group_id)
        here = next(each for each in shown.members if not each.released)
        return here.member_id, shown.generation, here.instance_id
    members = describe_consumer_group(state, cast.group_id).members
    mine = next(each for each in members if not each.released)
    return mine.member_id, mine.member_epoch, mine.instance_id
