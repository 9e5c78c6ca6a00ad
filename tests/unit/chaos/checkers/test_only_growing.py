"""INV-3: every number that must grow is seen to fall, and every one that is used twice."""

from holdfast.chaos.history.happenings import Recorded
from holdfast.coordinator.model.events import GroupDeleted, GroupEmptied
from unit.chaos.scribe import Scribe, assigned, joined, offsets, opened, replaced, started, whats

SPAN = 1 << 48


def growing() -> Scribe:
    """A group with two generations, granted and heard of."""
    s = Scribe()
    s.create()
    s.entry(opened(), joined("a"))
    s.entry(started(1, "a"))
    s.grant("w1", "a", [0, 1], token=s.entry(assigned(1, {"a": [0, 1]})))
    s.entry(opened(), joined("b"))
    s.entry(started(2, "a", "b"))
    token = s.entry(assigned(2, {"a": [0], "b": [1]}))
    s.grant("w1", "a", [0], token)
    s.grant("w2", "b", [1], token)
    return s


def changed(s: Scribe, entry: int, **fields: int) -> str:
    """What is said if a record of this index says something else."""
    for at, each in enumerate(s.history):
        if isinstance(each, Recorded) and each.index == entry:
            s.history[at] = each._replace(**fields)  # type: ignore[arg-type]  # of one type here
            break
    return whats(s.judged("I3"))


def test_what_grows_passes() -> None:
    verdict = growing().judged("I3")

    assert verdict.violations == []
    assert verdict.checked == {"records": 9, "grants": 3}


def test_a_position_that_is_used_twice_is_found() -> None:
    assert "record 3.0 after 3.0: positions do not grow" in changed(growing(), 4, index=3)


def test_a_term_that_falls_is_found() -> None:
    assert "term 0 after term 1" in changed(growing(), 4, term=0)


def test_log_time_that_runs_back_is_found() -> None:
    """S8: it is monotone across leaders, whatever their clocks say."""
    s = growing()
    s.wait(5).entry(offsets(1))
    s.entry(offsets(2))

    assert "log time 3 ms after 5 ms" in changed(s, 9, log_time_ms=3)


def test_a_group_seq_that_is_used_twice_is_found() -> None:
    assert "reuses number 3" in changed(growing(), 3, group_seq=3)


def test_a_generation_that_is_issued_again_is_found() -> None:
    s = growing()
    s.entry(opened())
    s.entry(started(2, "a", "b"))

    assert "generation 2 begins after 2" in whats(s.judged("I3"))


def test_an_emptied_group_uses_a_generation_too() -> None:
    s = growing()
    s.entry(opened())
    s.entry(GroupEmptied(2))

    assert "generation 2 begins after 2" in whats(s.judged("I3"))


def test_a_new_life_counts_anew() -> None:
    s = growing()
    s.entry(GroupEmptied(3))
    s.entry(GroupDeleted())
    s.create()
    s.entry(opened(), joined("c"))
    s.entry(started(1, "c"))

    assert s.judged("I3").violations == []


def test_tokens_grow_over_lives() -> None:
    """S13: a token survives deletion and re-creation, so the new life's are higher."""
    s = growing()
    s.entry(GroupDeleted())
    s.create()
    s.entry(opened(), joined("c"))
    s.entry(started(1, "c"))
    s.entry(assigned(1, {"c": [0]}))
    s.grant("w3", "c", [0], token=4)

    assert "granted to c with token 4, after a had 7" in whats(s.judged("I3"))


def test_a_higher_recovery_number_lifts_every_token() -> None:
    """S13: a restore raises recovery_number, so that older indexes can be used again."""
    s = growing()
    s.grant("w1", "a", [0], token=SPAN + 4)

    assert s.judged("I3").violations == []


def test_a_token_that_two_members_have_is_found() -> None:
    s = growing()
    s.grant("w3", "c", [1], token=7)

    assert "token 7 of t/1 of 'g' was b's and is given to c" in whats(s.judged("I3"))


def test_one_token_for_many_members_of_one_assignment_is_right() -> None:
    """The grant is the entry; each partition has one owner in it."""
    assert "token" not in whats(growing().judged("I3"))


def test_a_token_that_nothing_granted_is_found() -> None:
    s = growing()
    s.grant("w1", "a", [5], token=6)

    assert "entry 6 granted nothing" in whats(s.judged("I3"))


def test_an_answer_to_a_replaced_holder_may_come_late() -> None:
    """S12: it was swapped out meanwhile, and only the token excludes it."""
    s = Scribe()
    s.create()
    s.entry(opened(), joined("a.1"))
    s.entry(started(1, "a.1"))
    old = s.entry(assigned(1, {"a.1": [0]}))
    s.grant("w2", "a.2", [0], token=s.entry(replaced("a.1", "a.2")))
    s.wait(1).grant("w1", "a.1", [0], token=old)

    assert s.judged("I3").violations == []


def test_nothing_is_no_proof() -> None:
    assert Scribe().judged("I3").empty
