"""Pages of a sealed segment: from any place, in the order of the log, at the price of a page."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pyarrow as pa

from holdfast.coordinator.model.events import Cause, GroupCreated, Record
from holdfast.coordinator.model.ids import Position
from holdfast.storage.codec.event_codec import CHAIN_START, append_chain, encode_record
from holdfast.storage.segments.segment_reader import SegmentReader
from holdfast.storage.segments.segment_writer import write_segment
from holdfast.storage.segments.segments import Row


def row(index: int, ordinal: int, group: str) -> Row:
    place = Position(index, ordinal)
    record = Record(place, group, 1, 1, 1, Cause("A1", "JoinGroup"), "", "", GroupCreated())
    return Row(place, append_chain(encode_record(record), CHAIN_START))


def rows(entries: int) -> list[Row]:
    """Three records in every second entry, of groups that lie in files in another order."""
    return [
        row(index, ordinal, f"g{(index * 7 + ordinal) % 5}")
        for index, ordinal in product(range(2, 2 * entries + 2, 2), range(3))
    ]


def sealed(folder: Path, made: list[Row]) -> tuple[SegmentReader, Path]:
    write_segment(folder, made, "c", "n1")
    reader = SegmentReader(folder)
    ((segment, _),) = reader.segments()
    return reader, segment


def page_and_bytes(
    reader: SegmentReader, segment: Path, start: Position, limit: int
) -> tuple[list[Row], int]:
    """A page, and how much more than ever before Arrow had to allocate for it at one time."""
    pool = pa.default_memory_pool()
    most = pool.max_memory()
    filling = pa.allocate_buffer(most - pool.bytes_allocated())
    page = reader.page(segment, start, limit)
    del filling
    return page, pool.max_memory() - most


def test_s22_a_page_from_any_place_is_the_next_records_of_the_log(tmp_path: Path) -> None:
    """Also from a place that no record has, and from behind the last one."""
    made = rows(entries=8)
    reader, segment = sealed(tmp_path, made)

    for start in map(Position._make, product(range(20), range(5))):
        behind = [each for each in made if each.position >= start]
        assert reader.page(segment, start, 4) == behind[:4], start


def test_a_page_takes_no_copy_of_the_segment(tmp_path: Path) -> None:
    """Whoever reads a long segment to its end, page by page, would wait for as many copies."""
    made = rows(entries=2_000)
    reader, segment = sealed(tmp_path, made)
    reader.page(segment, Position(0, 0), 1)

    # More than once: what was needed before may be freed in the midst of it, and hide a copy.
    for start in (Position(2, 1), Position(4, 0), Position(4, 1)):
        page, copied = page_and_bytes(reader, segment, start, 10)

        assert page == [each for each in made if each.position >= start][:10]
        assert copied < sum(len(each.content) for each in made) / 10
