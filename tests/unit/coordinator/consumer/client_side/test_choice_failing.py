"""A chosen member that says that it makes no target: another is asked at once (KIP-848, ADR 57)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.coordinator.consumer.client_side.choice import PROBLEM_MAX
from holdfast.coordinator.model.consumer_events import AssignmentRequested
from holdfast.coordinator.model.rejections import (
    InvalidRequest,
    NotChosen,
    StaleAssignment,
    StaleMemberEpoch,
    UnknownMemberId,
)
from unit.coordinator.cluster.test_requests import uuid7
from unit.coordinator.consumer.client_side.computing_members import Computing, assignor

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def talk() -> Iterator[Computing]:
    """Three members, of which `a` is the chosen one, at group epoch 4; whatever happens replays."""
    made = Computing(t=3)
    for name in "abc":
        made.send(made.comes(name))
    assert (made.chosen, made.group.generation) == ("a", 4)
    yield made
    made.core.check_replays()


def requested(talk: Computing) -> list[AssignmentRequested]:
    every = (record.event for applied in talk.core.log for record in applied.records)
    return [event for event in every if isinstance(event, AssignmentRequested)]


def test_another_is_asked_at_once_and_the_log_says_why(talk: Computing) -> None:
    """No time passes; with a bad release in n - 1 of n processes the group waits for none."""
    assert talk.fails("a", "KeyError('zone')", at=4) is None
    assert requested(talk)[-1] == AssignmentRequested("b", 4, "own", "a", "KeyError('zone')")
    assert talk.fails("b", at=4) is None

    assert [talk.beats(name) for name in "abc"] == [False, False, True]
    assert talk.installs("c", a="t0", b="t1", c="t2") is None


def test_the_next_one_has_its_whole_time(talk: Computing) -> None:
    """The time of the one before it would relieve it too early."""
    talk.core.advance(40_000)
    for name in "abc":
        talk.beats(name)
    talk.fails("a", at=4)
    for name in "abc":
        talk.beats(name)
    talk.core.advance(40_000)
    assert talk.chosen == "b"
    for name in "abc":
        talk.beats(name)
    talk.core.advance(20_000)

    assert talk.chosen == "c"


def test_when_all_have_failed_it_is_as_when_all_were_late(talk: Computing) -> None:
    """ADR 53, 5: the one for which that is longest ago is asked again, and never the service."""
    for name in "abc":
        assert talk.fails(name, at=4) is None

    assert (talk.chosen, list(talk.group.body.late)) == ("a", ["a", "b", "c"])
    assert talk.group.body.assignment_epoch == 1
    assert talk.installs("a", a="t0 t1 t2") is None


def test_one_that_is_alone_is_asked_again() -> None:
    """ADR 53, 5."""
    talk = Computing(t=3)
    talk.send(talk.comes("a"))

    assert talk.fails("a", at=2) is None
    assert talk.beats("a")


def test_who_is_not_the_chosen_one_relieves_nobody(talk: Computing) -> None:
    """The checks of a target, in their order: member, epoch, choice, group epoch."""
    before = talk.group
    assert talk.fails("x", epoch=1) == UnknownMemberId("x")
    assert talk.fails("a", epoch=9) == StaleMemberEpoch(9, 1)
    assert talk.fails("b", at=4) == NotChosen("b", "a")
    assert talk.fails("a", at=3) == StaleAssignment(3, 4)
    assert isinstance(talk.fails("a", at=5), InvalidRequest)

    assert talk.group == before


def test_who_got_no_picture_of_the_group_knows_no_epoch_of_it(talk: Computing) -> None:
    """It may not read a topic of the group, or the picture is too large."""
    assert talk.fails("a", "may not read") is None
    assert talk.chosen == "b"


def test_after_a_target_there_is_nothing_to_fail_at(talk: Computing) -> None:
    """A late word of failure must not undo what was handed in."""
    talk.installs("a", a="t0 t1 t2")

    assert talk.fails("a", at=4) == NotChosen("a", "")


def test_s15_the_same_word_again_relieves_nobody_else(talk: Computing) -> None:
    """S15: the answer was lost, and meanwhile the one that failed is asked again."""
    request_id = uuid7(1, 7)
    caller = talk.caller()._replace(request_id=request_id)
    assert talk.fails("a", at=4, caller=caller) is None
    talk.fails("b", at=4)
    talk.fails("c", at=4)
    assert talk.chosen == "a"

    again = talk.caller()._replace(request_id=request_id)
    assert talk.fails("a", at=4, caller=again) is None
    assert talk.chosen == "a"


def test_s7_only_so_much_of_the_reason_goes_on_the_log(talk: Computing) -> None:
    """A traceback may be as long as it likes."""
    talk.fails("a", "x" * (PROBLEM_MAX + 1), at=4)

    assert requested(talk)[-1].problem == "x" * PROBLEM_MAX


def test_who_has_failed_is_asked_last_until_it_has_installed_one(talk: Computing) -> None:
    """As who was late; speaking does not help it."""
    talk.fails("a", at=4)
    talk.installs("b", a="t0", b="t1", c="t2")
    for name in "bc":
        talk.beats(name)
    talk.beats("a", client_assignors=(assignor(reason=1),))
    assert (talk.chosen, list(talk.group.body.late)) == ("b", ["a"])


def test_a_good_one_that_joins_one_that_fails_is_asked_at_once() -> None:
    """INV-16: alone it is chosen all the time, and pauses for up to a minute after each failure."""
    talk = Computing(t=3)
    talk.send(talk.comes("a"))
    talk.fails("a", at=2)
    assert talk.chosen == "a"

    assert talk.told(talk.comes("b")).should_compute


def test_one_that_was_relieved_by_another_keeps_its_time_while_all_have_failed(
    talk: Computing,
) -> None:
    """When all are late, the chosen one stays so over a change: its time runs on (ADR 53, 4)."""
    for name in "abc":
        talk.fails(name, at=4)
    talk.core.advance(40_000)
    for name in "abc":
        talk.beats(name)
    talk.beats("c", client_assignors=(assignor(reason=1),))
    assert talk.chosen == "a"
    talk.core.advance(20_000)

    assert talk.chosen == "b"
