"""INV-9: a rebalance without a cause, and a move that no balance needs, are found."""

import pytest

from holdfast.chaos.evidence.balance import Share, needed
from holdfast.coordinator.model.events import (
    Event,
    MemberExpired,
    MemberRefused,
    MembersLeft,
    MembersRemoved,
    TopicsDeleted,
)
from unit.chaos.scribe import (
    Scribe,
    assigned,
    joined,
    opened,
    owning,
    protocols,
    replaced,
    started,
    topic,
    updated,
    whats,
)

CAUSES: list[Event] = [
    joined("c"),
    updated("b", protocols(("u",))),
    MembersLeft(("b",), ""),
    MembersRemoved(("b",), ""),
    MemberExpired("b", "session"),
    MemberRefused("b"),
]


def settled() -> Scribe:
    """a.1 leads, b follows, everything is shared out."""
    s = Scribe()
    s.create()
    s.entry(opened(), joined("a.1"), joined("b"))
    s.entry(started(1, "a.1", "b"))
    s.entry(assigned(1, {"a.1": [0], "b": [1]}))
    s.wait(1)
    return s


@pytest.mark.parametrize("cause", CAUSES, ids=lambda event: type(event).__name__)
def test_a_change_of_the_members_is_a_cause(cause: Event) -> None:
    s = settled()
    s.entry(opened(), cause)

    verdict = s.judged("I9")

    assert verdict.violations == []
    assert verdict.checked["rebalances"] == 2


def test_a_rebalance_because_of_a_new_leader_is_found() -> None:
    """The assignment is state in the log; an election never recomputes it."""
    s = settled()
    s.lead("n2")
    s.wait(1).entry(opened(reason="a new leader"))

    said = whats(s.judged("I9"))
    assert "(a new leader) without a cause; the leader had changed to n2 in term 2" in said


def test_elections_alone_move_nothing() -> None:
    s = settled()
    for _ in range(5):
        s.wait(10).lead("n2")

    assert s.judged("I9").violations == []


def test_a_static_restart_moves_nothing() -> None:
    s = settled()
    s.call("JoinGroup", instance_id="a", member_id="", result={"member_id": "a.2"})
    s.entry(replaced("a.1", "a.2"))

    verdict = s.judged("I9")

    assert verdict.violations == []
    assert verdict.checked["swaps"] == 1


def test_a_rebalance_because_of_a_static_restart_is_found() -> None:
    s = settled()
    s.call("JoinGroup", instance_id="a", member_id="", result={"member_id": "a.2"})
    s.entry(replaced("a.1", "a.2"), opened("a.2"))

    assert "without a cause" in whats(s.judged("I9"))


def test_a_static_restart_that_asks_for_something_else_is_a_cause() -> None:
    """K-B6: a swap whose topics differ starts a rebalance here."""
    s = settled()
    s.entry(replaced("a.1", "a.2", protocols(("t", "u"))), opened("a.2"))

    assert s.judged("I9").violations == []


def test_the_group_leader_may_ask_for_a_rebalance_by_joining_again() -> None:
    s = settled()
    s.call("JoinGroup", member_id="a.1", request_id="r1")
    s.entry(opened("a.1"), request_id="r1")

    assert s.judged("I9").violations == []


def test_a_join_of_the_group_leader_long_ago_is_no_cause() -> None:
    s = settled()
    s.call("JoinGroup", member_id="a.1")
    s.wait(50).entry(opened("a.1"))

    assert "without a cause" in whats(s.judged("I9"))


def test_a_leave_long_ago_is_no_cause() -> None:
    s = settled()
    s.call("LeaveGroup", members=[["c", ""]])
    s.wait(50).entry(opened())

    assert "without a cause" in whats(s.judged("I9"))


def test_a_leave_of_who_had_not_joined_yet_is_a_cause() -> None:
    """K-G13: the open join phase waits for one less."""
    s = settled()
    call = s.send("LeaveGroup", members=[["c", ""]])
    s.wait(1).entry(opened())
    s.hear(call)

    assert s.judged("I9").violations == []


def test_a_strangers_request_is_a_cause() -> None:
    """On a staging cluster there are callers that are not in the history."""
    s = settled()
    s.entry(opened(), request_id="r9")

    assert s.judged("I9").violations == []


def test_a_follower_that_joins_again_unchanged_is_no_cause() -> None:
    s = settled()
    s.call("JoinGroup", member_id="b", request_id="r1")
    s.entry(opened("b"), request_id="r1")

    assert "without a cause" in whats(s.judged("I9"))


def test_a_follower_that_claims_less_is_a_cause() -> None:
    """K-A14, KIP-429: others wait for what it let go of. Its entry says so before the beginning."""
    s = settled()
    s.call("JoinGroup", member_id="b", request_id="r1")
    s.entry(updated("b", owning([])), opened("b"), request_id="r1")

    assert s.judged("I9").violations == []


@pytest.mark.parametrize("member_id", ["a.1", "b"])
def test_a_follower_whose_update_changes_no_wish_is_no_cause(member_id: str) -> None:
    """Other timeouts are no reason to share out anew, nor is what another member changed."""
    s = settled()
    s.call("JoinGroup", member_id="b", request_id="r1")
    offers = None if member_id == "b" else owning([])
    s.entry(updated(member_id, offers), opened("b"), request_id="r1")

    assert "without a cause" in whats(s.judged("I9"))


def test_an_operators_wish_is_a_cause() -> None:
    s = settled()
    s.call("TriggerRebalance", request_id="r1")
    s.entry(opened(), request_id="r1")

    assert s.judged("I9").violations == []


def test_a_repetition_of_the_wish_is_none() -> None:
    """S14: a repeated request starts nothing."""
    s = settled()
    s.call("TriggerRebalance", request_id="r1")
    s.entry(opened(), request_id="r1")
    s.entry(started(2, "a.1", "b"))
    s.entry(assigned(2, {"a.1": [0], "b": [1]}))
    s.call("TriggerRebalance", request_id="r1")
    s.entry(opened(), request_id="r1")

    assert "though request r1 had been served before" in whats(s.judged("I9"))


def test_a_join_that_is_repeated_after_its_member_was_removed_makes_it_anew() -> None:
    """S14: what the request made is gone, so there is nothing to answer from."""
    s = settled()
    s.entry(opened(), joined("c"), request_id="r1")
    s.entry(started(2, "a.1", "b", "c"))
    s.entry(opened(), MembersRemoved(("c",), "scaled down"), request_id="op")
    s.entry(started(3, "a.1", "b"))
    s.entry(assigned(3, {"a.1": [0], "b": [1]}))
    s.entry(opened(), joined("c2"), request_id="r1")

    assert s.judged("I9").violations == []


@pytest.mark.parametrize("gone", [True, False])
def test_a_join_whose_member_was_swapped_out_and_its_successor_removed_makes_it_anew(
    gone: bool,  # noqa: FBT001 - a table of cases
) -> None:
    """S14: the process that slept meanwhile repeats its join. Nothing is left that it finds."""
    s = settled()
    s.entry(opened(), joined("c.1"), request_id="r1")
    s.entry(started(2, "a.1", "b", "c.1"))
    s.entry(assigned(2, {"a.1": [0], "b": [1]}))
    s.entry(replaced("c.1", "c.2"), request_id="r2")
    left = ["a.1", "b"]
    if gone:
        s.entry(opened(), MembersRemoved(("c.2",), "scaled down"), request_id="op")
    else:
        left.append("c.2")
        s.entry(opened(), joined("d"), request_id="r3")
    s.entry(started(3, *left))
    s.entry(assigned(3, {"a.1": [0], "b": [1]}))
    s.entry(opened(), joined("c.3"), request_id="r1")

    found = whats(s.judged("I9"))
    assert ("though request r1 had been served before" in found) != gone


# --- moves ---


def sticky(before: dict[str, list[int]], after: dict[str, list[int]]) -> Scribe:
    """Two assignments of a sticky assignor; everybody claims what it had."""
    s = Scribe()
    s.create()
    s.entry(opened(), *(joined(name, owning([])) for name in before))
    s.entry(started(1, *before, protocol="sticky"))
    s.entry(assigned(1, before))
    joins: list[Event] = [joined(name, owning([])) for name in after if name not in before]
    gone = tuple(name for name in before if name not in after)
    claims = [updated(name, owning(own)) for name, own in before.items()]
    s.entry(opened(), *claims, *joins, *([MembersLeft(gone, "")] if gone else []))
    s.entry(started(2, *after, protocol="sticky"))
    s.entry(assigned(2, after))
    return s


def test_a_claim_from_an_older_generation_holds_nothing() -> None:
    """KIP-429: of two members that claim a partition, the later generation has it."""
    s = Scribe()
    s.create()
    s.entry(opened(), joined("a", owning([])), joined("b", owning([])))
    s.entry(started(1, "a", "b", protocol="sticky"))
    s.entry(assigned(1, {"a": [0, 1], "b": []}))
    stale = updated("a", owning([0, 1], generation=1))
    later = updated("b", owning([0, 1], generation=2))
    s.entry(opened(), stale, later, joined("c", owning([])))
    s.entry(started(2, "a", "b", "c", protocol="sticky"))
    s.entry(assigned(2, {"a": [], "b": [0, 1], "c": []}))

    assert s.judged("I9").violations == []


def stale(second: dict[str, list[int]]) -> Scribe:
    """Of four, a had two in generation 1, b two in generation 2, and both say so; c is new."""
    s = Scribe()
    s.create()
    s.entry(opened(), *(joined(name, owning([])) for name in ("a", "b")))
    s.entry(started(1, "a", "b", protocol="sticky"))
    s.entry(assigned(1, {"a": [0, 1], "b": []}))
    s.entry(opened(), updated("b", owning([])))
    s.entry(started(2, "a", "b", protocol="sticky"))
    s.entry(assigned(2, {"a": [], "b": [2, 3]}))
    claims = [
        updated("a", owning([0, 1], generation=1)),
        updated("b", owning([2, 3], "sticky", 2)),
    ]
    s.entry(opened(), *claims, joined("c", owning([])))
    s.entry(started(3, "a", "b", "c", protocol="sticky"))
    s.entry(assigned(3, second))
    return s


@pytest.mark.parametrize(
    "third", [{"a": [0, 1], "b": [2], "c": [3]}, {"a": [0], "b": [2, 3], "c": [1]}]
)
def test_an_old_claim_that_nobody_contests_holds_as_a_new_one_does(
    third: dict[str, list[int]],
) -> None:
    """KIP-792: with two members that claim as much, either may have to give one away."""
    assert stale(third).judged("I9").violations == []


def test_more_moves_than_needed_are_found_among_old_claims_too() -> None:
    said = whats(stale({"a": [2], "b": [0, 3], "c": [1]}).judged("I9"))

    assert "3 partitions moved between members that stayed, 1 had to" in said


def test_a_claim_of_a_topic_that_is_gone_holds_nothing() -> None:
    """What is not there any more cannot be kept, nor is it a move that it is not given."""
    s = Scribe()
    s.entry(topic(4), group="")
    s.create()
    name = "cooperative-sticky"
    s.entry(opened(), joined("a", owning([], name)))
    s.entry(started(1, "a", protocol=name))
    s.entry(assigned(1, {"a": [0, 1, 2, 3]}))
    s.entry(TopicsDeleted(("t",)), group="")
    s.entry(opened(), updated("a", owning([0, 1, 2, 3], name)), joined("b", owning([], name)))
    s.entry(started(2, "a", "b", protocol=name))
    s.entry(assigned(2, {"a": [], "b": []}))

    assert s.judged("I9").violations == []


def cooperative(first: dict[str, list[int]]) -> Scribe:
    """Member a has four partitions; b has come, and the first of two rebalances gives this."""
    name = "cooperative-sticky"
    s = Scribe()
    s.create()
    s.entry(opened(), joined("a", owning([], name)))
    s.entry(started(1, "a", protocol=name))
    s.entry(assigned(1, {"a": [0, 1, 2, 3]}))
    s.entry(opened(), updated("a", owning([0, 1, 2, 3], name)), joined("b", owning([], name)))
    s.entry(started(2, "a", "b", protocol=name))
    s.entry(assigned(2, first))
    return s


def test_what_a_cooperative_assignor_takes_is_a_move_in_the_first_round_only() -> None:
    name = "cooperative-sticky"
    s = cooperative({"a": [0, 1], "b": []})
    s.entry(updated("a", owning([0, 1], name, 2)), opened("a"))
    s.entry(started(3, "a", "b", protocol=name))
    s.entry(assigned(3, {"a": [0, 1], "b": [2, 3]}))

    assert s.judged("I9").violations == []


def test_a_cooperative_assignor_that_takes_more_than_balance_needs_is_found() -> None:
    said = whats(cooperative({"a": [0], "b": []}).judged("I9"))

    assert "3 partitions moved between members that stayed, 2 had to" in said


def test_a_cooperative_first_round_that_takes_everything_is_found() -> None:
    """The topics are those that members want, not those of which something was given."""
    said = whats(cooperative({"a": [], "b": []}).judged("I9"))

    assert "4 partitions moved between members that stayed, 2 had to" in said


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"a": [0, 1], "b": [2, 3]}, {"a": [0, 1], "b": [2, 3]}),
        ({"a": [0, 1], "b": [2, 3]}, {"a": [0, 1, 2, 3]}),
        ({"a": [0, 1, 2], "b": [3, 4, 5]}, {"a": [0, 1], "b": [3, 4], "c": [2, 5]}),
        ({"a": [0, 1, 2, 3]}, {"a": [0, 1], "b": [2, 3]}),
        ({"a": [0, 1], "b": [2]}, {"a": [0, 1], "c": [2]}),
    ],
)
def test_as_few_moves_as_balance_needs_pass(
    before: dict[str, list[int]], after: dict[str, list[int]]
) -> None:
    verdict = sticky(before, after).judged("I9")

    assert verdict.violations == []
    assert verdict.checked["moves judged"] > 0


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            {"a": [0, 1], "b": [2, 3]},
            {"a": [0, 2], "b": [1, 3]},
            "2 partitions moved between members that stayed, 0 had to",
        ),
        (
            {"a": [0, 1, 2], "b": [3, 4, 5]},
            {"a": [0, 3], "b": [4, 1], "c": [2, 5]},
            "4 partitions moved between members that stayed, 2 had to",
        ),
    ],
)
def test_more_moves_than_balance_needs_are_found(
    before: dict[str, list[int]], after: dict[str, list[int]], said: str
) -> None:
    assert said in whats(sticky(before, after).judged("I9"))


def test_what_nobody_claims_any_more_may_go_anywhere() -> None:
    """A process that has just started claims nothing, and the assignor cannot know better."""
    s = Scribe()
    s.create()
    s.entry(opened(), joined("a.1", owning([])), joined("b", owning([])))
    s.entry(started(1, "a.1", "b", protocol="sticky"))
    s.entry(assigned(1, {"a.1": [0], "b": [1]}))
    s.entry(replaced("a.1", "a.2", owning([])))
    s.entry(opened(), joined("c", owning([])))
    s.entry(started(2, "a.2", "b", "c", protocol="sticky"))
    s.entry(assigned(2, {"a.2": [], "b": [1], "c": [0]}))

    assert s.judged("I9").violations == []


def test_the_least_number_of_moves() -> None:
    """Who has most may keep one more than the rest, where the numbers do not come out even."""
    owners = {("t", number): "a" for number in range(5)}
    share = Share({("t", number): "x" for number in range(7)}, frozenset({"a", "b", "c"}))

    assert needed(owners, share) == 2
    assert needed({}, share) == 0


def test_nothing_is_no_proof() -> None:
    assert Scribe().judged("I9").empty
