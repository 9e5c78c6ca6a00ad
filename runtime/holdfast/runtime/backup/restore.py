"""Restore a backup: verify it, choose the recovery number, make the nodes' directories (S13).

The number has to be above every one that the cluster ever had, also in restores from other backups,
of which nobody knows here. So the operator says it (ADR 45); what this backup knows, and what each
restore notes beside it, is the least. Knows files only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from holdfast.runtime.backup.folder import RESTORED, restoring
from holdfast.runtime.backup.manifest import BackupFlawed, BackupManifest
from holdfast.runtime.backup.recovery_numbers import NumberRefused, Wanted, next_above
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
    noted: bool
    """Whether the number could be noted beside the backup."""


def restore(
    directory: Path, manifest: BackupManifest, targets: Mapping[str, Path], wanted: Wanted
) -> Restored:
    """Restore a backup to a data directory for each node. `wanted`: the recovery number.

    Raises BackupFlawed, StorageError or OSError; no node starts from what was made until then.
    """
    check_targets(targets)
    with restoring(directory):
        chosen = _chosen(directory, manifest, wanted)
        return _restore(directory, manifest, targets, chosen)


def _restore(
    directory: Path, manifest: BackupManifest, targets: Mapping[str, Path], chosen: int
) -> Restored:
    """Note the number when all is made and no node would start from it yet.

    Earlier, a restore that is interrupted would need another number to be repeated; later, a node
    could start with a number that is not noted.
    """
    found = verify_backup(directory, manifest)
    if found.flaws:
        raise BackupFlawed(
            f"the backup in {directory} is NOT as it was written, {len(found.flaws)} flaws, the "
            f"first: {found.flaws[0]}. Nothing was restored: use another backup, or a copy of it"
        )
    noted: list[bool] = []
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
    make_seeds(seed, targets, new_disks(targets), lambda: noted.append(_note(directory, chosen)))
    return Restored(chosen, found.records, noted=all(noted))


def _chosen(directory: Path, manifest: BackupManifest, wanted: Wanted) -> int:
    """Return the recovery number to go on with. Raises BackupFlawed if nobody has said it (S13)."""
    noted = _noted(directory)
    last = max(manifest.recovery_number, noted)
    if not wanted.said:
        raise BackupFlawed(_unsaid(directory, manifest, noted))
    try:
        return next_above(last, wanted)
    except NumberRefused as error:
        raise BackupFlawed(
            f"{error}. The backup in {directory} has {manifest.recovery_number}, and "
            f"{_restored_as(noted)}. Nothing was restored"
        ) from error


def _restored_as(noted: int) -> str:
    return f"was restored from there as {noted}" if noted else "was never restored from there"


def _unsaid(directory: Path, manifest: BackupManifest, noted: int) -> str:
    """Say why a number is asked for, what is known, and where to find the rest."""
    following = max(manifest.recovery_number, noted) + 1
    return (
        "say with which recovery number the cluster goes on: one above every one that it ever had, "
        "or fencing tokens are given out twice and stores refuse the new owners. The backup in "
        f"{directory} has {manifest.recovery_number}, and {_restored_as(noted)}; of restores from "
        "other backups or copies, and of recoveries, it knows nothing. The highest number is "
        "shown by `holdfast cluster status --json` (recovery_number) while a cluster still "
        "answers, and by `holdfast log verify --node-dir DIR` for each old data directory; a store "
        "has it in the highest fencing token (give that: --above-token TOKEN). If this cluster was "
        f"never restored or recovered in another way, give --recovery-number {following}. Nothing "
        "was restored"
    )


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


def _note(directory: Path, number: int) -> bool:
    """Note the number beside the backup; return whether that was possible."""
    beginning = directory / f"{RESTORED}.new"
    try:
        beginning.write_text(f"{number}\n")
        sync_path(beginning)
        rename_durably(beginning, directory / RESTORED)
    except OSError:
        return False
    return True
