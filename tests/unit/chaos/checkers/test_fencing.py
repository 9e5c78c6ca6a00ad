"""INV-5: whatever a fenced member still brings about is found, outside and inside."""

from typing import Any

import pytest

from holdfast.chaos.history.happenings import FORMAT, Began, Watched
from holdfast.coordinator.model.events import (
    Event,
    GenerationStarted,
    InstanceReleased,
    MemberExpired,
    MemberRefused,
    MembersLeft,
    MembersRemoved,
)
from unit.chaos.scribe import Scribe, joined, offsets, opened, replaced, started, whats

ENDS: list[Event] = [
    replaced("a.1", "a.2"),
    InstanceReleased("a", "a.1"),
    MembersLeft(("a.1",), ""),
    MembersRemoved(("a.1",), ""),
    MemberExpired("a.1", "session"),
    MemberRefused("a.1"),
    started(2, "b", removed=("a.1",)),
]


def ended(by: Event) -> Scribe:
    """Member a.1 was there, and is fenced by this event at index 4."""
    s = Scribe()
    s.create()
    s.entry(opened(), joined("a.1"), joined("b"))
    s.entry(started(1, "a.1", "b"))
    s.call("Heartbeat", member_id="a.1", generation=1)
    s.entry(by)
    s.wait(1)
    return s


def test_storage_that_takes_higher_tokens_only_passes() -> None:
    s = Scribe()
    s.write("w1", 5, accepted=True)
    s.write("w1", 5, accepted=True)
    s.write("w2", 9, accepted=True)
    s.write("w1", 5, accepted=False)

    verdict = s.judged("I5")

    assert verdict.violations == []
    assert verdict.checked["writes"] == 4


def test_a_lower_token_that_is_accepted_is_found() -> None:
    s = Scribe()
    s.write("w2", 9, accepted=True)
    s.write("w1", 5, accepted=True)

    assert "w1 wrote with token 5, after 9 of w2 had been accepted" in whats(s.judged("I5"))


def test_a_token_that_two_write_with_is_found() -> None:
    s = Scribe()
    s.write("w1", 5, accepted=True)
    s.write("w2", 5, accepted=True)

    assert "which is also w1's" in whats(s.judged("I5"))


def test_each_partition_has_tokens_of_its_own() -> None:
    """S13: one maximum for a whole store would refuse the rightful owners of other partitions."""
    s = Scribe()
    s.write("w2", 9, accepted=True, number=1)
    s.write("w1", 5, accepted=True, number=0)
    assert s.judged("I5").violations == []

    s.write("w3", 6, accepted=False, number=0)
    assert "was refused, though none higher had been accepted" in whats(s.judged("I5"))


@pytest.mark.parametrize("end", ENDS, ids=lambda event: type(event).__name__)
@pytest.mark.parametrize("op", ["Heartbeat", "SyncGroup", "OffsetCommit", "JoinGroup"])
def test_a_call_that_is_accepted_after_the_end_is_found(op: str, end: Event) -> None:
    s = ended(end)
    s.call(op, member_id="a.1", generation=1)

    assert "was accepted for member a.1 of 'g'" in whats(s.judged("I5"))


@pytest.mark.parametrize("end", ENDS, ids=lambda event: type(event).__name__)
def test_a_call_that_is_refused_after_the_end_is_right(end: Event) -> None:
    s = ended(end)
    s.call("Heartbeat", outcome="rejected", error="FENCED_INSTANCE_ID", member_id="a.1")
    s.call("Heartbeat", member_id="b", generation=2 if isinstance(end, GenerationStarted) else 1)

    verdict = s.judged("I5")

    assert verdict.violations == []
    assert verdict.checked["calls of fenced ids"] == 2


def test_a_heartbeat_that_is_only_told_of_a_rebalance_was_accepted() -> None:
    s = ended(ENDS[0])
    s.call("Heartbeat", outcome="rejected", error="REBALANCE_IN_PROGRESS", member_id="a.1")

    assert len(s.judged("I5").violations) == 1


def test_a_call_that_was_on_its_way_at_the_end_may_have_come_before_it() -> None:
    s = Scribe()
    s.create()
    s.entry(opened(), joined("a.1"), started(1, "a.1"))
    call = s.send("Heartbeat", member_id="a.1", generation=1)
    s.wait(1).entry(replaced("a.1", "a.2"))
    s.wait(1).hear(call)

    assert s.judged("I5").violations == []


def tells(s: Scribe) -> None:
    """The leader answers a call of another group that was recorded behind all of this one."""
    other = s.send("DeleteTopics")
    s.wait(1).hear(other, position=[s.index + 1, 0])


def test_on_a_cluster_a_fence_holds_from_when_the_leader_told_of_it() -> None:
    """There a record's time is the earliest that is possible; an answer proves that it is past.

    A watch does not: whatever node serves it may have applied more than a busy leader (S4).
    """
    s = Scribe()
    s.say(Began(0, FORMAT, "cluster", ("n1",), 0.0, {}))
    s.create()
    s.entry(opened(), joined("a.1"), started(1, "a.1"))
    s.entry(replaced("a.1", "a.2"))
    s.wait(5).call("Heartbeat", member_id="a.1", generation=1)
    s.say(Watched(s.now_us, "x", s.index + 1, 0, 9, "h", "GroupCreated"))
    s.wait(1).call("Heartbeat", member_id="a.1", generation=1)
    assert s.judged("I5").violations == []

    tells(s)
    s.wait(1).call("Heartbeat", member_id="a.1", generation=1)
    assert whats(s.judged("I5")).startswith("call 4 (Heartbeat by w)")


def test_the_same_member_id_in_another_group_is_another() -> None:
    s = ended(ENDS[0])
    s.call("Heartbeat", group="h", member_id="a.1")

    assert s.judged("I5").violations == []


def test_an_effect_behind_the_end_is_found_whatever_was_answered() -> None:
    s = ended(ENDS[0])
    asked: dict[str, Any] = {"member_id": "a.1", "offsets": [["t", 0, 7]], "request_id": "r1"}
    s.call("OffsetCommit", outcome="unknown", **asked)
    s.entry(offsets(7), request_id="r1")

    assert "took effect at index 5, behind the end of member a.1" in whats(s.judged("I5"))


def test_a_repetition_of_what_was_done_before_is_answered() -> None:
    """S14: a commit that was recorded before the end is told again from the table."""
    s = Scribe()
    s.create()
    s.entry(opened(), joined("a.1"), started(1, "a.1"))
    asked: dict[str, Any] = {"member_id": "a.1", "request_id": "r1"}
    s.commit(7, **asked)
    s.entry(replaced("a.1", "a.2"))
    s.wait(1).call("OffsetCommit", offsets=[["t", 0, 7]], result={"position": [3, 0]}, **asked)

    assert s.judged("I5").violations == []


# --- who it was at the time ---


def two_generations() -> Scribe:
    """Member a.1 and b are in generation 1, and then in 2."""
    s = Scribe()
    s.create()
    s.entry(opened(), joined("a.1"), joined("b"))
    s.entry(started(1, "a.1", "b"))
    s.wait(10).entry(opened())
    s.entry(started(2, "a.1", "b"))
    s.wait(1)
    return s


OLD: dict[str, Any] = {"member_id": "a.1", "generation": 1}
NOW: dict[str, Any] = {"member_id": "a.1", "generation": 2}


@pytest.mark.parametrize("op", ["Heartbeat", "SyncGroup"])
def test_a_call_of_an_older_generation_that_is_accepted_is_found(op: str) -> None:
    """K-F4, K-E2: who has not heard of the new generation must be told."""
    s = two_generations()
    s.call(op, **OLD)

    assert whats(s.judged("I5")) == (
        f"call 1 ({op} by w) was accepted for member a.1 of 'g', generation 1; by the log, the "
        "generation was 2 then"
    )


def test_a_heartbeat_that_is_told_to_join_again_was_accepted_too() -> None:
    s = two_generations()
    s.call("Heartbeat", outcome="rejected", error="REBALANCE_IN_PROGRESS", **OLD)

    assert "the generation was 2 then" in whats(s.judged("I5"))


def test_calls_of_the_present_generation_pass() -> None:
    s = two_generations()
    s.call("Heartbeat", instance_id="a", **NOW)
    s.call("SyncGroup", **NOW)
    s.commit(7, **NOW)
    s.call("Heartbeat", outcome="rejected", error="ILLEGAL_GENERATION", **OLD)

    verdict = s.judged("I5")

    assert verdict.violations == []
    assert verdict.checked["calls accepted"] == 3


def test_a_heartbeat_on_its_way_while_a_generation_begins_may_be_of_either() -> None:
    s = two_generations()
    old, new = s.send("Heartbeat", **NOW), s.send("Heartbeat", member_id="b", generation=3)
    s.wait(5).entry(opened())
    s.entry(started(3, "a.1", "b"))
    s.hear(old)
    s.hear(new)

    assert s.judged("I5").violations == []


def test_a_commit_is_judged_at_its_position_whenever_it_was_on_its_way() -> None:
    """K-F12: it was sent in generation 2, and recorded behind the beginning of generation 3."""
    s = two_generations()
    late = s.send("OffsetCommit", offsets=[["t", 0, 7]], **NOW)
    s.wait(1).entry(opened())
    s.entry(started(3, "a.1", "b"))
    index = s.entry(offsets(7))
    s.hear(late, position=[index, 0])

    assert "by the log, the generation was 3 then" in whats(s.judged("I5"))


def test_a_commit_ahead_of_a_new_generation_in_one_entry_passes() -> None:
    s = two_generations()
    late = s.send("OffsetCommit", offsets=[["t", 0, 7]], **NOW)
    index = s.entry(offsets(7), started(3, "a.1", "b"))
    s.hear(late, position=[index, 0])

    assert s.judged("I5").violations == []


def test_a_call_of_who_never_was_a_member_is_found() -> None:
    s = two_generations()
    s.call("Heartbeat", member_id="c", generation=2)

    assert "by the log, there was no such member then" in whats(s.judged("I5"))


def test_a_call_under_somebody_elses_instance_is_found() -> None:
    s = two_generations()
    s.call("Heartbeat", member_id="b", instance_id="a", generation=2)

    assert "by the log, it was not bound to instance 'a' then" in whats(s.judged("I5"))


def test_a_commit_of_no_generation_is_nobodys() -> None:
    """K-C11: in an empty group the ids of such a commit are not looked at."""
    s = two_generations()
    s.call("OffsetCommit", member_id="z", generation=-1, offsets=[["t", 0, 7]])

    assert s.judged("I5").violations == []


def test_a_group_that_the_log_knows_from_the_middle_is_not_judged() -> None:
    s = Scribe()
    s.entry(opened(), joined("b"))
    s.call("Heartbeat", **OLD)

    assert s.judged("I5").violations == []


def test_on_a_cluster_a_generation_counts_from_when_the_leader_told_of_it() -> None:
    """Found by chaos: a watch of a follower showed it 3 ms before the leader had applied it."""
    s = two_generations()
    s.history.insert(0, Began(0, FORMAT, "cluster", ("n1",), 0.0, {}))
    s.call("Heartbeat", **OLD)
    s.say(Watched(s.now_us, "x", s.index + 1, 0, 9, "h", "GroupCreated"))
    s.wait(1).call("Heartbeat", **OLD)
    assert s.judged("I5").violations == []

    tells(s)
    s.wait(1).call("Heartbeat", **OLD)
    assert whats(s.judged("I5")).startswith("call 4 (Heartbeat by w)")


def test_a_release_may_be_repeated() -> None:
    s = ended(ENDS[1])
    s.call("Heartbeat", member_id="a.1", release=True)

    assert s.judged("I5").violations == []


def test_nothing_is_no_proof() -> None:
    assert Scribe().judged("I5").empty
