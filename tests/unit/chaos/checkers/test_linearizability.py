"""INV-7: stale, invented and lost answers are found, of offsets and groups; bounds are reported."""

from typing import Any

import pytest

from holdfast.chaos.checkers import linearizability
from holdfast.coordinator.model.events import (
    GroupDeleted,
    MemberExpired,
    OffsetsDeleted,
)
from holdfast.coordinator.model.ids import TopicPartition
from unit.chaos.scribe import (
    Scribe,
    assigned,
    joined,
    offsets,
    opened,
    replaced,
    started,
    whats,
)

# --- offsets ---


def test_reads_that_follow_the_commits_pass() -> None:
    s = Scribe()
    s.create()
    s.fetch(-1)
    s.commit(10)
    s.fetch(10)
    s.commit(11)
    s.fetch(11)

    verdict = s.judged("I7")

    assert verdict.violations == []
    assert verdict.checked["offset operations"] == 5
    assert verdict.checked["registers"] == 1


def test_a_stale_read_is_found() -> None:
    """A cut-off leader that still answers: what was acknowledged elsewhere is not seen (S10)."""
    s = Scribe()
    s.create()
    s.commit(10)
    s.commit(11)
    s.fetch(10)

    assert "call 3 (OffsetFetch by w) read 10 has no place" in whats(s.judged("I7"))


def test_a_lost_commit_is_found_by_whoever_reads() -> None:
    s = Scribe()
    s.create()
    s.commit(10)
    s.fetch(-1)

    assert len(s.judged("I7").violations) == 1


def test_a_read_that_may_be_stale_is_not_judged() -> None:
    s = Scribe()
    s.create()
    s.commit(10)
    s.fetch(-1, stale_ok=True)

    assert s.judged("I7").violations == []


def test_a_commit_of_unknown_outcome_may_come_late_or_never() -> None:
    """S5: it may take effect after a later one, or not at all."""
    s = Scribe()
    s.create()
    s.call("OffsetCommit", outcome="unknown", offsets=[["t", 0, 10]], request_id="r1")
    s.fetch(-1)
    s.commit(11)
    s.fetch(11)
    s.fetch(10)
    assert s.judged("I7").violations == []

    s.fetch(11)
    assert len(s.judged("I7").violations) == 1


@pytest.mark.parametrize("outcome", ["rejected", "not-applied"])
def test_a_refused_commit_that_is_seen_is_found(outcome: Any) -> None:  # noqa: ANN401 - a Literal
    s = Scribe()
    s.create()
    s.call("OffsetCommit", outcome=outcome, offsets=[["t", 0, 10]])
    s.fetch(10)

    assert len(s.judged("I7").violations) == 1


def test_a_retry_is_the_same_write() -> None:
    """S15: done twice, it would undo what came between."""
    s = Scribe()
    s.create()
    s.call("OffsetCommit", outcome="unknown", offsets=[["t", 0, 10]], request_id="r1")
    s.call("OffsetCommit", offsets=[["t", 0, 10]], request_id="r1")
    s.commit(11)
    s.call("OffsetCommit", offsets=[["t", 0, 10]], request_id="r1")
    s.fetch(10)

    assert len(s.judged("I7").violations) == 1


def test_a_partition_that_was_refused_was_not_written() -> None:
    s = Scribe()
    s.create()
    refused = {"errors": [["t", 1, "UNKNOWN_TOPIC_OR_PARTITION"]]}
    s.call("OffsetCommit", offsets=[["t", 0, 10], ["t", 1, 10]], result=refused)
    s.fetch(10)
    s.call("OffsetFetch", result={"offsets": [["t", 1, 10]]})

    assert "t/1" in whats(s.judged("I7"))


@pytest.mark.parametrize(
    ("op", "asked"), [("OffsetDelete", {"partitions": [["t", 0]]}), ("DeleteGroups", {})]
)
def test_a_deletion_empties_the_register(op: str, asked: dict[str, Any]) -> None:
    s = Scribe()
    s.create()
    s.commit(10)
    s.call(op, **asked)
    s.fetch(-1)
    assert s.judged("I7").violations == []

    s.fetch(10)
    assert len(s.judged("I7").violations) == 1


@pytest.mark.parametrize(
    "event", [OffsetsDeleted((TopicPartition("t", 0),)), GroupDeleted()], ids=["offsets", "group"]
)
def test_retention_may_empty_a_register_unasked(event: OffsetsDeleted | GroupDeleted) -> None:
    s = Scribe()
    s.create()
    s.commit(10)
    s.entry(event)
    s.fetch(-1)

    assert s.judged("I7").violations == []


def test_what_a_stranger_committed_may_be_read() -> None:
    """A staging cluster has callers that are not in the history."""
    s = Scribe()
    s.create()
    s.entry(offsets(77))
    s.fetch(77)

    assert s.judged("I7").violations == []


def test_a_group_that_was_there_before_may_hold_anything_but_only_one_thing() -> None:
    s = Scribe()
    s.entry(offsets(3, number=9))
    s.fetch(42)
    s.fetch(42)
    assert s.judged("I7").violations == []

    s.fetch(43)
    assert len(s.judged("I7").violations) == 1


def test_a_search_that_is_given_up_is_reported() -> None:
    s = Scribe()
    s.create()
    calls = [s.send("OffsetCommit", offsets=[["t", 0, offset]]) for offset in range(12)]
    for call in calls:
        s.wait(1).hear(call)
    s.wait(1).fetch(99)

    verdict = linearizability.check(s.history, steps_max=100)

    assert verdict.violations == []
    assert "no order found for 13 operations in 100 steps" in verdict.undecided[0]


# --- groups ---


def grouped() -> Scribe:
    """Group g is Stable at generation 1, with a.1 and b."""
    s = Scribe()
    s.create()
    s.wait(1).entry(opened(), joined("a.1"), joined("b"))
    s.entry(started(1, "a.1", "b"))
    s.entry(assigned(1, {"a.1": [0], "b": [1]}))
    s.wait(1)
    return s


def describe(s: Scribe, state: str, generation: int, *members: list[str], **asked: Any) -> None:  # noqa: ANN401 - as JSON
    told = {"state": state, "generation": generation, "members": list(members)}
    s.call("DescribeGroups", result=told, **asked)


A, A2, B = ["a.1", "a"], ["a.2", "a"], ["b", ""]


def test_answers_that_are_true_pass() -> None:
    s = grouped()
    describe(s, "Stable", 1, A, B)
    s.call("Heartbeat", member_id="b", generation=1)
    s.call("SyncGroup", member_id="b", generation=1, result={"partitions": [["t", 1]]})
    s.entry(replaced("a.1", "a.2"))
    s.call("JoinGroup", result={"member_id": "a.2", "generation": 1, "position": [5, 0]})
    describe(s, "Stable", 1, A2, B)

    verdict = s.judged("I7")

    assert whats(verdict) == ""
    assert verdict.checked["answers about groups"] == 6


def test_a_description_of_what_was_before_an_acknowledged_change_is_found() -> None:
    s = grouped()
    s.entry(replaced("a.1", "a.2"))
    s.call("JoinGroup", result={"member_id": "a.2", "generation": 1, "position": [5, 0]})
    describe(s, "Stable", 1, A, B)

    assert "call 2 (DescribeGroups by w)" in whats(s.judged("I7"))


def test_a_description_that_goes_back_behind_another_is_found() -> None:
    """Nothing was acknowledged, but a reader that saw the new state may not see the old again."""
    s = grouped()
    s.entry(replaced("a.1", "a.2"))
    describe(s, "Stable", 1, A2, B)
    describe(s, "Stable", 1, A, B)

    assert len(s.judged("I7").violations) == 1


def test_before_a_change_is_acknowledged_either_may_be_seen() -> None:
    s = grouped()
    s.entry(replaced("a.1", "a.2"))
    describe(s, "Stable", 1, A, B)
    describe(s, "Stable", 1, A2, B)

    assert s.judged("I7").violations == []


@pytest.mark.parametrize(
    ("state", "generation", "members"),
    [
        ("Stable", 2, [A, B]),
        ("Empty", 1, [A, B]),
        ("Stable", 1, [A]),
        ("Stable", 1, [A, B, ["c", ""]]),
        ("Stable", 1, [["a.1", "z"], B]),
    ],
)
def test_a_description_that_was_never_true_is_found(
    state: str, generation: int, members: list[list[str]]
) -> None:
    s = grouped()
    describe(s, state, generation, *members)

    assert len(s.judged("I7").violations) == 1


def test_a_stale_description_may_be_old_but_not_invented() -> None:
    s = grouped()
    s.entry(replaced("a.1", "a.2"))
    describe(s, "Stable", 1, A2, B)
    describe(s, "Stable", 1, A, B, stale_ok=True)
    assert s.judged("I7").violations == []

    describe(s, "Stable", 3, A, B, stale_ok=True)
    assert len(s.judged("I7").violations) == 1


def test_a_group_that_is_not_there_is_dead() -> None:
    s = Scribe()
    s.create()
    s.entry(GroupDeleted())
    describe(s, "Dead", 0)

    assert s.judged("I7").violations == []


def test_a_heartbeat_of_a_member_that_is_gone_is_found() -> None:
    s = grouped()
    s.entry(opened(), MemberExpired("b", "session"))
    describe(s, "PreparingRebalance", 1, A)
    s.call("Heartbeat", member_id="b", generation=1)

    assert "call 2 (Heartbeat by w)" in whats(s.judged("I7"))


def test_a_heartbeat_of_an_old_generation_is_found() -> None:
    s = grouped()
    s.entry(opened(), joined("c"))
    s.entry(started(2, "a.1", "b", "c"))
    describe(s, "CompletingRebalance", 2, A, B, ["c", ""])
    s.call("Heartbeat", member_id="b", generation=1)

    assert len(s.judged("I7").violations) == 1


def test_a_share_that_another_has_is_found() -> None:
    s = grouped()
    s.call("SyncGroup", member_id="b", generation=1, result={"partitions": [["t", 0]]})

    assert len(s.judged("I7").violations) == 1


def test_a_generation_that_the_log_does_not_have_is_found() -> None:
    s = grouped()
    s.call("JoinGroup", result={"member_id": "b", "generation": 2})

    assert len(s.judged("I7").violations) == 1


def test_an_effect_before_it_was_asked_for_is_found() -> None:
    """A read of the future: what it tells was sent only after it had been answered."""
    s = grouped()
    describe(s, "Stable", 1, A2, B)
    s.wait(5)
    call = s.send("JoinGroup", request_id="r1")
    s.entry(replaced("a.1", "a.2", request_id="r1"))
    s.wait(1).hear(call, member_id="a.2", generation=1)

    assert "call 1 (DescribeGroups by w)" in whats(s.judged("I7"))


def test_nothing_is_no_proof() -> None:
    assert Scribe().judged("I7").empty
