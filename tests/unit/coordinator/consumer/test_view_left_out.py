"""Partitions that a member's assignor gives to nobody are told: they are nobody's (ADR 53, 7)."""

from __future__ import annotations

import pytest

from holdfast.coordinator.kernel import queries
from holdfast.coordinator.model.commands import CreatePartitions
from holdfast.coordinator.model.events import TopicSize
from holdfast.coordinator.model.ids import TopicPartitions
from unit.coordinator.consumer.client_side.computing_members import Computing, assignor
from unit.coordinator.consumer.talk import GROUP


@pytest.fixture
def talk() -> Computing:
    """Two members, of which `a` is the chosen one."""
    made = Computing(t=4, u=2)
    made.send(made.comes("a", topics=("t", "u")))
    made.send(made.comes("b"))
    return made


def left_out(talk: Computing) -> tuple[TopicPartitions, ...]:
    return queries.describe_consumer_group(talk.core.state, GROUP).left_out


def test_what_the_target_gives_to_nobody_is_named(talk: Computing) -> None:
    """Whole topics, and single partitions."""
    talk.installs("a", a="t0", b="t2 t3")

    assert left_out(talk) == (TopicPartitions("t", (1,)), TopicPartitions("u", (0, 1)))


def test_a_target_that_gives_everything_leaves_nothing_out(talk: Computing) -> None:
    talk.installs("a", a="t0 t1 u0 u1", b="t2 t3")

    assert left_out(talk) == ()


def test_before_there_is_a_target_nothing_is_left_out(talk: Computing) -> None:
    """Who is to own what is not known yet: the group is Assigning."""
    assert left_out(talk) == ()
    talk.installs("a", a="t0")
    talk.beats("a", client_assignors=(assignor(reason=1),))

    assert left_out(talk) == ()


def test_a_target_of_the_service_leaves_nothing_out(talk: Computing) -> None:
    talk.installs("a", a="t0")
    talk.beats("a", client_assignors=())

    assert left_out(talk) == ()


def test_what_a_topic_has_grown_by_was_left_out_by_nobody_once_it_is_seen(
    talk: Computing,
) -> None:
    """K-M27: the next heartbeat raises the epoch for it."""
    talk.installs("a", a="t0 t1 u0 u1", b="t2 t3")
    talk.send(CreatePartitions(talk.caller(), (TopicSize("t", 5),)))
    talk.beats("a")

    assert left_out(talk) == ()
