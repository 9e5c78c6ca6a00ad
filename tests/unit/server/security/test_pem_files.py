"""A PEM file is replaced whole, and never readable to more people than before."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from holdfast.server.security import pem_files
from holdfast.server.security.pem_files import write_pem

if TYPE_CHECKING:
    from pathlib import Path


def mode(path: Path) -> int:
    """The permissions of a file."""
    return stat.S_IMODE(path.stat().st_mode)


def test_a_secret_is_its_owners_alone_even_where_it_was_not(tmp_path: Path) -> None:
    open_to_all = tmp_path / "key.pem"
    open_to_all.write_bytes(b"old")
    open_to_all.chmod(0o644)
    write_pem(open_to_all, b"new", secret=True)
    write_pem(tmp_path / "ca.pem", b"ca")

    assert (mode(open_to_all), mode(tmp_path / "ca.pem")) == (0o600, 0o644)


def test_a_secret_is_never_readable_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mode 0600 is there before the first byte is."""
    seen: list[tuple[int, int]] = []

    def looked(descriptor: int, how: str, *, closefd: bool) -> object:
        found = os.fstat(descriptor)
        seen.append((stat.S_IMODE(found.st_mode), found.st_size))
        return open(descriptor, how, closefd=closefd)

    monkeypatch.setattr(pem_files, "open", looked, raising=False)
    write_pem(tmp_path / "key.pem", b"key", secret=True)

    assert seen == [(0o600, 0)]


def test_what_is_replaced_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    path.write_bytes(b"old")
    path.chmod(0o640)
    write_pem(path, b"new")

    assert (path.read_bytes(), mode(path)) == (b"new", 0o640)


def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ca.pem"
    write_pem(path, b"old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_pem(path, b"new")

    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == b"old"
