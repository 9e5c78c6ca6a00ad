"""Assignments are read as protobuf reads them, and what cannot be read never raises."""

from __future__ import annotations

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from holdfast.client import CooperativeAssignor, RangeAssignor, StickyAssignor
from holdfast.client._session.protocol import assign
from holdfast.coordinator.assignors.base import MemberSubscription
from holdfast.coordinator.groups.assignment_bytes import claimed, has_user_data, partitions
from holdfast.coordinator.groups.assignment_bytes import written as core_written
from holdfast.coordinator.model.ids import TopicPartition, TopicPartitions
from holdfast.v1.group_pb2 import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    ConsumerProtocolTopicPartitions,
)

OWNED = st.lists(
    st.tuples(st.text(max_size=9), st.lists(st.integers(0, (1 << 31) - 1), max_size=9)), max_size=6
)


def written(owned: list[tuple[str, list[int]]], user_data: bytes | None = None) -> bytes:
    topics = [ConsumerProtocolTopicPartitions(topic=t, partitions=p) for t, p in owned]
    made = ConsumerProtocolAssignment(assigned_partitions=topics, user_data=user_data)
    return made.SerializeToString()


@given(OWNED, st.none() | st.binary(max_size=9))
def test_what_protobuf_writes_is_read(
    owned: list[tuple[str, list[int]]], user_data: bytes | None
) -> None:
    expected = tuple(TopicPartition(topic, number) for topic, some in owned for number in some)

    assert partitions(written(owned, user_data)) == expected


@given(OWNED)
def test_what_a_subscription_claims_is_read_as_protobuf_writes_it(
    owned: list[tuple[str, list[int]]],
) -> None:
    """S11: a group that changes its protocol goes by it."""
    topics = [ConsumerProtocolTopicPartitions(topic=t, partitions=p) for t, p in owned]
    made = ConsumerProtocolSubscription(
        topics=["t", "u"], user_data=b"u", owned_partitions=topics, generation_id=-1, rack_id="r"
    )
    expected = tuple(TopicPartition(topic, number) for topic, some in owned for number in some)

    assert claimed(made.SerializeToString()) == expected
    assert claimed(b"\x1a\x7f") is None


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused_and_as_protobuf_reads_them(content: bytes) -> None:
    """A `None` may be stricter than protobuf; what is read must be what protobuf reads."""
    found = partitions(content)
    if found is None:
        return
    try:
        message = ConsumerProtocolAssignment.FromString(content)
    except DecodeError:
        return  # this reader does not look into user_data or fields that it does not know
    assert found == tuple(
        TopicPartition(each.topic, number)
        for each in message.assigned_partitions
        for number in each.partitions
    )


def test_unpacked_numbers_are_read() -> None:
    """Writers of proto2 do not pack; a reader must take both forms."""
    topic = b"\x0a\x01t" + b"\x10\x03" + b"\x10\x04"
    content = b"\x0a" + bytes([len(topic)]) + topic

    assert partitions(content) == (TopicPartition("t", 3), TopicPartition("t", 4))


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize(("wire_type", "width"), [(1, 8), (5, 4)])
def test_fields_of_fixed_width_are_skipped_as_protobuf_skips_them(
    number: int, wire_type: int, width: int
) -> None:
    """A known number in a wire type that it never has is an unknown field, not a packed list."""
    fixed = bytes([number << 3 | wire_type]) + b"\x01" * width
    topic = b"\x0a\x01t\x10\x03" + fixed
    content = fixed + b"\x0a" + bytes([len(topic)]) + topic
    (read,) = ConsumerProtocolAssignment.FromString(content).assigned_partitions

    assert (read.topic, list(read.partitions)) == ("t", [3])
    assert partitions(content) == (TopicPartition("t", 3),)


def test_negative_partitions_and_bad_text_cannot_be_read() -> None:
    negative = b"\x10" + b"\xff" * 9 + b"\x01"
    bad_text = b"\x0a\x02\xff\xff"

    for topic in (negative, bad_text):
        assert partitions(b"\x0a" + bytes([len(topic)]) + topic) is None


@given(OWNED)
def test_what_the_core_writes_is_as_protobuf_writes_it(owned: list[tuple[str, list[int]]]) -> None:
    """What a group is converted to is read by its members' clients (K-Q5, K-Q12)."""
    told = [TopicPartitions(topic, tuple(numbers)) for topic, numbers in owned]

    found = ConsumerProtocolAssignment.FromString(core_written(told))
    assert [(each.topic, list(each.partitions)) for each in found.assigned_partitions] == [
        (topic, numbers) for topic, numbers in owned if topic or numbers
    ]


@given(OWNED, st.none() | st.binary(max_size=9))
def test_bytes_of_an_assignor_of_its_own_are_seen(
    owned: list[tuple[str, list[int]]], user_data: bytes | None
) -> None:
    """K-Q3: a group that has some is not converted."""
    assert has_user_data(written(owned, user_data)) == bool(user_data)


@pytest.mark.parametrize(
    "assignor", [StickyAssignor(), RangeAssignor(), CooperativeAssignor()], ids=lambda it: it.name
)
def test_what_our_own_client_notes_there_keeps_no_group_from_a_conversion(
    assignor: StickyAssignor | RangeAssignor | CooperativeAssignor,
) -> None:
    """K-Q2: else no group of `holdfast.client` could change its protocol while it works."""
    x = MemberSubscription(member_id="x", topics=frozenset("t"), owned={"t": (0, 1, 2, 3)})
    y = MemberSubscription(member_id="y", topics=frozenset("t"))
    given = assign(assignor, [x, y], {"t": 4})
    assert all(b"counts" in each.assignment for each in given)
    assert not any(has_user_data(each.assignment) for each in given)


@pytest.mark.parametrize("content", [b"\x10\x05", b'\x12\x0b{"counts": \x12\x01x'])
def test_whatever_else_stands_there_is_an_assignors(content: bytes) -> None:
    """K-Q3: a number in its place, and bytes beside the client's."""
    assert has_user_data(content)
