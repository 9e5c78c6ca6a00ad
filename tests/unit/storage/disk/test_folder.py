"""The file operations of the journal's tail, on the file system."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from holdfast.storage.disk.folder import Folder


def test_a_file_is_made_of_zeros_written_in_place_and_read(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.create("a", 3_000_000)
    file = folder.open("a")
    file.write(10, b"ten")
    file.sync()
    file.close()

    assert folder.names() == ["a"]
    assert folder.read("a") == (bytes(10) + b"ten").ljust(3_000_000, b"\0")
    assert (tmp_path / "a").stat().st_blocks * 512 >= 3_000_000, "its room is taken, not promised"


def test_a_file_that_is_made_anew_is_empty_again(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old" * 100)
    Folder(tmp_path).create("a", 10)

    assert Folder(tmp_path).read("a") == bytes(10)


def test_an_open_file_keeps_its_place_under_its_new_name(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.create("a", 10)
    file = folder.open("a")
    folder.rename("a", "b")
    file.write(20, b"grown")
    file.close()

    assert folder.read("b") == bytes(20) + b"grown"
    folder.remove("b")
    assert folder.names() == []


def test_what_the_kernel_takes_in_parts_is_written_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: pwrite(fd, data[:7], at))
    folder = Folder(tmp_path)
    folder.create("a", 20)
    file = folder.open("a")
    file.write(1, b"0123456789abcdef")
    file.close()

    assert folder.read("a") == b"\x000123456789abcdef\0\0\0"


def test_a_disk_without_room_says_so(tmp_path: Path) -> None:
    (tmp_path / "full").symlink_to("/dev/full")
    file = Folder(tmp_path).open("full")

    with pytest.raises(OSError, match="No space") as failed:
        file.write(0, b"x")

    file.close()
    assert failed.value.errno == errno.ENOSPC
