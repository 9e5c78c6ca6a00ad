"""Manifests of format 2 tell what each file is; those of format 1 stay as they were (S22)."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast.coordinator.model.events import Cause, LevelRaised, MembersLeft, Record
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.levels import LEVEL_MAX, LEVEL_MIN
from holdfast.storage.codec.event_codec import CHAIN_START, append_chain, encode_record, split_chain
from holdfast.storage.segments.fast_hash import fast_hash
from holdfast.storage.segments.log_check import check_node
from holdfast.storage.segments.segment_writer import write_segment
from holdfast.storage.segments.segments import (
    BLOCK_INDEXES,
    FIRST_FORMAT,
    FORMAT_VERSION,
    MANIFEST,
    OtherFormat,
    Row,
    block_digests,
    format_at,
    read_manifest,
    read_rows,
    segments_in,
)

FIELDS_OF_0_1_0 = {
    *("format_version", "cluster_id", "node_id", "first", "last", "count", "files", "blocks"),
}
"""What the manifest class of release 0.1.0 takes; it refuses any other, and any number but 1."""
Change = Callable[[dict[str, Any]], object]


def row(index: int, group: str = "g") -> Row:
    cause = Cause("A1", "JoinGroup")
    event = MembersLeft((f"m{index}",), "bye")
    record = Record(Position(index, 0), group, index, 1, 2, cause, "p", "r", event)
    return Row(record.position, append_chain(encode_record(record), CHAIN_START))


ROWS = [row(i, ("g", "h", "kk")[i % 3]) for i in range(BLOCK_INDEXES - 30, BLOCK_INDEXES + 30)]


def sealed(folder: Path, format_version: int = FORMAT_VERSION) -> Path:
    write_segment(folder, ROWS, "c", "n", format_version=format_version)
    return segments_in(folder)[-1]


def changed(segment: Path, change: Change) -> None:
    raw = json.loads((segment / MANIFEST).read_text())
    change(raw)
    (segment / MANIFEST).write_text(json.dumps(raw))


def packed_again(segment: Path) -> Path:
    """The same rows in other bytes: neither payloads nor digests tell."""
    file = min(segment.glob("bucket-*"))
    pq.write_table(pq.ParquetFile(file).read(), file, compression="gzip")
    return file


def flaws(segment: Path) -> list[str]:
    """What a check says of the manifest and the files; the rows are no whole log."""
    return [f.text for f in check_node("n", [segment], []).flaws if "segment" in f.text]


def test_a_manifest_tells_size_rows_and_sha256_of_each_file(tmp_path: Path) -> None:
    segment = sealed(tmp_path)
    manifest = read_manifest(segment)

    assert len(manifest.files) == 3
    assert [each.file for each in manifest.contents] == list(manifest.files)
    for each in manifest.contents:
        content = (segment / each.file).read_bytes()
        assert (each.size, each.sha256) == (len(content), sha256(content).hexdigest())
        assert each.rows == pq.read_metadata(segment / each.file).num_rows


def test_a_manifest_tells_the_writer_and_the_newest_schema_of_its_records(tmp_path: Path) -> None:
    """A raise to level 2 is of schema 3; all that level 1 has is of schema 1 (ADR 26)."""
    raised = Record(Position(1, 0), "", 1, 1, 2, Cause("A1", "x"), "p", "r", LevelRaised(2))
    rows = [Row(raised.position, append_chain(encode_record(raised), CHAIN_START)), row(2)]

    assert read_manifest(sealed(tmp_path)).event_schema == 1
    assert write_segment(tmp_path, rows, "c", "n").event_schema == 3
    assert read_manifest(sealed(tmp_path)).writer.startswith("holdfast")


def test_s22_fast_sums_are_of_each_block_and_equal_on_all_nodes(tmp_path: Path) -> None:
    """As those over SHA-256: they depend on positions and payloads alone."""
    one = write_segment(tmp_path / "a", ROWS, "c", "n1")
    two = write_segment(tmp_path / "b", iter(ROWS), "c", "n2")
    pairs = [(row.position, split_chain(row.content)[0]) for row in ROWS]

    assert (one.fast_blocks, one.event_schema) == (two.fast_blocks, two.event_schema)
    assert [(each.block, each.count) for each in one.fast_blocks] == [(0, 30), (1, 30)]
    first = [fast_hash(*pair) for pair in pairs[:30]]
    assert one.fast_blocks[0].low == sum(value & 0xFFFFFFFF for value in first)
    assert one.fast_blocks[0].high == sum(value >> 32 for value in first)
    assert one.fast_blocks == block_digests(reversed(pairs), fast_hash)


def test_s22_at_level_1_a_manifest_is_one_that_0_1_0_reads(tmp_path: Path) -> None:
    """Whatever it does not know it takes for damage, and it may fetch the segment (ADR 26)."""
    segment = sealed(tmp_path, format_at(LEVEL_MIN))
    raw = json.loads((segment / MANIFEST).read_text())

    assert (raw["format_version"], set(raw)) == (1, FIELDS_OF_0_1_0)
    assert read_rows(segment) == ROWS
    assert flaws(segment) == []


def test_at_the_newest_level_a_manifest_is_of_the_newest_format() -> None:
    assert format_at(LEVEL_MAX) == FORMAT_VERSION == 2


def test_both_formats_are_returned_by_the_writer_as_they_are_read(tmp_path: Path) -> None:
    for number in (FIRST_FORMAT, FORMAT_VERSION):
        made = write_segment(tmp_path / str(number), ROWS, "c", "n", format_version=number)
        assert made == read_manifest(segments_in(tmp_path / str(number))[0])


WRONG: list[tuple[int, Change]] = [
    (FIRST_FORMAT, lambda raw: raw.update(writer="holdfast 9")),
    (FIRST_FORMAT, lambda raw: raw.update(format_version=2)),
    (FORMAT_VERSION, lambda raw: raw.update(format_version=1)),
    (FORMAT_VERSION, lambda raw: raw.pop("fast_blocks")),
    (FORMAT_VERSION, lambda raw: raw["contents"][0].pop("sha256")),
    (FORMAT_VERSION, lambda raw: raw.update(contents=7)),
]


@pytest.mark.parametrize(("number", "change"), WRONG)
def test_a_manifest_with_the_fields_of_another_format_is_damaged(
    number: int, change: Change, tmp_path: Path
) -> None:
    segment = sealed(tmp_path, number)
    changed(segment, change)

    with pytest.raises(ValueError, match="damaged manifest"):
        read_manifest(segment)


def test_a_format_behind_the_newest_is_refused_as_another_one(tmp_path: Path) -> None:
    segment = sealed(tmp_path)
    changed(segment, lambda raw: raw.update(format_version=3, anything=1))

    with pytest.raises(OtherFormat, match=r"version 3.*upgrade"):
        read_manifest(segment)


def test_a_file_with_other_bytes_is_named_though_its_records_are_right(tmp_path: Path) -> None:
    segment = sealed(tmp_path)
    assert flaws(segment) == []
    file = packed_again(segment)

    (said,) = flaws(segment)
    assert file.name in said
    assert "were sealed" in said


def test_a_file_of_equal_size_with_another_sha256_is_named(tmp_path: Path) -> None:
    segment = sealed(tmp_path)
    changed(segment, lambda raw: raw["contents"][1].update(sha256="0" * 64))

    (said,) = flaws(segment)
    assert read_manifest(segment).files[1] in said
    assert "0000000000000000" in said


def test_format_1_is_checked_as_it_was(tmp_path: Path) -> None:
    """It tells nothing of bytes: files packed by another version of a library are sound."""
    segment = sealed(tmp_path, FIRST_FORMAT)
    packed_again(segment)

    assert flaws(segment) == []


LIES: list[tuple[Change, str]] = [
    (lambda raw: raw["contents"].pop(), "other files"),
    (lambda raw: raw["contents"].append({**raw["contents"][0], "file": "../x"}), "other files"),
    (lambda raw: raw["contents"][2].update(rows=1), "bucket-"),
    (lambda raw: raw["fast_blocks"][1].update(low=1), "block 1"),
    (lambda raw: raw["blocks"][0].update(high=1), "block 0"),
]


@pytest.mark.parametrize(("lie", "named"), LIES)
def test_what_a_manifest_says_wrongly_of_sound_files_is_found(
    lie: Change, named: str, tmp_path: Path
) -> None:
    segment = sealed(tmp_path)
    changed(segment, lie)

    (said,) = flaws(segment)
    assert named in said


def test_a_changed_page_is_refused_by_its_checksum_when_it_is_read(tmp_path: Path) -> None:
    """A node that serves its history does not compare whole files: each page tells."""
    segment = sealed(tmp_path)
    file = segment / read_manifest(segment).files[0]
    group = pq.read_metadata(file).row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    column = next(each for each in columns if each.path_in_schema == "payload")
    content = bytearray(file.read_bytes())
    content[column.data_page_offset + column.total_compressed_size // 2] ^= 1
    file.write_bytes(content)

    with pytest.raises((OSError, pa.ArrowException), match=r"(?i)crc"):
        read_rows(segment)
