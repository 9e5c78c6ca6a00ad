"""INV-2: an acknowledged change that is not in the log as it was acknowledged is found."""

import pytest

from holdfast.chaos.history.happenings import Recorded
from unit.chaos.scribe import Scribe, joined, offsets, opened, started, whats


def committed() -> Scribe:
    """Two acknowledged commits."""
    s = Scribe()
    s.create()
    s.commit(10, request_id="r1")
    s.commit(11, request_id="r2")
    return s


def without(s: Scribe, index: int) -> None:
    """Cut an entry out of the log."""
    s.history = [e for e in s.history if not (isinstance(e, Recorded) and e.index == index)]


def test_what_was_acknowledged_is_in_the_log() -> None:
    verdict = committed().judged("I2")

    assert verdict.violations == []
    assert verdict.checked == {"acknowledged changes": 2, "records": 3}


def test_a_lost_entry_at_the_end_is_found() -> None:
    s = committed()
    without(s, 3)

    assert "acknowledged at (3, 0), where the log has nothing" in whats(s.judged("I2"))


def test_a_lost_entry_in_the_middle_is_found_by_the_hole_it_leaves() -> None:
    """S3: group_seq is consecutive within a life, so also what nobody was told cannot vanish."""
    s = Scribe()
    s.create()
    for offset in range(3):
        s.entry(offsets(offset))
    without(s, 3)

    assert "goes from record 2 to 4" in whats(s.judged("I2"))


def test_another_entry_in_its_place_is_found() -> None:
    """The truncation of a committed entry: the index is taken by another request."""
    s = Scribe()
    s.create()
    call = s.send("OffsetCommit", offsets=[["t", 0, 10]], request_id="r1")
    s.wait(1).hear(call, position=[2, 0])
    s.entry(offsets(10), request_id="r2")

    assert "does not serve request r1" in whats(s.judged("I2"))


def test_another_content_is_found() -> None:
    s = Scribe()
    s.create()
    call = s.send("OffsetCommit", offsets=[["t", 0, 10]])
    index = s.wait(1).entry(offsets(9))
    s.hear(call, position=[index, 0])

    assert "lacks the offsets [('t', 0, 10)]" in whats(s.judged("I2"))


def test_a_partition_that_was_refused_need_not_be_there() -> None:
    s = Scribe()
    s.create()
    call = s.send("OffsetCommit", offsets=[["t", 0, 10], ["t", 1, 10]])
    index = s.entry(offsets(10))
    s.hear(call, position=[index, 0], errors=[["t", 1, "UNKNOWN_TOPIC_OR_PARTITION"]])

    assert s.judged("I2").violations == []


def test_the_entry_must_be_of_the_same_group() -> None:
    s = Scribe()
    s.create()
    s.create("h")
    call = s.send("OffsetCommit", offsets=[["t", 0, 10]], request_id="r1")
    index = s.entry(offsets(10), group="h", request_id="r1")
    s.hear(call, position=[index, 0])

    assert len(s.judged("I2").violations) == 1


def test_a_change_before_one_that_was_acknowledged_earlier_is_found() -> None:
    s = Scribe()
    s.create()
    first = s.send("OffsetCommit", offsets=[["t", 0, 10]])
    s.entry(offsets(11))
    s.entry(offsets(10))
    s.wait(1).hear(first, position=[3, 0])
    s.wait(1).call("OffsetCommit", result={"position": [2, 0]}, offsets=[["t", 0, 11]])

    assert "sent after call 1" in whats(s.judged("I2"))


def test_concurrent_changes_may_stand_in_either_order() -> None:
    s = Scribe()
    s.create()
    first = s.send("OffsetCommit", offsets=[["t", 0, 10]])
    second = s.send("OffsetCommit", offsets=[["t", 0, 11]])
    s.entry(offsets(11))
    s.entry(offsets(10))
    s.wait(1).hear(first, position=[3, 0])
    s.wait(1).hear(second, position=[2, 0])

    assert s.judged("I2").violations == []


def test_a_repetition_is_told_the_old_place() -> None:
    """S14: a retry is answered from the table, behind changes that came after the first try."""
    s = committed()
    at_2 = {"position": [2, 0]}
    s.call("OffsetCommit", result=at_2, offsets=[["t", 0, 10]], request_id="r1")

    assert s.judged("I2").violations == []


def test_a_repetition_of_what_was_never_answered_is_told_the_old_place_too() -> None:
    """S5: the first try was recorded before the other change, and only its answer was lost."""
    s = Scribe()
    s.create()
    s.call("OffsetCommit", outcome="unknown", offsets=[["t", 0, 10]], request_id="r1")
    s.entry(offsets(10), request_id="r1")
    s.commit(11, request_id="r2")
    at_2 = {"position": [2, 0]}
    s.call("OffsetCommit", result=at_2, offsets=[["t", 0, 10]], request_id="r1")

    assert s.judged("I2").violations == []


def test_a_join_must_be_told_a_place_that_is_there() -> None:
    """Its request is served by the generation, at the same place or earlier (S14)."""
    s = Scribe()
    s.create()
    s.entry(opened(), joined("a"), started(1, "a"))
    s.call("JoinGroup", result={"position": [2, 2], "member_id": "a"}, request_id="r1")
    assert s.judged("I2").violations == []

    s.call("JoinGroup", result={"position": [2, 3], "member_id": "a"}, request_id="r2")
    assert len(s.judged("I2").violations) == 1


@pytest.mark.parametrize("outcome", ["rejected", "unknown", "not-applied"])
def test_what_was_not_acknowledged_may_be_missing(outcome: str) -> None:
    s = Scribe()
    s.create()
    s.call("OffsetCommit", outcome=outcome, offsets=[["t", 0, 1]], request_id="r1")  # type: ignore[arg-type]  # a Literal

    assert s.judged("I2").violations == []


def test_a_history_that_begins_later_is_judged_from_there() -> None:
    """A staging cluster was there before: earlier positions and numbers are not known."""
    s = committed()
    without(s, 1)
    without(s, 2)

    assert s.judged("I2").violations == []


def test_a_history_without_a_log_is_no_proof() -> None:
    s = Scribe()
    s.call("OffsetCommit", result={"position": [2, 0]})

    assert s.judged("I2").empty
