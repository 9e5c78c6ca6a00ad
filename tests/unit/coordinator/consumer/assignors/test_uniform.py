"""The uniform assignor for homogeneous groups: what Kafka 4.3.1 gave, and its rule by hand.

The rule: of n partitions and c members, the first n % c members that are walked have the quota
n // c + 1, the others n // c. A member above its quota keeps the first ones. What nobody held, by
topic and number, and after that what was cut off goes to members below their quota, as walked.
"""

from __future__ import annotations

import pytest

from holdfast.coordinator.consumer.assignors import MemberSpec
from holdfast.coordinator.consumer.assignors.spec import as_walked_by_uniform
from unit.coordinator.consumer.assignors.written import assign


def test_p13_gives_what_was_recorded() -> None:
    """The targets of the transcript c_uniform_two_members: a joins, b joins, a leaves."""
    counts = {"t": 4}
    alone = assign("uniform", ["m-a: t"], counts)
    assert alone == {"m-a": "t-0 t-1 t-2 t-3"}
    both = assign("uniform", ["m-a: t", "m-b: t"], counts, alone)
    assert both == {"m-a": "t-0 t-1", "m-b": "t-2 t-3"}
    assert assign("uniform", ["m-b: t"], counts, both) == {"m-b": "t-0 t-1 t-2 t-3"}


JAVA = (
    "m-a m-c m-b m-e m-d",
    "alpha delta beta gamma",
    "\u00e4 \U0001f600 \ufffd",
    "consumer-7 consumer-6 consumer-5 consumer-4 consumer-3 consumer-2 consumer-1",
)


@pytest.mark.parametrize("order", JAVA)
def test_p13_members_are_walked_in_the_order_of_a_java_hash_map(order: str) -> None:
    """The orders were printed by a Java 17 program from a `HashMap` with these keys."""
    members = {
        member_id: MemberSpec(None, None, frozenset()) for member_id in sorted(order.split())
    }
    assert as_walked_by_uniform(members) == order.split()


def test_p13_bettered_a_large_group_does_not_reorder_itself() -> None:
    """Java's map grows with its 13th key, and everybody's place in it changes."""
    ids = [f"consumer-{number}" for number in range(30)]
    members = {member_id: MemberSpec(None, None, frozenset()) for member_id in ids}
    walked = as_walked_by_uniform(members)
    for member_id in ids:
        others = {other: members[other] for other in ids if other != member_id}
        assert as_walked_by_uniform(others) == [other for other in walked if other != member_id]


def test_p13_from_nothing_the_first_that_are_walked_get_one_more() -> None:
    """Walked are m-a, m-c, m-b."""
    result = assign("uniform", ["m-a: t u", "m-b: t u", "m-c: t u"], {"t": 3, "u": 2})
    assert result == {"m-a": "t-0 t-1", "m-c": "t-2 u-0", "m-b": "u-1"}


def test_p13_a_member_above_its_quota_keeps_the_first_ones() -> None:
    """Quotas are 3, 3, 2 as walked: m-a keeps three and gives up u-0 and u-1; u-2 was free."""
    current = {"m-a": "t-0 t-2 t-4 u-0 u-1", "m-b": "t-1 t-3"}
    result = assign("uniform", ["m-a: t u", "m-b: t u", "m-c: t u"], {"t": 5, "u": 3}, current)
    assert result == {"m-a": "t-0 t-2 t-4", "m-c": "u-0 u-1 u-2", "m-b": "t-1 t-3"}


def test_p13_what_nobody_held_is_given_out_before_what_is_cut_off() -> None:
    """Quotas are 2, 2, 1 as walked: m-c takes u-0 and u-1, and t-2 is left for m-b."""
    current = {"m-a": "t-0 t-1 t-2", "m-b": ""}
    result = assign("uniform", ["m-a: t u", "m-b: t u", "m-c: t u"], {"t": 3, "u": 2}, current)
    assert result == {"m-a": "t-0 t-1", "m-c": "u-0 u-1", "m-b": "t-2"}


def test_p13_a_leavers_partitions_go_to_the_others_and_nothing_else_moves() -> None:
    current = {"m-a": "t-0 t-1", "m-b": "t-4 t-5"}
    result = assign("uniform", ["m-a: t", "m-b: t"], {"t": 6}, current)
    assert result == {"m-a": "t-0 t-1 t-2", "m-b": "t-3 t-4 t-5"}


def test_p13_new_partitions_of_a_topic_go_to_those_below_their_quota() -> None:
    current = {"m-a": "t-0 t-1", "m-b": "t-2"}
    assert assign("uniform", ["m-a: t", "m-b: t"], {"t": 5}, current) == {
        "m-a": "t-0 t-1 t-3",
        "m-b": "t-2 t-4",
    }


def test_p13_who_is_walked_first_gets_one_more_even_if_another_one_had_it() -> None:
    """Kafka does not ask here who holds more: m-a is walked first and takes t-2 from m-b."""
    current = {"m-a": "t-3 t-4", "m-b": "t-0 t-1 t-2"}
    assert assign("uniform", ["m-a: t", "m-b: t"], {"t": 5}, current) == {
        "m-a": "t-2 t-3 t-4",
        "m-b": "t-0 t-1",
    }


@pytest.mark.parametrize(
    ("counts", "current"),
    [
        ({"t": 2, "gone": 5}, {"m-a": "gone-0 gone-1 gone-2", "m-b": "t-0 t-1"}),
        ({"t": 2}, {"m-a": "gone-0", "m-b": "t-0 t-1"}),
        ({"t": 2}, {"m-a": "t-2 t-3", "m-b": "t-0 t-1"}),
    ],
    ids=["not subscribed", "deleted", "deleted and created again with fewer partitions"],
)
def test_p13_what_is_not_subscribed_or_not_there_is_taken_away(
    counts: dict[str, int], current: dict[str, str]
) -> None:
    result = assign("uniform", ["m-a: t", "m-b: t"], counts, current)
    assert result == {"m-a": "t-1", "m-b": "t-0"}


def test_p13_of_two_members_with_one_partition_the_first_that_is_walked_keeps_it() -> None:
    """Two members of a converted classic group may claim the same partition."""
    current = {"m-a": "t-0", "m-b": "t-0 t-1"}
    assert assign("uniform", ["m-a: t", "m-b: t"], {"t": 2}, current) == {
        "m-a": "t-0",
        "m-b": "t-1",
    }


def test_p13_members_without_a_topic_that_exists_get_nothing() -> None:
    assert assign("uniform", ["m-a: later", "m-b: later"], {"t": 2}) == {"m-a": "", "m-b": ""}


def test_p13_a_group_without_members_has_an_empty_target() -> None:
    assert assign("uniform", [], {"t": 2}) == {}


def test_p13_which_rule_holds_is_said_by_the_group_not_read_off_existing_topics() -> None:
    """Loads of 2 and 3 are level for mixed groups (K-P14); in equal ones m-a gets one more."""
    members = ["m-a: t", "m-b: t later"]
    current = {"m-a": "t-3 t-4", "m-b": "t-0 t-1 t-2"}
    assert assign("uniform", members, {"t": 5}, current, homogeneous=False) == current
