"""S22: a node hands its sealed segments to a peer that asks, piece by piece."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.coordinator.model.ids import Position
from holdfast.raft.api import BadMessage
from holdfast.runtime.event_log.segment_calls import (
    CHUNK_BYTES,
    Piece,
    SegmentSource,
    encode_checkpoint,
    encode_list,
    encode_read,
)
from holdfast.storage.segments.checkpoint import checkpoint_name


def test_a_source_answers_in_bounded_chunks_and_from_an_offset(tmp_path: Path) -> None:
    """S7: no chunk is longer than what heartbeats may wait behind."""
    folder = tmp_path / f"{1:020d}-{9:020d}"
    folder.mkdir()
    data = bytes(range(256)) * 3_000
    (folder / "bucket-03.parquet").write_bytes(data)
    source = SegmentSource(tmp_path)

    chunks = list(source.answer(encode_read(Piece(1, 9, 3, 7))))

    assert b"".join(chunks) == data[7:]
    assert max(map(len, chunks)) <= CHUNK_BYTES
    assert list(source.answer(encode_list())) == []  # no manifest, no segment


def test_s24_a_source_sends_the_checkpoint_at_a_position_and_no_other(tmp_path: Path) -> None:
    last = Position(9, 2)
    data = bytes(range(256)) * 3_000
    (tmp_path / checkpoint_name(last)).write_bytes(data)
    source = SegmentSource(tmp_path)

    chunks = list(source.answer(encode_checkpoint(last)))

    assert b"".join(chunks) == data
    assert max(map(len, chunks)) <= CHUNK_BYTES
    with pytest.raises(FileNotFoundError):
        list(source.answer(encode_checkpoint(Position(9, 1))))


@pytest.mark.parametrize("request_", [b"x", b"\x00" * 24, encode_read(Piece(1, 2, 99, 0))])
def test_what_is_no_request_is_refused(tmp_path: Path, request_: bytes) -> None:
    with pytest.raises(BadMessage):
        SegmentSource(tmp_path).answer(request_)
