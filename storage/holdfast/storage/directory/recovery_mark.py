"""What a data directory says of the restore that it comes from (S13): the file `recovery`.

It stands beside journal and state, so that a copy of the directory has it, too, and damage to them
does not remove it. A directory without it was never restored. Nodes of one cluster have the same
number: one that has a lower one is from before the restore. Knows the file alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.storage.disk.files import rename_durably, sync_path
from holdfast.storage.disk.records import RecordDamaged, pack_named, unpack_named
from holdfast.storage.errors import DirectoryRefused, Refusal

if TYPE_CHECKING:
    from pathlib import Path

RECOVERY_NAME: Final = "recovery"
_RECORD: Final = b"recovery"


class RecoveryMark(NamedTuple):
    """The recovery number that the cluster goes on with, and what was kept."""

    number: int = 0
    """0: this directory was never restored."""
    kept: int = 0
    """Index of the last entry that was kept."""


def read_mark(directory: Path) -> RecoveryMark:
    """Read the mark of a data directory. Raises DirectoryRefused if it is damaged, OSError."""
    path = directory / RECOVERY_NAME
    try:
        stored = path.read_bytes()
    except FileNotFoundError:
        return RecoveryMark()
    try:
        return _mark_of(unpack_named(_RECORD, stored))
    except RecordDamaged as error:
        raise DirectoryRefused(
            directory,
            Refusal.UNUSABLE,
            f"{path} is damaged ({error}), so nobody can tell from which restore this data is. "
            "Move the directory away, and start the node with --rebuild while the others serve",
        ) from error


def _mark_of(body: object) -> RecoveryMark:
    match body:
        case {"number": int(number), "kept": int(kept)}:
            return RecoveryMark(number, kept)
        case _:
            raise RecordDamaged(f"a recovery number was expected, not {body!r}")


def write_mark(directory: Path, mark: RecoveryMark) -> None:
    """Write the mark durably, whole or not at all."""
    beginning = directory / f"{RECOVERY_NAME}.new"
    beginning.write_bytes(pack_named(_RECORD, mark._asdict()))
    sync_path(beginning)
    rename_durably(beginning, directory / RECOVERY_NAME)
