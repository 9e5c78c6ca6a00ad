"""INV-1: two who may act on one partition at once are found; all that only looks like it is not."""

import pytest

from holdfast.chaos.history.happenings import Granted, Surrendered
from holdfast.coordinator.model.events import MembersRemoved
from unit.chaos.scribe import Scribe, joined, opened, replaced, started, whats


def test_one_after_the_other_is_exclusive() -> None:
    s = Scribe()
    s.grant("w1", "a", [0, 1], token=5)
    s.wait(10).surrender("w1", "a")
    s.grant("w2", "b", [0, 1], token=9)

    verdict = s.judged("I1")

    assert verdict.violations == []
    assert verdict.checked == {"intervals": 4, "partitions": 2}


def test_a_second_owner_is_found() -> None:
    s = Scribe()
    s.grant("w1", "a", [0], token=5)
    s.wait(10).grant("w2", "b", [0], token=9)
    s.wait(1).surrender("w1", "a")

    assert "'g' is owned twice from 0.010 s to 0.011 s" in whats(s.judged("I1"))


def test_the_same_partition_number_in_another_group_is_another_partition() -> None:
    s = Scribe()
    s.grant("w1", "a", [0], token=5)
    s.say(Granted(s.now_us, "w2", "h", "b", "", 1, (("t", 0),), 6, 0))

    assert s.judged("I1").violations == []


def test_a_right_ends_by_its_own_clock_although_the_process_is_frozen() -> None:
    """S11: who was stopped by a signal says nothing, but may not act when it wakes up."""
    s = Scribe()
    s.grant("w1", "a", [0], token=5, until_ms=8)
    s.wait(8).grant("w2", "b", [0], token=9)

    assert s.judged("I1").violations == []


def test_a_right_that_ends_a_moment_too_late_is_found() -> None:
    s = Scribe()
    s.grant("w1", "a", [0], token=5, until_ms=8.001)
    s.wait(8).grant("w2", "b", [0], token=9)

    assert len(s.judged("I1").violations) == 1


def test_a_renewed_right_lasts_longer() -> None:
    s = Scribe()
    s.grant("w1", "a", [0], token=5, until_ms=8)
    s.wait(5).renew("w1", "a", for_ms=8)
    s.wait(5).grant("w2", "b", [0], token=9)

    assert len(s.judged("I1").violations) == 1


def test_between_its_end_and_its_renewal_a_right_is_nobodys() -> None:
    """S11: ownership returns by a heartbeat answered NONE; meanwhile the member did not act."""
    s = Scribe()
    s.grant("w1", "a", [0], token=5, until_ms=5)
    s.wait(6).grant("w2", "b", [0], token=9, until_ms=2)
    s.wait(3).renew("w1", "a", for_ms=5)

    assert s.judged("I1").violations == []


def test_an_owner_that_comes_back_to_what_another_has_is_found() -> None:
    s = Scribe()
    s.grant("w1", "a", [0], token=5, until_ms=5)
    s.wait(6).grant("w2", "b", [0], token=9)
    s.wait(3).renew("w1", "a", for_ms=5)

    assert len(s.judged("I1").violations) == 1


def test_a_new_grant_without_a_partition_gives_it_up() -> None:
    s = Scribe()
    s.grant("w1", "a", [0, 1], token=5)
    s.wait(5).grant("w1", "a", [1], token=9)
    s.grant("w2", "b", [0], token=9)

    assert s.judged("I1").violations == []


def test_what_a_new_grant_keeps_is_still_owned() -> None:
    s = Scribe()
    s.grant("w1", "a", [0, 1], token=5)
    s.wait(5).grant("w1", "a", [1], token=9)
    s.wait(5).grant("w2", "b", [1], token=12)

    assert "t/1" in whats(s.judged("I1"))


def test_a_process_that_dies_owns_nothing() -> None:
    s = Scribe()
    s.grant("w1", "a", [0], token=5)
    s.say(Surrendered(s.now_us, "w1", "", "", "crashed"))
    s.grant("w2", "b", [0], token=9)

    assert s.judged("I1").violations == []


def test_a_long_right_is_compared_with_all_that_begin_in_it() -> None:
    s = Scribe()
    s.grant("w1", "a", [0], token=5, until_ms=100)
    s.grant("w2", "b", [1], token=5)
    s.wait(10).grant("w3", "c", [0], token=7, until_ms=1)
    s.wait(10).grant("w4", "d", [0], token=9, until_ms=1)

    assert len(s.judged("I1").violations) == 2


def test_a_swap_ends_the_old_holders_right_at_its_commit() -> None:
    """S12: a swap is not a lease; what the old holder does afterwards is the token's business."""
    s = Scribe()
    s.create()
    s.entry(opened(), joined("a.1"), started(1, "a.1"))
    s.grant("w1", "a.1", [0], token=2)
    s.wait(5)
    index = s.entry(replaced("a.1", "a.2"))
    s.grant("w2", "a.2", [0], token=index)

    assert s.judged("I1").violations == []


def test_before_the_commit_of_the_swap_the_new_holder_owns_nothing() -> None:
    s = Scribe()
    s.create()
    s.entry(opened(), joined("a.1"), started(1, "a.1"))
    s.grant("w1", "a.1", [0], token=2)
    s.wait(5).grant("w2", "a.2", [0], token=2)
    s.wait(5).entry(replaced("a.1", "a.2"))

    assert len(s.judged("I1").violations) == 1


def test_a_token_proves_a_commit_that_was_seen_late() -> None:
    """A record reaches the history late; who has its token was granted after its commit (S13)."""
    s = Scribe()
    s.create()
    s.entry(opened(), joined("a.1"), started(1, "a.1"))
    s.grant("w1", "a.1", [0], token=2)
    s.wait(5).grant("w2", "a.2", [0], token=3)
    s.wait(5)
    assert s.entry(replaced("a.1", "a.2")) == 3

    assert s.judged("I1").violations == []


@pytest.mark.parametrize(("instance", "clashes"), [("a", 0), ("", 1)])
def test_without_a_log_a_swap_is_known_by_its_grants(instance: str, clashes: int) -> None:
    """The same instance, another member id, a higher token; anybody else is a second owner."""
    s = Scribe()
    for member_id, token in (("a.1", 5), ("a.2", 9)):
        grant = Granted(s.now_us, member_id, "g", member_id, instance, 1, (("t", 0),), token, 0)
        s.say(grant)
        s.wait(5)

    assert len(s.judged("I1").violations) == clashes


def test_an_operators_removal_ends_the_right_at_its_commit() -> None:
    s = Scribe()
    s.create()
    s.entry(opened(), joined("a"), started(1, "a"))
    s.grant("w1", "a", [0], token=2)
    s.wait(5).entry(opened(), MembersRemoved(("a",), "stuck"))
    s.grant("w2", "b", [0], token=9)

    assert s.judged("I1").violations == []


def test_a_grant_that_arrives_after_the_swap_gives_nothing() -> None:
    s = Scribe()
    s.create()
    s.entry(opened(), joined("a.1"), started(1, "a.1"))
    index = s.entry(replaced("a.1", "a.2"))
    s.grant("w2", "a.2", [0], token=index)
    s.wait(5).grant("w1", "a.1", [0], token=2)

    verdict = s.judged("I1")

    assert verdict.violations == []
    assert verdict.checked["intervals"] == 1


def test_a_history_without_grants_is_no_proof() -> None:
    assert Scribe().judged("I1").empty


# --- cooperative members: some partitions stay while others move (KIP-429) ---


def moving(s: Scribe) -> None:
    """w1 has 0 and 1; 1 moves to w2 in two rebalances, and w1 gets 2 meanwhile."""
    s.has("w1", "a", {0: 5, 1: 5})
    s.wait(10).has("w1", "a", {0: 5})  # on_revoked of 1 has returned
    s.wait(5).has("w1", "a", {0: 5, 2: 9})
    s.has("w2", "b", {1: 9})
    s.wait(10).surrender("w1", "a")
    s.surrender("w2", "b")


def test_a_cooperative_member_keeps_one_partition_while_another_moves() -> None:
    s = Scribe()
    moving(s)

    verdict = s.judged("I1")

    assert verdict.violations == []
    assert verdict.checked == {"intervals": 4, "partitions": 3}, "what is kept is one interval"


def test_a_partition_that_moves_before_it_is_let_go_of_is_found_and_no_other() -> None:
    s = Scribe()
    s.has("w1", "a", {0: 5, 1: 5})
    s.wait(10).has("w2", "b", {1: 9})
    s.wait(2).has("w1", "a", {0: 5})

    (clash,) = s.judged("I1").violations

    assert "t/1 of 'g' is owned twice from 0.010 s to 0.012 s" in clash.what
    assert "w1 (member a, token 5), which may act since 0.000 s" in clash.what
    assert "w2 (member b, token 9)" in clash.what


def test_what_is_kept_over_two_rebalances_and_given_to_another_is_found() -> None:
    """The grants in between say nothing of it but that it stays: its right is the first one's."""
    s = Scribe()
    s.has("w1", "a", {0: 5, 1: 5})
    s.wait(10).has("w1", "a", {0: 5})
    s.wait(10).has("w1", "a", {0: 5, 2: 9})
    s.wait(10).has("w2", "b", {0: 12})

    (clash,) = s.judged("I1").violations

    assert "t/0" in clash.what
    assert "may act since 0.000 s" in clash.what


def test_s11_the_clock_of_the_member_ends_what_it_keeps_as_well() -> None:
    s = Scribe()
    s.has("w1", "a", {0: 5, 1: 5}, until_ms=20)
    s.wait(10).has("w1", "a", {0: 5}, until_ms=10)
    s.wait(10).has("w2", "b", {0: 9})

    assert s.judged("I1").violations == []


def test_s13_the_tokens_of_a_cooperative_member_only_grow_partition_by_partition() -> None:
    """The newest grant names a partition under an older token, and that is no step back."""
    s = Scribe()
    moving(s)

    assert s.judged("I3").violations == []
