"""INV-16 and S6: each invariant of a group of the heartbeat protocol is seen when it is broken."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.coordinator.consumer.state import RELEASED, Holding
from holdfast.coordinator.kernel.invariants import check_group, check_touched
from holdfast.coordinator.model.consumer_events import MemberTarget
from holdfast.coordinator.model.ids import TopicPartition
from holdfast.coordinator.structures.pmap import PMap
from unit.coordinator.consumer.talk import Talk, parts

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.coordinator.consumer.state import ConsumerBody, ConsumerGroup, Member

    Break = Callable[[ConsumerGroup], ConsumerGroup]


def of_body(change: Callable[[ConsumerBody], ConsumerBody]) -> Break:
    return lambda group: group._replace(body=change(group.body))


def of_a(change: Callable[[Member], Member]) -> Break:
    return of_body(
        lambda body: body._replace(members=body.members.set("a", change(body.members["a"])))
    )


def holds(*partitions: int) -> tuple[Holding, ...]:
    return (Holding("t", partitions, (2,) * len(partitions), (3,) * len(partitions)),)


def _meant_twice(body: ConsumerBody) -> ConsumerBody:
    return body._replace(targets=body.targets.set("b", MemberTarget("b", parts("t0"))))


ANY = [
    ("transitions", lambda group: group._replace(state="Assigning")),
    ("M5", of_body(lambda body: body._replace(assignment_epoch=9))),
    ("M10", of_a(lambda member: member._replace(epoch=9))),
    ("N2", of_a(lambda member: member._replace(epoch=RELEASED))),
    ("N23", of_a(lambda member: member._replace(epoch=RELEASED, waiting=True))),
    ("O16", of_a(lambda member: member._replace(owned=(Holding("t", (0,), (), ()),)))),
    ("O16", of_a(lambda member: member._replace(owned=holds(1, 0)))),
    ("O8", of_body(lambda body: body._replace(targets=PMap()))),
]
"""Breaks that both checks see."""
TOUCHED = [*ANY, ("O15", of_body(lambda body: body._replace(owners=PMap())))]
WHOLE = [
    *ANY,
    ("S6", of_body(lambda body: body._replace(topic_users=PMap({"t": 7})))),
    ("S6", of_body(lambda body: body._replace(settled=PMap()))),
    ("S6", of_body(lambda body: body._replace(owners=PMap()))),
    ("M5", of_body(lambda body: body._replace(targets=PMap({"x": MemberTarget("x", ())})))),
    ("O8", of_body(_meant_twice)),
    (
        "O15",
        of_body(
            lambda body: body._replace(
                members=body.members.set("b", body.members["b"]._replace(owned=holds(0)))
            )
        ),
    ),
]


@pytest.fixture
def group() -> ConsumerGroup:
    """`a` owns t0 and t1 and rests, and so does `b`, who wants another topic."""
    talk = Talk(t=2)
    talk.send(talk.joins("a", "t"))
    talk.send(talk.joins("b", "u"))
    talk.send(talk.says("a", 2))
    assert talk.group.state == "Stable"
    return talk.group


def test_a_sound_group_has_no_problem(group: ConsumerGroup) -> None:
    assert check_group(group) == []
    assert check_touched(group, group, ["a", "b", "gone"]) == []


@pytest.mark.parametrize(("rule", "broken"), WHOLE)
def test_s6_a_broken_invariant_is_seen(rule: str, broken: Break, group: ConsumerGroup) -> None:
    assert rule in {each.partition(":")[0] for each in check_group(broken(group))}


@pytest.mark.parametrize(("rule", "broken"), TOUCHED)
def test_s6_a_broken_invariant_of_touched_members_is_seen(
    rule: str, broken: Break, group: ConsumerGroup
) -> None:
    found = check_touched(group, broken(group), ["a"])
    assert rule in {each.partition(":")[0] for each in found}


def test_s6_what_is_left_of_one_who_went_is_seen(group: ConsumerGroup) -> None:
    body = group.body
    left = group._replace(body=body._replace(members=body.members.remove("a")))

    assert any(each.startswith("M5") for each in check_touched(group, left, ["a"]))
    assert TopicPartition("t", 0) in left.body.owners
