"""Verify a backup: read every byte, and compare what it says with what the manifest says.

Files by size and SHA-256; records by their checksums; the state by its digest, made anew (S3); the
history by block digests, positions, counts and hash chains, up to the chain's head in the manifest.
Two independent ways lead to that head: the state's own record of it, and the records of the
history. Reads only. Knows no network and no node.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from holdfast.coordinator.model.ids import Position
from holdfast.runtime.backup.folder import sum_file
from holdfast.runtime.backup.manifest import BackupManifest, StoredFile
from holdfast.runtime.backup.stored_state import StateFileFlawed, StoredState, read_state
from holdfast.storage.segments.checkpoint import CheckpointFlawed, read_checkpoint
from holdfast.storage.segments.log_check import FROM_THE_FIRST, LogStart, check_node


@dataclass(frozen=True, slots=True)
class Verified:
    """What a verification found; `flaws` are sentences, and there are none in a sound backup."""

    flaws: tuple[str, ...]
    records: int = 0
    """Records of the history, each checked."""
    whole: bool = False
    """Whether the history reaches back to the first record of the cluster, or to the checkpoint."""
    state: StoredState | None = None
    cut: Position | None = None
    """The checkpoint with which the history begins."""


def verify_backup(directory: Path, manifest: BackupManifest) -> Verified:
    """Verify all files of a backup."""
    flaws = [flaw for file in manifest.all_files() for flaw in _file_flaws(directory, file)]
    if flaws:
        return Verified(tuple(flaws))
    try:
        state = read_state(directory / manifest.state.name)
    except (StateFileFlawed, OSError) as error:
        return Verified((f"{manifest.state.name} cannot be read: {error}",))
    flaws = list(_state_flaws(manifest, state))
    segments = [directory / name for name in manifest.segments]
    start, wrong = _start(directory, manifest, state)
    log = check_node("the history", segments, state.events, start)
    flaws += wrong
    flaws += map(str, log.flaws)
    if log.head is not None and log.head.hex() != manifest.chain:
        flaws.append(
            f"the hash chain over the history ends in {log.head.hex()[:16]}, and the manifest says "
            f"{manifest.chain[:16]}: records at its end are missing or were changed"
        )
    if log.hashes and min(log.hashes) != manifest.first:
        first = min(log.hashes)
        flaws.append(f"the history begins at {_said(first)}, not at {_said(manifest.first)}")
    return Verified(tuple(flaws), len(log.hashes), log.whole, state, log.cut)


def _start(
    directory: Path, manifest: BackupManifest, found: StoredState
) -> tuple[LogStart, list[str]]:
    """Return where the history begins, and what is wrong with the checkpoint before it (S24)."""
    cut = found.image.state.history_cut
    if manifest.checkpoint is None:
        return FROM_THE_FIRST, ["the checkpoint of the cut history is missing"] if cut else []
    try:
        checkpoint = read_checkpoint(directory / manifest.checkpoint.name)
    except (CheckpointFlawed, OSError) as error:
        return FROM_THE_FIRST, [str(error)]
    if cut is None or (checkpoint.last, checkpoint.digest) != (cut.last, cut.digest):
        said = "no cut" if cut is None else f"{_said(cut.last)}, digest {cut.digest.hex()[:16]}"
        text = f"at {_said(checkpoint.last)}, digest {checkpoint.digest.hex()[:16]}"
        return checkpoint.begin(), [f"the checkpoint is {text}, and the state tells {said}"]
    return checkpoint.begin(), []


def _file_flaws(directory: Path, file: StoredFile) -> Iterator[str]:
    """Compare a file with the manifest."""
    try:
        size, digest = sum_file(directory / file.name)
    except FileNotFoundError:
        yield f"{file.name} is missing"
        return
    except OSError as error:
        yield f"{file.name} cannot be read: {error.strerror or error}"
        return
    if size != file.size:
        yield f"{file.name} has {size} bytes, and the manifest says {file.size}"
    elif digest != file.sha256:
        yield f"{file.name} is not as it was written: its SHA-256 is not the manifest's"


def _state_flaws(manifest: BackupManifest, found: StoredState) -> Iterator[str]:
    state, meta = found.image.state, found.meta
    for what, told, said in (
        ("cluster", state.cluster_id, manifest.cluster_id),
        ("last entry", meta.index, manifest.index),
        ("term", meta.term, manifest.term),
        ("digest", found.digest.hex(), manifest.digest),
        ("log time in ms", meta.log_time_ms, manifest.log_time_ms),
        ("hash chain", meta.chain.hex(), manifest.chain),
        ("recovery number", state.recovery_number, manifest.recovery_number),
    ):
        if told != said:
            yield f"{manifest.state.name}: its {what} is {told}, and the manifest says {said}"


def _said(position: Position | tuple[int, int] | None) -> str:
    return "no record" if position is None else f"{position[0]}.{position[1]}"
