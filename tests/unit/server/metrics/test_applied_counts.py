"""What records did to groups is counted once each, by few causes."""

from __future__ import annotations

from harness.stories import rewritten
from holdfast.coordinator.model import events as ev
from holdfast.coordinator.model.events import Cause, Event, Record
from holdfast.coordinator.model.ids import Position
from holdfast.server.metrics.applied_counts import CAUSES, AppliedCounts
from stories.test_stories import STORIES, teller_of

STARTED = ev.RebalanceStarted(reason="", member_id="m", initial=False, timeout_ms=1)


def applied(*events: tuple[int, Event], rule: str = "A5") -> AppliedCounts:
    """The counts after these events, each at its second of log time."""
    counts = AppliedCounts()
    for second, event in events:
        cause = Cause(rule, "JoinGroup")
        record = Record(Position(1, 0), "g", 1, second * 1000, 0, cause, "", "", event)
        counts.on_applied([record], 1)
    return counts


def generation(*removed: str) -> ev.GenerationStarted:
    return ev.GenerationStarted(1, "p", "m", (), (), removed)


def test_a_rebalance_counts_by_what_caused_it_in_the_words_of_kafka_s_protocol() -> None:
    assert applied((1, STARTED)).rebalances == {"joined": 1}
    assert applied((1, STARTED), rule="F9").rebalances == {"expired": 1}
    assert applied((1, STARTED), rule="G14").rebalances == {"left": 1}
    assert applied((1, STARTED), rule="A16").rebalances == {"changed": 1}
    assert applied((1, STARTED), rule="operator").rebalances == {"operator": 1}


def test_every_rule_that_opens_a_join_phase_in_a_story_is_a_cause() -> None:
    """Rules are named where they are applied; one that has no line here would be `other`."""
    opened = set[str]()
    for path in STORIES:
        teller = teller_of(path)
        rewritten(path.read_text(encoding="utf-8"), teller.interpret)
        opened |= {
            record.cause.rule
            for told in teller.core.log
            for record in told.records
            if isinstance(record.event, ev.RebalanceStarted)
        }

    assert len(opened) > 8
    assert opened <= CAUSES.keys()


def test_a_rule_of_a_newer_version_makes_no_new_label() -> None:
    assert applied((1, STARTED), rule="Z99").rebalances == {"other": 1}


def test_the_time_without_owners_is_from_the_generation_to_the_assignment() -> None:
    """Until it starts, members hold what they were granted before."""
    counts = applied(
        (10, STARTED), (13, generation()), (15, ev.AssignmentStored(1, ())), (20, STARTED)
    )

    assert (sum(counts.without_owner_s.counts), counts.without_owner_s.sum_s) == (1, 2.0)
    assert (sum(counts.rebalance_s.counts), counts.rebalance_s.sum_s) == (1, 5.0)


def test_a_rebalance_of_a_group_that_is_gone_is_not_measured() -> None:
    for end in (ev.GroupEmptied(2), ev.GroupDeleted()):
        counts = applied((1, STARTED), (2, end), (9, ev.AssignmentStored(1, ())))
        assert sum(counts.rebalance_s.counts) == 0


def test_members_that_went_count_each_by_how() -> None:
    counts = applied(
        (1, ev.MembersLeft(("a", "b"), "")),
        (2, ev.MemberExpired("c", "session")),
        (3, generation("d", "e", "f")),
        (4, generation()),
    )

    assert {how: count for how, count in counts.gone.items() if count} == {
        "left": 2,
        "expired": 1,
        "late": 3,
    }
    assert counts.records == 4
