"""The manifest: written last, whole or not at all, and any change in it is found."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.runtime.backup.manifest import (
    FORMAT_VERSION,
    MANIFEST,
    BackupFlawed,
    BackupManifest,
    StoredFile,
    load_manifest,
    write_manifest,
)

if TYPE_CHECKING:
    from pathlib import Path

WRITTEN = BackupManifest(
    format_version=FORMAT_VERSION,
    cluster_id="c",
    node="n1",
    version="1",
    index=7,
    term=2,
    digest="aa",
    chain="bb",
    log_time_ms=3,
    wall_time_ms=4,
    recovery_number=5,
    first=(1, 0),
    state=StoredFile("state-7-x", 10, "cc"),
    segments=("segments-0/a",),
    files=(StoredFile("segments-0/a/manifest.json", 1, "dd"),),
)


CUT_OFF = replace(WRITTEN, checkpoint=StoredFile("checkpoint-1.0.checkpoint", 5, "ee"))


@pytest.mark.parametrize("manifest", [WRITTEN, CUT_OFF])
def test_what_was_written_is_read(tmp_path: Path, manifest: BackupManifest) -> None:
    write_manifest(tmp_path, manifest)
    assert load_manifest(tmp_path) == manifest
    assert [file.name for file in tmp_path.iterdir()] == [MANIFEST]


def test_a_flip_of_any_byte_that_says_something_is_found(tmp_path: Path) -> None:
    write_manifest(tmp_path, WRITTEN)
    path = tmp_path / MANIFEST
    sound = path.read_bytes()
    for place, byte in enumerate(sound):
        if chr(byte).isspace():
            continue
        flipped = bytearray(sound)
        flipped[place] ^= 0x04
        path.write_bytes(flipped)
        with pytest.raises(BackupFlawed):
            load_manifest(tmp_path)


def test_a_manifest_that_is_cut_off_or_absent_is_no_backup(tmp_path: Path) -> None:
    with pytest.raises(BackupFlawed, match="no finished backup"):
        load_manifest(tmp_path)
    write_manifest(tmp_path, WRITTEN)
    path = tmp_path / MANIFEST
    content = path.read_bytes()
    for size in range(len(content) - 1):  # the last byte is the line's end
        path.write_bytes(content[:size])
        with pytest.raises(BackupFlawed, match="is damaged"):
            load_manifest(tmp_path)


def test_a_newer_format_is_refused_by_its_name(tmp_path: Path) -> None:
    write_manifest(tmp_path, replace(WRITTEN, format_version=FORMAT_VERSION + 1))
    with pytest.raises(BackupFlawed, match=f"format version {FORMAT_VERSION + 1}"):
        load_manifest(tmp_path)


@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "segments-0/../../x"])
def test_a_manifest_names_no_file_outside_of_the_backup(tmp_path: Path, name: str) -> None:
    outside = StoredFile(name, 1, "ee")
    write_manifest(tmp_path, replace(WRITTEN, files=(outside,)))
    assert json.loads((tmp_path / MANIFEST).read_text())["files"][0]["name"] == name
    with pytest.raises(BackupFlawed, match="outside of the backup"):
        load_manifest(tmp_path)


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ({"wall_time_ms": "x"}, "wall_time_ms is 'x'"),
        ({"wall_time_ms": 10**30}, "wall_time_ms is 1000"),
        ({"wall_time_ms": 10**15}, "after the year 9999"),
        ({"wall_time_ms": -1}, "wall_time_ms is -1"),
        ({"log_time_ms": None}, "log_time_ms is None"),
        ({"index": True}, "index is True"),
        ({"recovery_number": 1.0}, "recovery_number is 1.0"),
        ({"segments": ("segments-0/a", "segments-0/a")}, "names the segment 'segments-0/a' twice"),
        ({"files": WRITTEN.files * 2}, "names the file 'segments-0/a/manifest.json' twice"),
    ],
)
def test_what_no_backup_says_is_refused_though_its_sum_holds(
    tmp_path: Path, broken: dict[str, Any], why: str
) -> None:
    """Whoever writes a manifest can sum it; a restore must not make half of the directories."""
    write_manifest(tmp_path, replace(WRITTEN, **broken))
    with pytest.raises(BackupFlawed, match=why):
        load_manifest(tmp_path)
