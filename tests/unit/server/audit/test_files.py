"""The audit's files: bounded whatever is written, and read again after any end of the node."""

from __future__ import annotations

import errno
import json
import stat
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.server.audit.files import FOLDER, SHARES, AuditFiles, read

if TYPE_CHECKING:
    from pathlib import Path


def record(number: int) -> dict[str, Any]:
    return {"at_ms": number, "kind": "denied", "principal": "svc", "why": "x" * 50}


def numbers(data_directory: Path) -> list[int]:
    return [each["at_ms"] for each in read(data_directory)]


def test_what_was_written_is_read_in_its_order_also_by_the_next_start(tmp_path: Path) -> None:
    for start in (0, 3):
        files = AuditFiles(tmp_path / FOLDER, 1 << 20)
        files.append(map(record, range(start, start + 2)))
        files.append([record(start + 2)])

    assert numbers(tmp_path) == [0, 1, 2, 3, 4, 5]


def test_all_files_together_keep_to_the_bound_and_the_oldest_records_go(tmp_path: Path) -> None:
    most, written = 80_000, 2_000
    files = AuditFiles(tmp_path / FOLDER, most)
    for number in range(0, written, 10):
        files.append(map(record, range(number, number + 10)))
        assert sum(each.stat().st_size for each in (tmp_path / FOLDER).iterdir()) <= most

    kept = numbers(tmp_path)
    assert kept == list(range(written - len(kept), written))
    assert len(kept) * len(json.dumps(record(0))) > most * 0.8, "most of the room is used"
    assert len(list((tmp_path / FOLDER).iterdir())) == SHARES


def test_a_line_that_a_crash_cut_off_costs_no_other_record(tmp_path: Path) -> None:
    files = AuditFiles(tmp_path / FOLDER, 1 << 20)
    files.append([record(1), record(2)])
    (file,) = (tmp_path / FOLDER).iterdir()
    file.write_bytes(file.read_bytes()[:-5])

    AuditFiles(tmp_path / FOLDER, 1 << 20).append([record(3)])

    assert numbers(tmp_path) == [1, 3]


def test_a_dozen_starts_keep_all_records_where_there_is_room(tmp_path: Path) -> None:
    for start in range(12):
        AuditFiles(tmp_path / FOLDER, 1 << 20).append([record(start)])

    assert numbers(tmp_path) == list(range(12))


def test_a_full_disk_keeps_what_was_written_before_however_often_it_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = AuditFiles(tmp_path / FOLDER, 80_000)
    files.append(map(record, range(600)))  # six of eight files

    def full(_files: AuditFiles, lines: list[bytes]) -> None:
        if lines:
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(AuditFiles, "_write", full)
        for _second in range(20):
            with pytest.raises(OSError, match="No space"):
                files.append(map(record, range(1_000, 1_200)))
    files.append([record(2_000)])

    assert numbers(tmp_path) == [*range(600), 2_000]


def test_a_disk_that_takes_half_a_line_costs_no_other_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = AuditFiles(tmp_path / FOLDER, 1 << 20)
    write = AuditFiles._write

    def half(self: AuditFiles, lines: list[bytes]) -> None:
        write(self, [b"".join(lines)[:-9]])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(AuditFiles, "_write", half)
        with pytest.raises(OSError, match="No space"):
            files.append([record(1), record(2)])
    files.append([record(3)])

    assert numbers(tmp_path) == [1, 3]


def test_a_smaller_bound_holds_from_the_next_file_on(tmp_path: Path) -> None:
    AuditFiles(tmp_path / FOLDER, 80_000).append(map(record, range(700)))
    files = AuditFiles(tmp_path / FOLDER, 16_000)
    files.append([record(701)])

    assert sum(each.stat().st_size for each in (tmp_path / FOLDER).iterdir()) <= 16_000
    assert numbers(tmp_path)[-1] == 701


def test_only_the_owner_of_the_node_reads_it(tmp_path: Path) -> None:
    files = AuditFiles(tmp_path / FOLDER, 1 << 20)
    files.append([record(1)])

    (file,) = (tmp_path / FOLDER).iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_folder_that_cannot_be_written_is_told_and_works_when_it_is_mended(
    tmp_path: Path,
) -> None:
    (tmp_path / FOLDER).write_text("no folder")
    files = AuditFiles(tmp_path / FOLDER, 1 << 20)
    with pytest.raises(OSError, match="audit"):
        files.append([record(1)])

    (tmp_path / FOLDER).unlink()
    files.append([record(2)])

    assert numbers(tmp_path) == [2]


def test_a_node_that_never_wrote_has_none(tmp_path: Path) -> None:
    assert numbers(tmp_path) == []
