"""INV-8: a partition that two have, that nobody has, or that its living owner ignores, is found."""

import pytest

from holdfast.chaos.history.happenings import Phase
from holdfast.coordinator.model.consumer_events import (
    ConvertedMember,
    GroupConverted,
    MemberAdvanced,
)
from holdfast.coordinator.model.events import MembersLeft, PartitionsAdded, TopicsDeleted, TopicSize
from holdfast.coordinator.model.ids import TopicPartitions
from unit.chaos.scribe import (
    SESSION_MS,
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

COOPERATIVE = "cooperative-sticky"
OWNED: dict[str, list[int]] = {"a.1": [0, 1, 2], "b": []}


def converted(member_id: str, *numbers: int) -> ConvertedMember:
    return ConvertedMember(member_id, ("t",), (TopicPartitions("t", numbers),) if numbers else ())


def begun(size: int = 3, protocol: str = "range") -> Scribe:
    """Topic t; a.1 and b begin generation 1."""
    s = Scribe()
    s.entry(topic(size), group="")
    s.create()
    s.entry(opened(), *(joined(name, protocols(name=protocol)) for name in ("a.1", "b")))
    s.entry(started(1, "a.1", "b", protocol=protocol))
    return s


def shared(s: Scribe, shares: dict[str, list[int]]) -> str:
    s.entry(assigned(1, shares))
    return whats(s.judged("I8"))


def test_each_partition_once_passes() -> None:
    s = begun()

    assert shared(s, {"a.1": [0, 2], "b": [1]}) == ""
    assert s.judged("I8").checked == {
        "assignments": 1,
        "partitions": 3,
        "unowned with a reason": 0,
    }


def test_a_partition_that_two_have_is_found() -> None:
    assert shared(begun(), {"a.1": [0, 1], "b": [1, 2]}).endswith("t/1 is given 2 times")


def test_a_partition_that_nobody_has_is_found() -> None:
    assert shared(begun(), {"a.1": [0], "b": [1]}).endswith("t/2 is given to nobody")


def test_a_partition_that_there_never_was_is_found() -> None:
    assert "there never was such a partition" in shared(begun(), {"a.1": [0, 2], "b": [1, 3]})


def test_what_a_stranger_is_given_is_found() -> None:
    said = shared(begun(), {"a.1": [0], "b": [1], "c": [2]})

    assert said.endswith("c is given partitions, but is no member")


def test_what_was_not_asked_for_is_found() -> None:
    s = Scribe()
    s.entry(topic(1), topic(1, "u"), group="")
    s.create()
    s.entry(opened(), joined("a", protocols(("t",))), joined("b", protocols(("u",))))
    s.entry(started(1, "a", "b"))

    said = shared(s, {"a": [], "b": [0]})
    assert "b is given ['t'], which it did not ask for" in said
    assert "u/0 is given to nobody" in said


def test_a_topic_that_grew_while_the_group_leader_assigned_is_a_reason() -> None:
    s = begun()
    s.entry(PartitionsAdded((TopicSize("t", 4),)), group="")

    assert shared(s, {"a.1": [0, 2], "b": [1]}) == ""
    assert s.judged("I8").checked["unowned with a reason"] == 1


def test_a_topic_that_went_meanwhile_may_be_given_or_not() -> None:
    s = begun()
    s.entry(TopicsDeleted(("t",)), group="")

    assert shared(s, {"a.1": [0], "b": []}) == ""


def test_a_topic_that_is_not_there_is_a_reason() -> None:
    s = Scribe()
    s.create()
    s.entry(opened(), joined("a"))
    s.entry(started(1, "a"))

    assert shared(s, {"a": []}) == ""


def test_a_cooperative_assignor_takes_before_it_gives() -> None:
    """ADR 10: while a.1 claims t/2, nobody else gets it."""
    s = begun(protocol=COOPERATIVE)
    assert shared(s, {"a.1": [0, 1, 2], "b": []}) == ""
    s.entry(opened(), updated("a.1", owning([0, 1, 2], COOPERATIVE)))
    s.entry(started(2, "a.1", "b", protocol=COOPERATIVE))
    s.entry(assigned(2, {"a.1": [0, 1], "b": []}))

    assert s.judged("I8").violations == []
    assert s.judged("I8").checked["unowned with a reason"] == 1


def test_a_cooperative_assignor_gives_what_nobody_claims_any_more() -> None:
    """ADR 10: in the second rebalance a.1 owns less, and so t/2 must have an owner again."""
    s = begun(protocol=COOPERATIVE)
    assert shared(s, {"a.1": [0, 1, 2], "b": []}) == ""
    s.entry(opened(), updated("a.1", owning([0, 1], COOPERATIVE)))
    s.entry(started(2, "a.1", "b", protocol=COOPERATIVE))
    s.entry(assigned(2, {"a.1": [0, 1], "b": []}))

    assert "generation 2: t/2 is given to nobody" in whats(s.judged("I8"))


def test_a_claim_of_what_its_generation_did_not_give_is_no_reason() -> None:
    """ADR 10: else who claims for ever what it never gets keeps it from everybody, unseen."""
    s = begun(protocol=COOPERATIVE)
    s.entry(assigned(1, {"a.1": [0, 1], "b": [2]}))
    for generation in range(2, 22):
        s.entry(opened(), updated("a.1", owning([0, 1, 2], COOPERATIVE, generation - 1)))
        s.entry(started(generation, "a.1", "b", protocol=COOPERATIVE))
        s.entry(assigned(generation, {"a.1": [0, 1], "b": []}))

    said = whats(s.judged("I8"))
    assert "generation 2: t/2 is given to nobody" in said
    assert "generation 21: t/2 is given to nobody" in said


def test_a_claim_of_what_a_conversion_told_is_a_reason() -> None:
    """K-Q12: it says who owns what, whatever the last assignment before it had given."""
    s = begun(protocol=COOPERATIVE)
    assert shared(s, {"a.1": [0, 1], "b": [2]}) == ""
    s.entry(GroupConverted("consumer", 1, (converted("a.1", 0, 1), converted("b", 2))))
    told = (converted("a.1", 0, 1, 2), converted("b"))
    s.entry(GroupConverted("classic", 7, told, COOPERATIVE, "a.1"), opened())
    s.entry(*(updated(name, owning(has, COOPERATIVE, 7)) for name, has in OWNED.items()))
    s.entry(started(8, "a.1", "b", protocol=COOPERATIVE))
    s.entry(assigned(8, {"a.1": [0, 1], "b": []}))

    assert whats(s.judged("I8")) == ""


@pytest.mark.parametrize(("advances", "said"), [(True, False), (False, True)])
def test_a_claim_of_what_an_epoch_granted_is_a_reason(*, advances: bool, said: bool) -> None:
    """K-Q12: a classic member of a heartbeat group claims by the epoch that it had there."""
    s = begun(protocol=COOPERATIVE)
    assert shared(s, {"a.1": [0, 1], "b": [2]}) == ""
    s.entry(GroupConverted("consumer", 1, (converted("a.1", 0, 1), converted("b", 2))))
    if advances:
        last = (TopicPartitions("t", (2,)),)
        s.entry(MemberAdvanced("b", 5, (), last, (), waiting=False))
        s.entry(MemberAdvanced("a.1", 5, (), (), last, waiting=False))
    told = (converted("a.1", 0, 1, 2), converted("b"))
    s.entry(GroupConverted("classic", 7, told, COOPERATIVE, "a.1"), opened())
    s.entry(*(updated(name, owning(has, COOPERATIVE, 5)) for name, has in OWNED.items()))
    s.entry(started(8, "a.1", "b", protocol=COOPERATIVE))
    s.entry(assigned(8, {"a.1": [0, 1], "b": []}))

    assert ("t/2 is given to nobody" in whats(s.judged("I8"))) is said


def test_an_old_claim_of_what_was_given_then_is_a_reason() -> None:
    """ADR 10: a member that missed a generation has not heard yet that it must let go."""
    s = begun(protocol=COOPERATIVE)
    s.entry(assigned(1, {"a.1": [0, 1, 2], "b": []}))
    for generation in (2, 3):
        s.entry(opened(), updated("a.1", owning([0, 1, 2], COOPERATIVE, 1)))
        s.entry(started(generation, "a.1", "b", protocol=COOPERATIVE))
        s.entry(assigned(generation, {"a.1": [0, 1], "b": []}))

    assert s.judged("I8").violations == []


def test_a_claim_of_what_was_given_to_it_under_another_member_id_is_a_reason() -> None:
    """KIP-792: a member that was taken out and comes back claims what it had, as who it was."""
    s = begun(protocol=COOPERATIVE)
    s.entry(assigned(1, {"a.1": [0, 1], "b": [2]}))
    s.entry(opened(), MembersLeft(("b",), ""), joined("c", owning([2], COOPERATIVE, 1)))
    s.entry(started(2, "a.1", "c", protocol=COOPERATIVE))
    s.entry(assigned(2, {"a.1": [0, 1], "c": []}))

    assert s.judged("I8").violations == []


def test_no_other_assignor_may_do_so() -> None:
    s = begun()
    assert shared(s, {"a.1": [0, 1, 2], "b": []}) == ""
    s.entry(opened())
    s.entry(started(2, "a.1", "b"))
    s.entry(assigned(2, {"a.1": [0, 1], "b": []}))

    assert "generation 2: t/2 is given to nobody" in whats(s.judged("I8"))


def test_opaque_protocols_are_not_judged() -> None:
    """Nobody but the assignor knows what there is to own."""
    s = Scribe()
    s.create()
    s.entry(opened(), joined("a", protocols(None)))
    s.entry(started(1, "a"))

    assert shared(s, {"a": [0, 0]}) == ""
    assert s.judged("I8").empty


def test_a_swap_during_the_round_keeps_what_was_asked_for() -> None:
    s = begun()
    s.entry(replaced("a.1", "a.2", owning([])))

    assert shared(s, {"a.2": [0, 2], "b": [1]}) == ""


# --- the end ---


def ending(silent_ms: float = 0) -> Scribe:
    """Everything is shared out; b acts, a.1 sends heartbeats only, then is silent for so long."""
    s = begun()
    s.entry(assigned(1, {"a.1": [0, 2], "b": [1]}))
    s.grant("w2", "b", [1], token=5)
    s.wait(SESSION_MS).call("Heartbeat", "w1", member_id="a.1", generation=1)
    s.wait(silent_ms)
    return s


def end(s: Scribe) -> Scribe:
    s.say(Phase(s.now_us, "end"))
    return s


def test_a_living_member_that_does_not_act_is_found() -> None:
    said = whats(end(ending()).judged("I8"))

    assert "t/0 of 'g' and 1 more belong to a.1, which is alive at the end" in said


def test_a_living_member_that_acts_passes() -> None:
    s = ending()
    s.grant("w1", "a.1", [0, 2], token=5)

    assert end(s).judged("I8").violations == []


def test_a_silent_member_is_a_reason() -> None:
    verdict = end(ending(silent_ms=SESSION_MS)).judged("I8")

    assert verdict.violations == []
    assert verdict.checked["unowned with a reason"] == 2


def test_a_member_that_has_just_gone_is_a_reason() -> None:
    s = ending()
    s.grant("w1", "a.1", [0, 2], token=5)
    s.wait(1).surrender("w1", "a.1", "crashed")

    assert end(s).judged("I8").violations == []


@pytest.mark.parametrize("state", ["open", "closed"])
def test_a_rebalance_at_the_end_is_a_reason(state: str) -> None:
    s = ending()
    s.entry(opened())
    if state == "closed":
        s.entry(started(2, "a.1", "b"))

    assert end(s).judged("I8").violations == []


def test_without_an_end_nothing_is_known_to_be_over() -> None:
    assert ending().judged("I8").violations == []
