"""INV-11: a request that takes effect twice, or is answered in two ways, is found."""

from typing import Any, Final

import pytest

from holdfast.coordinator.model.events import Event, MembersRemoved, RequestRecorded
from unit.chaos.scribe import Scribe, joined, offsets, opened, replaced, started, whats

ASKED: Final[dict[str, Any]] = {"offsets": [["t", 0, 7]], "request_id": "r1"}
AT_2: Final = {"position": [2, 0]}


def served() -> Scribe:
    """Commit r1 was lost on the way back, and is at index 2."""
    s = Scribe()
    s.create()
    s.call("OffsetCommit", outcome="unknown", **ASKED)
    s.entry(offsets(7), request_id="r1")
    return s


def test_a_retry_that_is_told_the_same_passes() -> None:
    s = served()
    s.call("OffsetCommit", result=AT_2, **ASKED)
    s.call("OffsetCommit", result=AT_2, **ASKED)

    verdict = s.judged("I11")

    assert verdict.violations == []
    assert verdict.checked == {"requests": 1, "sent again": 1, "served": 1}


def test_an_effect_that_happened_twice_is_found() -> None:
    s = served()
    s.entry(offsets(7), request_id="r1")

    assert "request r1 of 'g' took effect at the indexes [2, 3]" in whats(s.judged("I11"))


def test_a_strangers_effect_that_happened_twice_is_found() -> None:
    """Nobody in the history asked, but its answer was stored, so it was a one-shot request."""
    s = Scribe()
    s.create()
    s.entry(offsets(1), RequestRecorded("r9", b"", b""), request_id="r9")
    s.entry(offsets(1), RequestRecorded("r9", b"", b""), request_id="r9")

    assert "request r9" in whats(s.judged("I11"))


def test_an_id_counts_within_its_group() -> None:
    s = served()
    s.create("h")
    s.entry(offsets(7), group="h", request_id="r1")

    assert s.judged("I11").violations == []


def test_a_retry_that_is_told_another_place_is_found() -> None:
    s = served()
    s.call("OffsetCommit", result=AT_2, **ASKED)
    s.call("OffsetCommit", result={"position": [3, 0]}, **ASKED)

    assert "its repetition call 3 (OffsetCommit by w) is told" in whats(s.judged("I11"))


def test_a_retry_that_is_told_other_errors_is_found() -> None:
    s = served()
    s.call("OffsetCommit", result=AT_2, **ASKED)
    s.call("OffsetCommit", result={**AT_2, "errors": [["t", 0, "FENCED"]]}, **ASKED)

    assert len(s.judged("I11").violations) == 1


def test_a_retry_that_is_refused_after_the_fact_is_found() -> None:
    s = served()
    s.call("OffsetCommit", result=AT_2, **ASKED)
    s.call("OffsetCommit", outcome="rejected", error="ILLEGAL_GENERATION", **ASKED)

    assert "was refused (ILLEGAL_GENERATION), after call 2" in whats(s.judged("I11"))


def test_a_node_that_does_not_lead_may_refuse_anything() -> None:
    s = served()
    s.call("OffsetCommit", result=AT_2, **ASKED)
    s.call("OffsetCommit", outcome="rejected", error="NOT_COORDINATOR", **ASKED)

    assert s.judged("I11").violations == []


def test_a_refusal_is_decided_again() -> None:
    """S14: what was refused once may be done at the next try."""
    s = Scribe()
    s.create()
    s.call("OffsetCommit", outcome="rejected", error="COORDINATOR_LOAD_IN_PROGRESS", **ASKED)
    s.entry(offsets(7), request_id="r1")
    s.call("OffsetCommit", result=AT_2, **ASKED)

    assert s.judged("I11").violations == []


@pytest.mark.parametrize("outcome", ["not-applied", "rejected"])
def test_an_effect_of_what_was_not_applied_is_found(outcome: Any) -> None:  # noqa: ANN401 - a Literal
    """S5: not-applied is a promise."""
    s = Scribe()
    s.create()
    s.call("OffsetCommit", outcome=outcome, **ASKED)
    s.entry(offsets(7), request_id="r1")

    assert "was not applied, as call 1" in whats(s.judged("I11"))


def test_one_join_makes_one_member() -> None:
    s = Scribe()
    s.create()
    s.entry(opened(), joined("a"), request_id="r1")
    s.entry(joined("b"), request_id="r1")

    assert "request r1 of 'g' made 2 members: a, b" in whats(s.judged("I11"))


def test_a_join_that_swaps_out_what_it_made_itself_is_found() -> None:
    s = Scribe()
    s.create()
    s.entry(opened(), joined("a.1"), request_id="r1")
    s.entry(replaced("a.1", "a.2"), request_id="r1")

    assert "made 2 members: a.1, a.2" in whats(s.judged("I11"))


@pytest.mark.parametrize("end", [MembersRemoved(("a.1",), ""), replaced("a.1", "a.5")])
def test_a_join_whose_member_is_gone_is_decided_again(end: Event) -> None:
    """S14: a request id finds its member; one that was thrown out meanwhile is not there."""
    s = Scribe()
    s.create()
    s.entry(opened(), joined("a.1"), request_id="r1")
    s.entry(end, request_id="r2")
    s.entry(joined("a.2"), request_id="r1")
    s.call("JoinGroup", request_id="r1", result={"member_id": "a.1"})
    s.call("JoinGroup", request_id="r1", result={"member_id": "a.2"})

    assert s.judged("I11").violations == []


def test_a_join_may_be_served_by_two_generations() -> None:
    """S14: its answer is built anew, and its retry may meet the next rebalance."""
    s = Scribe()
    s.create()
    s.entry(opened(), joined("a"), request_id="r1")
    s.entry(started(1, "a"), request_id="r1")
    s.entry(opened())
    s.entry(started(2, "a"), request_id="r1")

    assert s.judged("I11").violations == []


def test_a_join_that_is_told_two_member_ids_is_found() -> None:
    s = Scribe()
    s.call("JoinGroup", request_id="r1", result={"member_id": "a"})
    s.call("JoinGroup", request_id="r1", result={"member_id": "b"})

    assert "'member_id': 'a'" in whats(s.judged("I11"))


def test_a_parked_join_that_lost_its_leader_may_have_been_recorded() -> None:
    """S5: NOT_COORDINATOR ends a parked join, whose member may be on the log already."""
    s = Scribe()
    s.create()
    s.call("JoinGroup", outcome="rejected", error="NOT_COORDINATOR", request_id="r1")
    s.entry(opened(), joined("a"), request_id="r1")

    assert s.judged("I11").violations == []


def test_nothing_is_no_proof() -> None:
    assert Scribe().judged("I11").empty
