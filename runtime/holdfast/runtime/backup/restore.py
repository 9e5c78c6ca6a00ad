"""Restore a backup: verify it, choose the recovery number, make the nodes' directories (S13).

The number has to be above every one that the cluster ever had, also after this backup was taken and
in clusters that were restored from it before. So each restore notes its number beside the backup,
and one that cannot note it is refused unless the operator names the number. Knows files only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from holdfast.coordinator.model.ids import RECOVERY_NUMBER_MAX
from holdfast.runtime.backup.folder import RESTORED, restoring
from holdfast.runtime.backup.manifest import BackupFlawed, BackupManifest
from holdfast.runtime.backup.seed import SeedState, check_targets, make_seeds, new_disks
from holdfast.runtime.backup.verify import verify_backup
from holdfast.storage.directory.recovery_mark import RecoveryMark
from holdfast.storage.disk.files import rename_durably, sync_path

_NUMBER_BYTES_MAX: Final = 32


@dataclass(frozen=True, slots=True)
class Restored:
    """What was done."""

    recovery_number: int
    records: int
    """Records of the history that were verified."""


def restore(
    directory: Path, manifest: BackupManifest, targets: Mapping[str, Path], number: int | None
) -> Restored:
    """Restore a backup to a data directory for each node. `number`: the recovery number, if named.

    Raises BackupFlawed, StorageError or OSError; no node starts from what was made until then.
    """
    check_targets(targets)
    with restoring(directory):
        return _restore(directory, manifest, targets, number)


def _restore(
    directory: Path, manifest: BackupManifest, targets: Mapping[str, Path], number: int | None
) -> Restored:
    found = verify_backup(directory, manifest)
    if found.flaws:
        raise BackupFlawed(
            f"the backup in {directory} is NOT as it was written, {len(found.flaws)} flaws, the "
            f"first: {found.flaws[0]}. Nothing was restored: use another backup, or a copy of it"
        )
    chosen = _chosen(directory, manifest, number)
    _note(directory, chosen, named=number is not None)
    seed = SeedState(
        manifest.cluster_id,
        manifest.index,
        manifest.term,
        directory / manifest.state.name,
        tuple(directory / name for name in manifest.segments),
        RecoveryMark(chosen, manifest.index),
        checkpoints=(directory / manifest.checkpoint.name,) if manifest.checkpoint else (),
        sums={directory / file.name: file.sha256 for file in manifest.all_files()},
    )
    make_seeds(seed, targets, new_disks(targets))
    return Restored(chosen, found.records)


def _chosen(directory: Path, manifest: BackupManifest, number: int | None) -> int:
    """Return the recovery number to go on with. Raises BackupFlawed if it is not above the last."""
    last = max(manifest.recovery_number, _noted(directory))
    chosen = last + 1 if number is None else number
    if chosen <= last:
        raise BackupFlawed(
            f"recovery number {chosen} was used before: this backup, or a restore of it, has "
            f"{last}. Name a higher one, or leave the option out"
        )
    if chosen > RECOVERY_NUMBER_MAX:
        raise BackupFlawed(f"a recovery number is at most {RECOVERY_NUMBER_MAX}, not {chosen}")
    return chosen


def _noted(directory: Path) -> int:
    """Return the number of the last restore of this backup; 0: there was none."""
    try:
        with (directory / RESTORED).open("rb") as file:
            return int(file.read(_NUMBER_BYTES_MAX))
    except FileNotFoundError:
        return 0
    except ValueError as error:
        raise BackupFlawed(
            f"{directory / RESTORED} is damaged, so the recovery number of the last restore is not "
            "known. Write the highest number that the cluster ever had into it"
        ) from error


def _note(directory: Path, number: int, *, named: bool) -> None:
    """Note the number before anything is made with it."""
    beginning = directory / f"{RESTORED}.new"
    try:
        beginning.write_text(f"{number}\n")
        sync_path(beginning)
        rename_durably(beginning, directory / RESTORED)
    except OSError as error:
        if named:
            return
        raise BackupFlawed(
            f"cannot note in {directory} that it is restored with recovery number {number} "
            f"({error.strerror or error}), and the next restore must not use that number again. "
            "Copy the backup to where it can be written, or name the number: --recovery-number, "
            "above every one that the cluster ever had"
        ) from error
