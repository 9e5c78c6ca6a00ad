"""The record of an offset has, byte for byte, the form that protobuf gives it (S3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.coordinator.model.state import Offset
from holdfast.storage.codec.event_codec import CodecError, StateItem, encode_state
from holdfast.storage.codec.offset_record import offset_record
from holdfast.v1 import state_pb2

SIGNED = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([-1, 0, 1, 127, 128])
EPOCHS = st.integers(-(2**31), 2**31 - 1) | st.sampled_from([-1, 0, 1, 63, 64, -64, -65])
KEY = ("group", "topic", "7")


@given(st.integers(1, 127), st.tuples(st.text(), st.text(), st.text()), SIGNED, EPOCHS, st.text(),
       SIGNED)  # fmt: skip
def test_it_is_what_protobuf_writes(
    version: int,
    key: tuple[str, ...],
    offset: int,
    leader_epoch: int,
    metadata: str,
    committed_ms: int,
) -> None:
    """Digests are sums over these bytes: a zero written out on one node would part them."""
    body = state_pb2.OffsetState(
        offset=offset, leader_epoch=leader_epoch, metadata=metadata, committed_ms=committed_ms
    )
    record = state_pb2.StateRecord(schema_version=version, key=key, offset=body)

    made = offset_record(version, key, Offset(offset, leader_epoch, metadata, committed_ms))

    assert made == record.SerializeToString(deterministic=True)


@pytest.mark.parametrize(
    "value",
    [
        Offset(2**63, 0, "", 0),
        Offset(-(2**63) - 1, 0, "", 0),
        Offset(0, 2**31, "", 0),
        Offset(0, -(2**31) - 1, "", 0),
        Offset(0, 0, "\ud800", 0),
        Offset(0, 0, "", 2**63),
    ],
)
def test_what_the_schema_cannot_hold_is_refused(value: Offset) -> None:
    """S3: a number that is cut to fit would be another state on this node alone."""
    with pytest.raises(CodecError):
        encode_state(StateItem(KEY, value))
