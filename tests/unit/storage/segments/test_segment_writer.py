"""A segment is the same however many rows are taken at a time; its columns say what events say."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow.parquet as pq
import pytest

from holdfast.coordinator.model.events import (
    Assigned,
    AssignmentStored,
    Cause,
    Event,
    GenerationStarted,
    GroupDeleted,
    MemberExpired,
    MembersLeft,
    OffsetCommitted,
    OffsetsCommitted,
    OffsetsDeleted,
    Record,
    Rejoin,
)
from holdfast.coordinator.model.ids import Position, TopicPartition
from holdfast.storage.codec.event_codec import (
    CHAIN_START,
    append_chain,
    decode_record,
    encode_record,
)
from holdfast.storage.segments import segment_writer
from holdfast.storage.segments.segment_writer import write_copy, write_segment
from holdfast.storage.segments.segments import BUCKETS, Row, segments_in, typed_columns

GROUPS = ("b", "a", "c", "äé", "z" * 300, "")
GENERATION = GenerationStarted(
    7, "range", "m1", (Rejoin("m1", "r1"), Rejoin("m2", "r2")), ("m3",), ("m4",)
)
EVENTS: tuple[Event, ...] = (
    MembersLeft(("m1", "m2"), "bye"),
    GENERATION,
    AssignmentStored(7, (Assigned("m1", b"\x00"), Assigned("m2", b""))),
    OffsetsCommitted((OffsetCommitted("t", 3, 1 << 40, -1, "mine"),)),
    OffsetsDeleted((TopicPartition("t", 3),)),
    MemberExpired("m2", "session"),
    GroupDeleted(),
)


def record(number: int) -> Record:
    event, group = EVENTS[number % len(EVENTS)], GROUPS[number % len(GROUPS)]
    cause = Cause("A1", "JoinGroup")
    return Record(Position(number, number % 2), group, number, 1, 2, cause, "p", "r", event)


def row(number: int) -> Row:
    made = record(number)
    return Row(made.position, append_chain(encode_record(made), CHAIN_START))


ROWS = [row(number) for number in range(1, 100)]


def files(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Each file's rows, in their order."""
    (segment,) = segments_in(folder)
    return {
        path.name: pq.ParquetFile(path).read().to_pylist() for path in segment.glob("*.parquet")
    }


def test_s22_rows_taken_a_few_at_a_time_make_the_same_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are an iterator, so that 250,000 of them are never in memory at once."""
    at_once = write_segment(tmp_path / "once", ROWS, "c", "n")
    monkeypatch.setattr(segment_writer, "BATCH", 7)

    by_seven = write_segment(tmp_path / "seven", iter(ROWS), "c", "n")

    assert by_seven == at_once
    assert (by_seven.first, by_seven.last, by_seven.count) == ((1, 1), (99, 1), 99)
    assert files(tmp_path / "seven") == files(tmp_path / "once")


def test_a_bucket_holds_its_groups_whole_one_after_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fold of one group reads one file, and needs no sorting."""
    monkeypatch.setattr(segment_writer, "BATCH", 7)
    write_segment(tmp_path, ROWS, "c", "n")
    found = files(tmp_path)

    for name, rows in found.items():
        keys = [(line["grp"], line["idx"], line["ordinal"]) for line in rows]
        assert keys == sorted(keys)
        assert {f"bucket-{crc32(key[0].encode()) % BUCKETS:02d}.parquet" for key in keys} == {name}
    assert sum(map(len, found.values())) == len(ROWS)


def test_the_columns_of_a_file_are_those_that_a_verification_makes_of_the_record(
    tmp_path: Path,
) -> None:
    write_segment(tmp_path, ROWS, "c", "n")
    lines = {line["idx"]: line for rows in files(tmp_path).values() for line in rows}

    for number in range(1, 100):
        wanted = typed_columns(record(number))
        assert {name: lines[number][name] for name in wanted} == wanted


def test_columns_say_who_an_event_is_about() -> None:
    made = typed_columns(record(1)._replace(event=GENERATION))

    assert (made["generation"], made["members"]) == (7, ["m1", "m2"])
    assert (made["served"], made["removed"]) == (["r1", "r2"], ["m4"])
    assert (made["member_id"], made["grants"], made["offsets"]) == (None, None, None)


def test_an_event_of_another_class_does_not_inherit_columns() -> None:
    """Columns are found once for a class of events."""
    typed_columns(record(1)._replace(event=GENERATION))
    made = typed_columns(record(1)._replace(event=GroupDeleted()))

    assert made["generation"] is None
    assert made["members"] is None


def test_records_at_hand_make_the_file_that_decoding_makes(tmp_path: Path) -> None:
    write_segment(tmp_path / "decoded", ROWS, "c", "n")
    records = (decode_record(row.content) for row in ROWS)

    write_segment(tmp_path / "given", ROWS, "c", "n", records)

    (decoded,), (given,) = segments_in(tmp_path / "decoded"), segments_in(tmp_path / "given")
    for path in decoded.iterdir():
        assert (given / path.name).read_bytes() == path.read_bytes()


def test_a_copy_is_what_another_node_would_have_written(tmp_path: Path) -> None:
    """S22: its files hold the same records; its manifest names that node. No file is shared."""
    write_segment(tmp_path / "n1", ROWS, "c", "n1")
    write_segment(tmp_path / "n2", ROWS, "c", "n2")
    (mine,), (wanted,) = segments_in(tmp_path / "n1"), segments_in(tmp_path / "n2")

    write_copy(mine, tmp_path / "copy", "n2")

    (copy,) = segments_in(tmp_path / "copy")
    assert copy.name == wanted.name
    assert {p.name: p.read_bytes() for p in copy.iterdir()} == {
        p.name: p.read_bytes() for p in wanted.iterdir()
    }
    assert all(path.stat().st_nlink == 1 for path in copy.iterdir())
