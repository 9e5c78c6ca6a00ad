"""Directories that go on together: all are locked until all are made (S13, S19)."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from holdfast.runtime.backup.manifest import BackupFlawed
from holdfast.runtime.backup.seed import SeedState, check_targets, make_seeds, new_disks
from holdfast.storage.directory.data_directory import UNFINISHED, DataDirectory
from holdfast.storage.directory.recovery_mark import RecoveryMark, read_mark
from holdfast.storage.errors import DirectoryRefused, Refusal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Place:
    """A segment to seed from, and the directories of two nodes."""

    def __init__(self, path: Path) -> None:
        self.segment = path / "backup" / "s1"
        self.segment.mkdir(parents=True)
        (self.segment / "manifest.json").write_text("{}")
        self.sums: dict[Path, str] | None = None
        self.targets = {"n1": path / "n1", "n2": path / "n2"}

    def make(self, number: int, before_the_end: Callable[[], None] = lambda: None) -> None:
        mark = RecoveryMark(number, 0)
        seed = SeedState("c", 0, 0, None, (self.segment,), mark, sums=self.sums)
        make_seeds(seed, self.targets, new_disks(self.targets), before_the_end)

    def check_made_with(self, number: int) -> None:
        for path in self.targets.values():
            assert read_mark(path).number == number
            assert (path / "segments" / "s1" / "manifest.json").exists()
            assert not (path / UNFINISHED).exists()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_second_restore_to_the_same_directories_changes_nothing_in_them(place: Place) -> None:
    """Else nodes would begin with disks of two restores, or without their history."""

    def again() -> None:
        with pytest.raises(DirectoryRefused) as refused:
            place.make(2)
        assert refused.value.refusal is Refusal.IN_USE

    place.make(1, again)

    place.check_made_with(1)


def test_a_directory_that_holds_data_is_no_directory_in_use(place: Place) -> None:
    """It is refused for what is in it: nobody has to look for a process that uses it."""
    place.make(1, lambda: None)

    with pytest.raises(DirectoryRefused, match=r"refused \(not empty\): it holds data") as refused:
        place.make(2)
    assert refused.value.refusal is Refusal.NOT_EMPTY


def test_s19_no_node_starts_on_a_directory_before_all_are_made(place: Place) -> None:
    """A supervisor may start it again and again; it would empty what is unfinished."""

    def start() -> None:
        for node, path in place.targets.items():
            with pytest.raises(DirectoryRefused) as refused:
                DataDirectory(path, cluster_id="c", node_id=node, bootstrap=True)
            assert refused.value.refusal is Refusal.IN_USE

    place.make(1, start)

    place.check_made_with(1)


def test_what_an_interrupted_restore_has_left_is_made_anew(place: Place) -> None:
    def cut_off() -> None:
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space"):
        place.make(1, cut_off)
    assert all((path / UNFINISHED).exists() for path in place.targets.values())

    place.make(2)

    place.check_made_with(2)


def test_what_was_changed_after_it_was_verified_is_not_restored(place: Place) -> None:
    """Verifying a large backup takes long, and it lies where others may write."""
    file = place.segment / "manifest.json"
    place.sums = {file: hashlib.sha256(b"{}").hexdigest()}
    file.write_text("[]")

    with pytest.raises(BackupFlawed, match="changed after it was verified"):
        place.make(1)

    assert all((path / UNFINISHED).exists() for path in place.targets.values())


def test_a_file_that_was_not_verified_is_not_restored(place: Place) -> None:
    place.sums = {place.segment / "manifest.json": hashlib.sha256(b"{}").hexdigest()}
    (place.segment / "more").symlink_to("/etc/hostname")

    place.make(1)

    for path in place.targets.values():
        assert [each.name for each in (path / "segments" / "s1").iterdir()] == ["manifest.json"]


@pytest.mark.parametrize("second", ["n1", "n1/data", "n1/../n1/a/b"])
def test_no_directory_is_another_nodes_or_lies_in_it(second: str, tmp_path: Path) -> None:
    """S19: when one node is made anew, its directory goes, and nobody else's with it."""
    targets = {"n1": tmp_path / "n1", "n2": tmp_path / second}
    for each in (targets, dict(reversed(targets.items()))):
        with pytest.raises(DirectoryRefused) as refused:
            check_targets(each)
        assert refused.value.refusal is Refusal.UNUSABLE
    check_targets({"n1": tmp_path / "n", "n2": tmp_path / "n2"})
