"""The server's range assignor gives what Kafka 4.3.1 gave.

The tables named after a transcript are what that broker answered in it, as the target of each
member in ConsumerGroupDescribe; the others are worked out by hand from the rule.
"""

from __future__ import annotations

import pytest

from unit.coordinator.consumer.assignors.written import assign

RECORDED = {
    "c_target_moves_twice": (
        {"t": 6},
        {"m-a: t": "t-0 t-1", "m-b: t": "t-2 t-3", "m-c: t": "t-4 t-5"},
    ),
    "c_assignment_interval": (
        {"t": 4},
        {"m-a: t": "t-0 t-1", "m-b: t": "t-2", "m-c: t": "t-3"},
    ),
    "c_static_rolling_restart": (
        {"t": 6},
        {"m-a2=i-a: t": "t-0 t-1", "m-b2=i-b: t": "t-2 t-3", "m-c2=i-c: t": "t-4 t-5"},
    ),
    "c_different_subscriptions": (
        {"t": 4, "u": 2},
        {"m-a: t": "t-0 t-1", "m-b: t u": "t-2 t-3 u-0 u-1"},
    ),
    "c_different_subscriptions, later": (
        {"t": 4, "u": 2},
        {"m-a: t": "t-0 t-1 t-2 t-3", "m-b: u": "u-0 u-1"},
    ),
    "c_topic_created_grown_deleted": ({}, {"m-a: later": ""}),
    "random_consumer_001": (
        {"t": 6, "u": 2},
        {
            "m-a: t": "t-0 t-1",
            "m-a-3: t": "t-2",
            "m-b: t": "t-3",
            "m-b-2: t": "t-4",
            "m-c-1: t": "t-5",
        },
    ),
    "random_consumer_006": (
        {"t": 6, "u": 2},
        {
            "m-a-3=i-a: t": "t-0 t-1",
            "m-b-4=i-b: t u": "t-2 t-3 u-0",
            "m-c-1=i-c: t": "t-4",
            "m-d: t u": "t-5 u-1",
        },
    ),
    "random_consumer_016": (
        {"t": 6, "u": 2},
        {
            "m-a-1: t u": "t-4 u-1",
            "m-b-8=i-b: t": "t-0 t-1",
            "m-c-7=i-c: t u": "t-2 t-3 u-0",
            "m-d: t": "t-5",
        },
    ),
    "random_consumer_021": (
        {"t": 6, "u": 2},
        {
            "m-a-8: t u": "t-3 u-1",
            "m-a-9: t u": "t-4",
            "m-b-4=i-b: t": "t-0 t-1",
            "m-c-1: t u": "t-5",
            "m-d-5=i-d: u": "u-0",
            "m-e-7=i-e: t": "t-2",
        },
    ),
}


@pytest.mark.parametrize("transcript", RECORDED)
def test_p12_gives_what_was_recorded(transcript: str) -> None:
    counts, expected = RECORDED[transcript]
    result = assign("range", list(expected), counts)
    assert result == {text.partition(":")[0].partition("=")[0]: t for text, t in expected.items()}


def test_p12_is_not_sticky() -> None:
    current = {"m-a": "t-2 t-3", "m-b": "t-0 t-1"}
    assert assign("range", ["m-a: t", "m-b: t"], {"t": 4}, current) == {
        "m-a": "t-0 t-1",
        "m-b": "t-2 t-3",
    }


def test_p12_a_static_member_that_returns_under_another_id_keeps_its_place() -> None:
    counts = {"t": 3}
    assert assign("range", ["a=i-1: t", "b=i-2: t", "c: t"], counts)["b"] == "t-1"
    assert assign("range", ["a=i-1: t", "zz=i-2: t", "c: t"], counts)["zz"] == "t-1"


def test_p12_topics_with_equal_counts_and_subscribers_are_cut_at_the_same_places() -> None:
    """Co-partitioning: who has t-n has u-n. Topic v has another subscriber: cut elsewhere."""
    result = assign("range", ["m-a: t u", "m-b: t u v", "m-c: v"], {"t": 3, "u": 3, "v": 3})
    assert result == {"m-a": "t-0 t-1 u-0 u-1", "m-b": "t-2 u-2 v-0 v-1", "m-c": "v-2"}


def test_p12_with_fewer_partitions_than_subscribers_the_last_ones_get_nothing() -> None:
    assert assign("range", ["m-a: t", "m-b: t", "m-c: t"], {"t": 2}) == {
        "m-a": "t-0",
        "m-b": "t-1",
        "m-c": "",
    }


def test_p12_members_are_sorted_as_in_java() -> None:
    """U+FFFD is above the surrogates that stand for U+1F600, so Java puts it last."""
    result = assign("range", ["\ufffd: t", "\U0001f600: t"], {"t": 2})
    assert result == {"\U0001f600": "t-0", "\ufffd": "t-1"}


def test_p12_a_group_without_members_has_an_empty_target() -> None:
    assert assign("range", [], {"t": 3}) == {}
