"""INV-3: epochs of the heartbeat protocol, and tokens that are handed on."""

from __future__ import annotations

from holdfast.coordinator.model.consumer_events import ConvertedMember, GroupConverted
from holdfast.coordinator.model.events import InstanceReleased
from unit.chaos.scribe import Scribe, advanced, of_t, raised, returned, settled, target, whats


def test_inv_3_an_epoch_that_is_left_out_is_found() -> None:
    s, _ = settled()
    s.entry(raised(4, "asked"))

    assert "epoch 4 follows 2" in whats(s.judged("I3"))


def test_inv_3_a_target_of_an_older_epoch_is_found() -> None:
    s, _ = settled()
    s.entry(raised(3, "asked"))
    s.entry(target(2, {"a": [0]}))

    assert "a target of epoch 2 follows one of 2" in whats(s.judged("I3"))


def test_inv_3_a_member_beyond_the_target_is_found() -> None:
    s, _ = settled()
    s.entry(raised(3, "asked"), advanced("a", 3))

    assert "a goes from epoch 2 to 3, and the target is of 2" in whats(s.judged("I3"))


def test_inv_3_an_older_epoch_that_is_told_after_a_newer_one_is_found() -> None:
    s, _ = settled()
    s.beat("w1", "a", 1, told=2)
    s.beat("w1", "a", 2, told=1)

    assert "was told epoch 1, after 2" in whats(s.judged("I3"))


def test_inv_3_a_join_is_told_an_epoch_of_its_own() -> None:
    s, _ = settled()
    s.beat("w1", "a", 3, told=9)
    s.beat("w1", "a", 0, told=2)

    assert s.judged("I3").violations == []


def test_inv_3_a_conversion_goes_on_at_the_generation() -> None:
    s = Scribe()
    s.create()
    s.stable({"a": [0]}, generation=5)
    owns = (ConvertedMember("a", ("t",), of_t([0])),)
    s.entry(GroupConverted("consumer", 5, owns))
    s.entry(raised(6, "asked"))

    assert s.judged("I3").violations == []


def test_inv_3_a_conversion_that_begins_anew_is_found() -> None:
    s = Scribe()
    s.create()
    s.stable({"a": [0]}, generation=5)
    s.entry(GroupConverted("consumer", 1, (ConvertedMember("a", ("t",), of_t([0])),)))

    assert "generation 1 begins after 5" in whats(s.judged("I3"))


def test_inv_3_an_empty_group_begins_anew_in_the_other_protocol() -> None:
    """K-Q1."""
    s = Scribe()
    s.create()
    s.stable({"a": [0]}, generation=5)
    s.entry(GroupConverted("consumer", 1, ()))
    s.entry(raised(2))

    assert s.judged("I3").violations == []


def test_inv_3_a_token_is_handed_on_by_a_process_that_has_said_that_it_stops() -> None:
    """ADR 49: -2, and the next process of the instance has the same token."""
    s, token = settled()
    s.grant("w1", "b.1", [2, 3], token)
    s.surrender("w1", "b.1")
    s.entry(InstanceReleased("b", "b.1"))
    s.entry(returned("b.1", "b.2"), advanced("b.2", 2))
    s.grant("w2", "b.2", [2, 3], token)

    assert s.judged("I3").violations == []


def test_inv_3_a_token_that_outlives_a_swap_without_that_word_is_found() -> None:
    """S12, S13: the old process may still run."""
    s, token = settled()
    s.grant("w1", "b.1", [2, 3], token)
    s.surrender("w1", "b.1", "lost")
    s.entry(returned("b.1", "b.2"), advanced("b.2", 2))
    s.grant("w2", "b.2", [2, 3], token)

    assert "was b.1's and is given to b.2" in whats(s.judged("I3"))
