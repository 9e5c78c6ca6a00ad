"""The head of a record has, byte for byte, the form that protobuf gives it (S3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.coordinator.model.ids import Position
from holdfast.storage.codec.record_head import record_head
from holdfast.v1 import events_pb2, extras_pb2

UNSIGNED = st.integers(0, 2**64 - 1) | st.sampled_from([0, 1, 127, 128, 2**32, 2**63])
SIGNED = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([-1, 0, 127, 128])


@given(
    st.integers(1, 127), UNSIGNED, st.integers(0, 2**32 - 1), st.text(), UNSIGNED, SIGNED, SIGNED
)
def test_it_is_what_protobuf_writes(
    version: int,
    index: int,
    ordinal: int,
    group_id: str,
    group_seq: int,
    log_time_ms: int,
    wall_time_ms: int,
) -> None:
    """Chains are taken over these bytes: a zero written out on one node would fork them."""
    record = events_pb2.EventRecord(
        schema_version=version,
        position=extras_pb2.Position(index=index, ordinal=ordinal),
        group_id=group_id,
        group_seq=group_seq,
        log_time_ms=log_time_ms,
        wall_time_ms=wall_time_ms,
    )
    place = Position(index, ordinal)
    made = record_head(version, place, group_id, group_seq, log_time_ms, wall_time_ms)

    assert made == record.SerializeToString(deterministic=True)


@pytest.mark.parametrize(
    "head",
    [
        (Position(-1, 0), "g", 1, 0, 0),
        (Position(2**64, 0), "g", 1, 0, 0),
        (Position(1, 2**32), "g", 1, 0, 0),
        (Position(1, 0), "\ud800", 1, 0, 0),
        (Position(1, 0), "g", -1, 0, 0),
        (Position(1, 0), "g", 1, 2**63, 0),
        (Position(1, 0), "g", 1, 0, -(2**63) - 1),
    ],
)
def test_what_the_schema_cannot_hold_is_refused(head: tuple[Position, str, int, int, int]) -> None:
    """S3: a number that is cut to fit would be another record on this node alone."""
    with pytest.raises((TypeError, ValueError)):
        record_head(1, *head)
