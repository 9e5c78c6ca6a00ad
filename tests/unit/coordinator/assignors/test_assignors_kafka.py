"""Range and round robin give exactly what Kafka gives: tables worked out by hand from its rules.

Range, topic by topic: n partitions over c subscribers; each gets n // c in a row, the first n % c
one more. Round robin: all partitions by topic and number, dealt in a circle; who does not want the
topic is passed over. The circle and the rows are in this order: static members by instance id, then
dynamic ones by member id. No racks.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from holdfast.coordinator.assignors import MemberSubscription, RangeAssignor, RoundRobinAssignor


class Case(NamedTuple):
    """Members as "id: topics" or "id=instance: topics", counts, and "id: topic-number ..."."""

    name: str
    members: list[str]
    counts: dict[str, int]
    expected: list[str]


def member(text: str) -> MemberSubscription:
    who, _, topics = text.partition(":")
    member_id, _, instance_id = who.partition("=")
    return MemberSubscription(
        member_id=member_id, instance_id=instance_id or None, topics=frozenset(topics.split())
    )


def written(assignment: dict[str, dict[str, list[int]]]) -> list[str]:
    return [
        f"{member_id}: {' '.join(f'{t}-{n}' for t, ns in sorted(topics.items()) for n in ns)}"
        for member_id, topics in sorted(assignment.items())
    ]


RANGE = [
    Case("one of one", ["a: t"], {"t": 3}, ["a: t-0 t-1 t-2"]),
    Case("two of one", ["b: t", "a: t"], {"t": 1}, ["a: t-0", "b: "]),
    Case(
        "co-partitioned topics are cut at the same places",
        ["a: t u", "b: t u"],
        {"t": 3, "u": 3},
        ["a: t-0 t-1 u-0 u-1", "b: t-2 u-2"],
    ),
    Case(
        "co-partitioned topics of three members, and one topic of another size",
        ["a: t u v", "b: t u v", "c: t u v"],
        {"t": 5, "u": 5, "v": 4},
        ["a: t-0 t-1 u-0 u-1 v-0 v-1", "b: t-2 t-3 u-2 u-3 v-2", "c: t-4 u-4 v-3"],
    ),
    Case(
        "the remainder goes to the first in every topic anew: range is not balanced over topics",
        ["a: t u v w", "b: t u v w"],
        {"t": 1, "u": 1, "v": 1, "w": 1},
        ["a: t-0 u-0 v-0 w-0", "b: "],
    ),
    Case(
        "mixed subscriptions: a topic is cut among its subscribers",
        ["a: t", "b: t u", "c: t"],
        {"t": 3, "u": 2},
        ["a: t-0", "b: t-1 u-0 u-1", "c: t-2"],
    ),
    Case(
        "mixed subscriptions: equal counts but other subscribers are cut elsewhere",
        ["a: t", "b: t u", "c: u"],
        {"t": 4, "u": 4},
        ["a: t-0 t-1", "b: t-2 t-3 u-0 u-1", "c: u-2 u-3"],
    ),
    Case(
        "static members come by instance id, whatever their member ids",
        ["z=i1: t u", "a=i2: t u"],
        {"t": 3, "u": 3},
        ["a: t-2 u-2", "z: t-0 t-1 u-0 u-1"],
    ),
    Case(
        "static members come before dynamic ones",
        ["a: t", "b=zzz: t"],
        {"t": 3},
        ["a: t-2", "b: t-0 t-1"],
    ),
    Case(
        "three static members before two dynamic ones",
        ["d2: t", "m7=i7: t", "m1=i5: t", "d1: t", "m9=i1: t"],
        {"t": 7},
        ["d1: t-5", "d2: t-6", "m1: t-2 t-3", "m7: t-4", "m9: t-0 t-1"],
    ),
    Case("a topic that does not exist gives nothing", ["a: t ghost"], {"t": 1}, ["a: t-0"]),
]

ROUND_ROBIN = [
    Case("one of one", ["a: t"], {"t": 3}, ["a: t-0 t-1 t-2"]),
    Case("two of one", ["b: t", "a: t"], {"t": 1}, ["a: t-0", "b: "]),
    Case(
        "the turn goes on from topic to topic",
        ["a: t u", "b: t u"],
        {"u": 3, "t": 3},
        ["a: t-0 t-2 u-1", "b: t-1 u-0 u-2"],
    ),
    Case(
        "mixed subscriptions: who does not want the topic is passed over",
        ["a: t", "b: t u", "c: t"],
        {"t": 3, "u": 2},
        ["a: t-0", "b: t-1 u-0 u-1", "c: t-2"],
    ),
    Case(
        "who is passed over gets its next turn in the order of the circle",
        ["a: t", "b: t u", "c: t u v"],
        {"t": 1, "u": 2, "v": 3},
        ["a: t-0", "b: u-0", "c: u-1 v-0 v-1 v-2"],
    ),
    Case(
        "a member that is passed over for one topic is not owed anything",
        ["a: v", "b: t v", "c: t v"],
        {"t": 3, "v": 4},
        # t-0 b, t-1 c, t-2 b (a is passed over); then the circle stands at c
        ["a: v-1", "b: t-0 t-2 v-2", "c: t-1 v-0 v-3"],
    ),
    Case(
        "static members come by instance id, then dynamic ones by member id",
        ["a: t", "z=i1: t", "b=i2: t"],
        {"t": 5},
        ["a: t-2", "b: t-1 t-4", "z: t-0 t-3"],
    ),
    Case(
        "topics are dealt in the order of their names",
        ["a: t10 t9", "b: t10 t9"],
        {"t9": 1, "t10": 1},
        ["a: t10-0", "b: t9-0"],
    ),
    Case(
        "upper case comes before lower case, as Java compares",
        ["a: b Z", "b: b Z"],
        {"b": 1, "Z": 1},
        ["a: Z-0", "b: b-0"],
    ),
]


@pytest.mark.parametrize("case", RANGE, ids=lambda case: case.name)
def test_range_gives_exactly_kafkas_result(case: Case) -> None:
    members = [member(text) for text in case.members]
    assert written(RangeAssignor().assign(members, case.counts)) == case.expected
    assert written(RangeAssignor().assign(members[::-1], case.counts)) == case.expected


@pytest.mark.parametrize("case", ROUND_ROBIN, ids=lambda case: case.name)
def test_round_robin_gives_exactly_kafkas_result(case: Case) -> None:
    members = [member(text) for text in case.members]
    assert written(RoundRobinAssignor().assign(members, case.counts)) == case.expected
    assert written(RoundRobinAssignor().assign(members[::-1], case.counts)) == case.expected
