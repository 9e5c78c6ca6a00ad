"""Sealed segments: complete, comparable across nodes, crash-safe (S22)."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from holdfast.coordinator.model.events import Cause, GroupCreated, MembersLeft, Record
from holdfast.coordinator.model.ids import Position
from holdfast.storage.codec.event_codec import CHAIN_START, append_chain, encode_record
from holdfast.storage.segments.fast_hash import fast_hash
from holdfast.storage.segments.segment_writer import write_segment
from holdfast.storage.segments.segments import (
    BLOCK_INDEXES,
    MANIFEST,
    Row,
    block_digests,
    read_manifest,
    read_rows,
    record_hash,
    segments_in,
)


def row(index: int, ordinal: int = 0, group: str = "g") -> Row:
    event = GroupCreated() if ordinal else MembersLeft((f"m{index}",), "bye")
    record = Record(
        Position(index, ordinal), group, index, 1, 2, Cause("A1", "JoinGroup"), "p", "r", event
    )
    return Row(record.position, append_chain(encode_record(record), CHAIN_START))


ROWS = [row(i, o, group) for i in range(3, 60) for o, group in enumerate(("g", "h", "kk"))]


def test_a_segment_gives_back_every_record_in_order(tmp_path: Path) -> None:
    write_segment(tmp_path, ROWS, "c", "n1")

    assert read_rows(segments_in(tmp_path)[0]) == ROWS


def test_s22_two_nodes_have_equal_digests_whatever_else_differs(tmp_path: Path) -> None:
    one = write_segment(tmp_path / "a", ROWS, "c", "n1")
    two = write_segment(tmp_path / "b", ROWS, "c", "n2")

    assert one.blocks == two.blocks
    assert one.node_id != two.node_id


def test_a_digest_notices_a_lost_a_doubled_a_swapped_and_a_changed_record() -> None:
    pairs = [(Position(i, 0), bytes([i])) for i in range(50)]
    whole = block_digests(pairs)
    swapped = [*pairs[:5], (pairs[5][0], pairs[6][1]), (pairs[6][0], pairs[5][1]), *pairs[7:]]
    changed = [*pairs[:5], (pairs[5][0], b"\xff"), *pairs[6:]]

    assert block_digests(reversed(pairs)) == whole
    for damaged in (pairs[1:], [*pairs, pairs[0]], swapped, changed):
        assert block_digests(damaged) != whole


def test_a_digest_is_per_block_so_that_a_difference_is_found_where_it_is() -> None:
    pairs = [(Position(i, 0), b"x") for i in (1, BLOCK_INDEXES, BLOCK_INDEXES + 1)]

    assert [(d.block, d.count) for d in block_digests(pairs)] == [(0, 1), (1, 2)]


def test_the_record_hash_is_the_head_of_a_sha256_over_place_and_payload() -> None:
    """Spark computes the same with `sha2`; the value is sha256sum's, not this code's."""
    assert record_hash(Position(1, 0), b"a") == 0xFE78B99338989003


@pytest.mark.parametrize(
    ("place", "payload", "told"),
    [
        (Position(1, 0), b"a", 0x1DCE3B55149E0A74),
        (Position(123_456_789_012, 7), b"", 0x3025FA06D8467269),
        (Position(3, 1), b"0123456789" * 10, 0x3CB921560507203E),
    ],
)
def test_the_fast_hash_is_what_spark_makes_of_place_and_payload(
    place: Position, payload: bytes, told: int
) -> None:
    """The values are those of Spark's SQL: `hex(xxhash64(idx, ordinal, payload))`."""
    assert fast_hash(place, payload) == told


def test_an_unfinished_segment_is_not_there_and_is_written_anew(tmp_path: Path) -> None:
    """A crash before the rename leaves nothing that a reader would take for a segment."""
    write_segment(tmp_path, ROWS, "c", "n1")
    done = segments_in(tmp_path)[0]
    done.rename(tmp_path / f".{done.name}.unfinished")
    assert segments_in(tmp_path) == []

    write_segment(tmp_path, ROWS, "c", "n1")
    assert read_rows(segments_in(tmp_path)[0]) == ROWS


def test_sealing_again_changes_nothing(tmp_path: Path) -> None:
    first = write_segment(tmp_path, ROWS, "c", "n1")
    before = (segments_in(tmp_path)[0] / MANIFEST).stat().st_mtime_ns

    assert write_segment(tmp_path, ROWS, "c", "n1") == first
    assert (segments_in(tmp_path)[0] / MANIFEST).stat().st_mtime_ns == before


def test_a_segment_of_another_format_is_refused_with_what_to_do(tmp_path: Path) -> None:
    manifest = write_segment(tmp_path, ROWS, "c", "n1")
    path = segments_in(tmp_path)[0] / MANIFEST
    path.write_text(json.dumps({**asdict(manifest), "format_version": 99}))

    with pytest.raises(ValueError, match=r"version 99.*upgrade"):
        read_manifest(path.parent)
