"""The lock of a backup's directory: who writes there, or restores it, is alone (S13)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.runtime.backup.folder import BackupFolder, restoring
from holdfast.runtime.backup.manifest import BackupFlawed

if TYPE_CHECKING:
    from pathlib import Path


def test_s13_two_restores_of_a_backup_at_once_do_not_get_the_same_number(tmp_path: Path) -> None:
    """The number is read, chosen and noted by one of them at a time."""
    with restoring(tmp_path), pytest.raises(BackupFlawed, match="restores it"), restoring(tmp_path):
        pass
    with restoring(tmp_path):
        pass


def test_a_backup_is_not_replaced_while_it_is_restored(tmp_path: Path) -> None:
    """Its files would be removed under the restore."""
    with restoring(tmp_path), pytest.raises(BackupFlawed, match="restores it"):
        BackupFolder(tmp_path)
    with (
        BackupFolder(tmp_path),
        pytest.raises(BackupFlawed, match="writes to"),
        restoring(tmp_path),
    ):
        pass


def test_a_backup_on_a_disk_that_cannot_be_written_is_not_locked(tmp_path: Path) -> None:
    with restoring(tmp_path / "absent"):
        pass
