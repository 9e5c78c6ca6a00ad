"""Epochs tell how often their target was asked for in vain, and why the last time (ADR 57)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.coordinator.projections import history
from holdfast.coordinator.projections.history import REASON_BYTES_MAX, Rebalance
from unit.coordinator.consumer.client_side.computing_members import Computing
from unit.coordinator.consumer.talk import GROUP

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def talk() -> Iterator[Computing]:
    """Two members, of which `a` is the chosen one, at epoch 3; whatever happens replays."""
    made = Computing(t=2)
    made.send(made.comes("a", instance_id="i-a"))
    made.send(made.comes("b"))
    yield made
    made.core.check_replays()


def last(talk: Computing) -> Rebalance:
    return history.epochs(talk.core.histories, GROUP, 1)[0]


def test_a_choice_alone_is_nothing_to_tell(talk: Computing) -> None:
    assert (last(talk).generation, last(talk).relieved, last(talk).problem) == (3, 0, "")


def test_each_that_makes_none_is_counted_and_the_last_one_is_told(talk: Computing) -> None:
    """By its instance id, as people know it."""
    talk.fails("b", "not asked", at=3)
    talk.fails("a", "KeyError", at=3)
    assert (last(talk).relieved, last(talk).problem) == (1, "i-a: KeyError")
    talk.fails("b", "no zone", at=3)
    assert (last(talk).relieved, last(talk).problem) == (2, "b: no zone")


def test_one_that_was_late_says_nothing(talk: Computing) -> None:
    for _ in range(3):
        talk.core.advance(20_000)
        talk.told(talk.says("a", 1, instance_id="i-a"))
        talk.beats("b")

    assert (last(talk).relieved, last(talk).problem) == (1, "")


def test_the_next_epoch_begins_anew(talk: Computing) -> None:
    talk.fails("a", "KeyError", at=3)
    talk.send(talk.comes("c"))

    assert (last(talk).generation, last(talk).relieved, last(talk).problem) == (4, 0, "")


def test_s7_what_is_said_is_bounded(talk: Computing) -> None:
    talk.fails("a", "x" * 5_000, at=3)

    assert len(last(talk).problem) <= REASON_BYTES_MAX
