"""INV-4: an instance that two hold, in the log or in an answer, is found."""

from holdfast.coordinator.model.events import MemberExpired
from unit.chaos.scribe import Scribe, joined, opened, replaced, started, whats


def bound() -> Scribe:
    """Instance `a` of group g is member a.1."""
    s = Scribe()
    s.create()
    s.entry(opened(), joined("a.1"), joined("b"))
    s.entry(started(1, "a.1", "b"))
    return s


def test_a_swap_keeps_one_binding() -> None:
    s = bound()
    s.entry(replaced("a.1", "a.2"))
    s.entry(replaced("a.2", "a.3"))

    verdict = s.judged("I4")

    assert verdict.violations == []
    assert verdict.checked["bindings"] == 3


def test_a_second_holder_is_found() -> None:
    s = bound()
    s.entry(joined("a.2"))

    assert "instance 'a' of 'g' is bound 2 times after index 4" in whats(s.judged("I4"))


def test_a_swap_of_somebody_else_is_found() -> None:
    s = bound()
    s.entry(replaced("b", "a.2"))

    assert "replaces b, who does not hold instance 'a'" in whats(s.judged("I4"))


def test_a_swap_of_who_is_gone_is_found() -> None:
    s = bound()
    s.entry(replaced("a.1", "a.2"))
    s.entry(replaced("a.1", "a.3"))

    assert "replaces a.1" in whats(s.judged("I4"))


def test_a_member_id_that_comes_back_is_found() -> None:
    """A fenced id is fenced for ever."""
    s = bound()
    s.entry(replaced("a.1", "a.2"))
    s.entry(replaced("a.2", "a.1"))

    assert "member id a.1 of 'g' is used a second time" in whats(s.judged("I4"))


def test_after_an_expiry_the_instance_may_be_bound_anew() -> None:
    s = bound()
    s.entry(opened(), MemberExpired("a.1", "session"), joined("a.2"))

    assert s.judged("I4").violations == []


def test_the_same_instance_in_another_group_is_another() -> None:
    s = bound()
    s.create("h")
    s.entry(opened(), joined("a.9"), group="h")

    assert s.judged("I4").violations == []


def test_an_answer_that_shows_two_holders_is_found() -> None:
    s = Scribe()
    members = [["a.1", "a"], ["a.2", "a"], ["b", None], ["c", ""]]
    s.call("DescribeGroups", result={"members": members})

    verdict = s.judged("I4")

    assert whats(verdict).endswith("was shown instance 'a' of 'g' 2 times")
    assert verdict.checked["descriptions"] == 1


def test_nothing_is_no_proof() -> None:
    assert Scribe().judged("I4").empty
