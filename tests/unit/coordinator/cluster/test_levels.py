"""S3: the level in force is raised once, by an operator, and never to one that is unknown here."""

from __future__ import annotations

import pytest

from holdfast.coordinator.kernel.decide import decide
from holdfast.coordinator.model.commands import Caller, FormCluster, RaiseLevel
from holdfast.coordinator.model.effects import Answer
from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.events import LevelRaised, RequestRecorded
from holdfast.coordinator.model.levels import LEVEL_MAX
from holdfast.coordinator.model.rejections import InvalidRequest
from holdfast.coordinator.model.replies import DoneReply
from holdfast.coordinator.model.state import State
from holdfast.coordinator.model.volatile import Volatile

REQUEST = "00000000-0001-7000-8000-000000000001"


def test_a_raise_is_an_event_and_its_repetition_is_none() -> None:
    """S15: repeated by the same request, or by another one that comes later."""
    first = decide(State(), Volatile(), RaiseLevel(Caller(1, request_id=REQUEST), 2))
    assert [type(each.event) for each in first.events] == [LevelRaised, RequestRecorded]
    assert first.state.level == 2
    assert first.effects == (Answer(1, DoneReply(None)),)

    for caller in (Caller(2, request_id=REQUEST), Caller(3)):
        again = decide(first.state, Volatile(), RaiseLevel(caller, 2))
        assert again.events == ()
        assert again.effects == (Answer(caller.call, DoneReply(None)),)


def test_s15_a_raise_that_was_done_is_told_again_and_another_request_is_refused() -> None:
    """Whether a node has gone since counts for what is not done yet, and for that alone."""
    first = decide(State(), Volatile(), RaiseLevel(Caller(1, request_id=REQUEST), 2))
    gone = "node 'n2' is away"
    again = decide(first.state, Volatile(), RaiseLevel(Caller(2, request_id=REQUEST), 2, gone))
    other = decide(first.state, Volatile(), RaiseLevel(Caller(3), 2, gone))
    assert again.effects == (Answer(2, DoneReply(None)),)
    assert other.effects == (Answer(3, DoneReply(InvalidRequest("level", gone))),)
    assert (again.events, other.events) == ((), ())


def test_a_level_that_is_unknown_here_is_not_raised() -> None:
    """This node could not go on."""
    with pytest.raises(InvariantBroken, match="is unknown here"):
        decide(State(), Volatile(), RaiseLevel(Caller(1), LEVEL_MAX + 1))


def test_a_cluster_may_begin_above_the_first_level() -> None:
    formed = decide(State(), Volatile(), FormCluster("c", (), level=2))
    assert formed.state.level == 2
