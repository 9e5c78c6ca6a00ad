"""What a member has to do next, as those are told who push hints (KIP-848)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.coordinator.groups.group_type import Move
from holdfast.coordinator.kernel.group_types import type_of
from holdfast.coordinator.model.ids import TopicPartition
from unit.coordinator.consumer.talk import Talk, parts

if TYPE_CHECKING:
    from unit.coordinator.consumer.talk import Talk as Group

NOTHING: frozenset[TopicPartition] = frozenset()


def move(talk: Group, member_id: str) -> Move | None:
    """Asked as the pushes ask: of the group's type."""
    return type_of(talk.group).move(talk.group, member_id)


def blocked(*places: str) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(place[0], int(place[1:])) for place in places)


def test_who_owns_its_target_has_nothing_to_do() -> None:
    """Also who does not know the newest epoch: nobody waits for it."""
    talk = Talk(t=2)
    talk.told(talk.joins("a", "t"))
    assert move(talk, "a") is None
    talk.told(talk.joins("b", "u"))  # another epoch, and nothing of it is a's
    assert talk.member("a").epoch < talk.group.generation
    assert move(talk, "a") is None


def test_a_partition_goes_from_one_to_the_other_step_by_step() -> None:
    """K-O3, K-O8: it is given up, then it is free, then it is taken."""
    talk = Talk(t=2)
    talk.told(talk.joins("a", "t"))
    talk.told(talk.joins("b", "t"))
    assert move(talk, "a") == Move(gives=True, lets_go=False, blocked=NOTHING)
    assert move(talk, "b") == Move(gives=False, lets_go=False, blocked=blocked("t1"))
    talk.told(talk.says("a", 2))
    assert move(talk, "a") == Move(gives=False, lets_go=True, blocked=NOTHING)
    assert move(talk, "b") == Move(gives=False, lets_go=False, blocked=blocked("t1"))
    talk.told(talk.says("a", 2, owned=parts("t0")))
    assert move(talk, "a") is None
    assert move(talk, "b") == Move(gives=False, lets_go=False, blocked=NOTHING)
    talk.told(talk.says("b", 3))
    assert move(talk, "b") is None


def test_what_is_given_back_to_who_lets_go_of_it_is_not_blocked_by_itself() -> None:
    """K-O7: it needs nobody else."""
    talk = Talk(t=2)
    talk.told(talk.joins("a", "t"))
    talk.told(talk.joins("b", "t"))
    talk.told(talk.says("a", 2))
    talk.told(talk.says("b", -1))
    talk.told(talk.joins("c", "u"))  # a target without b
    assert move(talk, "a") == Move(gives=False, lets_go=True, blocked=NOTHING)


def test_a_process_that_has_stopped_and_a_stranger_have_nothing_to_do() -> None:
    """K-N2: nobody would hear."""
    talk = Talk(t=2)
    talk.told(talk.joins("a", "t", instance_id="i"))
    talk.told(talk.joins("b", "t"))
    talk.told(talk.says("a", -2, instance_id="i"))

    assert move(talk, "a") is None
    assert move(talk, "nobody") is None


def test_a_group_awaits_a_target_from_a_departure_to_the_next_heartbeat() -> None:
    """K-M21: nothing is computed by a departure; without members nobody waits."""
    talk = Talk(t=2)
    talk.told(talk.joins("a", "t"))
    talk.told(talk.joins("b", "t"))
    assert target_due_ms(talk) is None
    talk.told(talk.says("b", -1))
    assert target_due_ms(talk) == talk.core.state.log_time_ms
    talk.told(talk.says("a", 2))
    assert target_due_ms(talk) is None
    talk.told(talk.says("a", -1))
    assert target_due_ms(talk) is None


def target_due_ms(talk: Talk) -> int | None:
    return type_of(talk.group).target_due_ms(talk.core.state, talk.group)


def test_p15_a_target_is_due_an_interval_after_the_last_one() -> None:
    """K-P15: heartbeats before that bring none."""
    talk = Talk(t=2)
    talk.set(consumer_assignment_interval_ms="10000")
    talk.told(talk.joins("a", "t"))
    computed_ms = talk.core.state.log_time_ms
    talk.told(talk.joins("b", "t"))

    assert target_due_ms(talk) == computed_ms + 10_000
