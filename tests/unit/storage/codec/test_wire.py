"""Protobuf's wire format by hand: what protobuf writes is cut right, all else is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.storage.codec.wire import cut, nested, varint
from holdfast.v1 import events_pb2

PARTS_TAG = 4 << 3 | 2


@given(st.lists(st.tuples(st.text(max_size=200), st.integers(0, 2**64 - 1)), max_size=6))
def test_the_fields_of_an_entry_are_found_where_protobuf_put_them(
    told: list[tuple[str, int]],
) -> None:
    parts = [events_pb2.Part(group_id=name, term=term) for name, term in told]
    entry = events_pb2.LogEntry(schema_version=1, log_time_ms=-5, wall_time_ms=300, parts=parts)
    data = entry.SerializeToString(deterministic=True)
    found = cut(data, PARTS_TAG, 0, len(data))

    assert [data[start:end] for start, end in found] == [
        part.SerializeToString(deterministic=True) for part in parts
    ]


def test_fields_of_every_kind_are_passed() -> None:
    """A newer schema may have some that this version does not know."""
    more = b"\x09" + bytes(8) + b"\x15" + bytes(4) + b"\x80\x01\xff\x01" + nested(b"\x1a", b"x")
    data = more + nested(bytes((PARTS_TAG,)), b"part") + more

    assert [data[start:end] for start, end in cut(data, PARTS_TAG, 0, len(data))] == [b"part"]


@pytest.mark.parametrize(
    "data",
    [
        b"\x22",
        b"\x22\x05abc",
        b"\x08",
        b"\x08\x80",
        b"\x22\x80",
        b"\x09\x00",
        b"\x15\x00",
        b"\x0b",
        b"\x0c",
        b"\x0e",
        b"\x0f",
    ],
)
def test_bytes_that_are_no_message_are_refused(data: bytes) -> None:
    """Whatever the bytes are, the outcome is a value or a CodecError."""
    with pytest.raises(ValueError, match="field"):
        cut(data, PARTS_TAG, 0, len(data))


@given(st.integers(0, 2**64 - 1))
def test_a_number_has_the_fewest_bytes(number: int) -> None:
    """As protobuf writes it, in a field of its own."""
    head = events_pb2.Part(term=number).SerializeToString()
    assert head == (b"\x10" + varint(number) if number else b"")
