"""One step of a member towards its target, rule by rule (kafka: CurrentAssignmentBuilderTest)."""

from __future__ import annotations

import pytest

from holdfast.coordinator.consumer.state import Holding, Member
from holdfast.coordinator.consumer.targets.reconciliation import Goal, Step, next_cut, next_step
from holdfast.coordinator.model.member_profile import ConsumerProfile

Pairs = frozenset[tuple[str, int]]


def pairs(text: str) -> Pairs:
    """`t0 u1` is two partitions."""
    return frozenset((each[0], int(each[1:])) for each in text.split())


def held(text: str) -> tuple[Holding, ...]:
    by_topic: dict[str, list[int]] = {}
    for topic, number in sorted(pairs(text)):
        by_topic.setdefault(topic, []).append(number)
    return tuple(
        Holding(topic, tuple(numbers), (2,) * len(numbers), (5,) * len(numbers))
        for topic, numbers in by_topic.items()
    )


def member(owned: str = "", revoking: str = "", epoch: int = 2, *, waiting: bool = False) -> Member:
    return Member(
        *("m", None, ConsumerProfile(), 1, 0),
        epoch=epoch,
        owned=held(owned),
        revoking=held(revoking),
        waiting=waiting,
    )


def goal(target: str, says: str | None = None, taken: str = "") -> Goal:
    """The target of epoch 3; `says`: what the member says that it owns; `taken`: by others."""
    owned = None if says is None else pairs(says)
    return Goal(3, pairs(target), owned, lambda topic, number: (topic, number) not in pairs(taken))


CASES = {
    "O2: what is free is taken, and its epoch is the target's": (
        member("t0"),
        goal("t0 t1"),
        Step(3, granted=pairs("t1")),
    ),
    "O3: it has to give up, and stays at its epoch": (
        member("t0 t1"),
        goal("t0 u0"),
        Step(2, asked_back=pairs("t1")),
    ),
    "O4: it has let go already": (
        member("t0 t1"),
        goal("t0 u0", says="t0"),
        Step(3, freed=pairs("t1"), granted=pairs("u0")),
    ),
    "O5: it does not say what it owns": (member("t0", "t1"), goal("t0"), None),
    "O5: it still has one of them": (member("t0", "t1 t2"), goal("t0", says="t0 t2"), None),
    "O6: it has given up": (
        member("t0", "t1"),
        goal("t0", says="t0"),
        Step(3, freed=pairs("t1")),
    ),
    "O7: it gets back what it gave up, though that is not free for others": (
        member("t0", "t1"),
        goal("t0 t1", says="t0", taken="t1"),
        Step(3, freed=pairs("t1"), granted=pairs("t1")),
    ),
    "O8: some of it is free, and it waits for the rest": (
        member("t0"),
        goal("t0 t1 t2", taken="t2"),
        Step(3, granted=pairs("t1"), waiting=True),
    ),
    "O9: it waits on": (
        member("t0", epoch=3, waiting=True),
        goal("t0 t1", taken="t1"),
        Step(3, waiting=True),
    ),
    "O10: what it waited for is free": (
        member("t0", epoch=3, waiting=True),
        goal("t0 t1"),
        Step(3, granted=pairs("t1")),
    ),
    "O11: who waits has to give up": (
        member("t0", waiting=True),
        goal("t1", taken="t1"),
        Step(2, asked_back=pairs("t0")),
    ),
    "O14: a newer target takes more: what it gave up is free": (
        member("t0 t1", "t2"),
        goal("t0", says="t0 t1"),
        Step(2, asked_back=pairs("t1"), freed=pairs("t2")),
    ),
    "O14: of what it gave up nothing comes back before it has given up the rest": (
        member("t0 t1", "t2"),
        goal("t0 t2", says="t0 t1"),
        Step(2, asked_back=pairs("t1"), freed=pairs("t2")),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_step_follows_its_rule(case: str) -> None:
    """K-O2 to K-O14."""
    before, towards, step = CASES[case]

    assert next_step(before, towards) == step


def test_o13_topics_that_are_not_wanted_go_at_once_at_the_same_epoch() -> None:
    before = member("t0 u0", epoch=2)

    assert next_cut(before, goal("t0")) == Step(2, asked_back=pairs("u0"))
    assert next_cut(before, goal("t0", says="t0")) == Step(2, freed=pairs("u0"))
    assert next_cut(before, goal("t0 u0")) is None
