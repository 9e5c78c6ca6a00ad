"""Make the data directories of nodes that go on together from one state (S13, S19).

All are made at once: each disk gets a new incarnation, and each knows those of all, as after a
bootstrap. So they are members from the start, and a disk from before is in nobody's list. The
recovery mark makes the first leader raise the recovery number, and every node refuse peers from
before. A directory that was not finished holds the mark `unfinished`, and no node starts from it.
Knows storage; no network.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from holdfast.runtime.backup.manifest import CHECKPOINT_PREFIX, BackupFlawed
from holdfast.storage.directory.data_directory import (
    UNFINISHED,
    DataDirectory,
    clear_unfinished,
    is_empty,
)
from holdfast.storage.directory.recovery_mark import RecoveryMark, write_mark
from holdfast.storage.disk.files import sync_path
from holdfast.storage.errors import DirectoryRefused, Refusal
from holdfast.storage.journal.journal import (
    Entry,
    HardState,
    Identity,
    JournalBatch,
    NotedMembership,
)
from holdfast.storage.journal.tailed_journal import open_journal
from holdfast.storage.state.state_install import install_from
from holdfast.storage.state.state_store import StateStore

_READ_BYTES: Final = 256 * 1024
MEMBER: Final = "member"
"""The stage of a disk that may vote (S19)."""

Disks = Mapping[str, str]
"""The name of each node's disk: its incarnation."""
Sums = Mapping[Path, str] | None
"""SHA-256 of files that were verified; None: nothing was."""


@dataclass(frozen=True, slots=True)
class SeedState:
    """What all of the nodes begin with."""

    cluster_id: str
    index: int
    term: int
    state: Path | None
    """The file of the state at that entry, verified; None: the log begins at its first entry."""
    segments: tuple[Path, ...]
    mark: RecoveryMark
    entries: tuple[Entry, ...] = ()
    """The log behind that entry."""
    newest_term: int = 0
    """The newest term that was heard of, if it is above that of the last entry."""
    commit_index: int = 0
    """As far as that is known; at least `index`."""
    checkpoints: tuple[Path, ...] = ()
    """What stands for the history before the segments, if some was cut off (S24)."""
    membership: NotedMembership | None = None
    """To be noted beside the log, if the log says which nodes there are (S25 a)."""
    sums: Sums = None
    """Of each file that belongs to it. A backup may be changed while it is copied."""


def check_targets(targets: Mapping[str, Path]) -> None:
    """Refuse a directory that holds data: nothing is ever overwritten. Raises DirectoryRefused."""
    _check_apart(targets)
    for path in targets.values():
        if not is_empty(path) and not (path / UNFINISHED).exists():
            raise DirectoryRefused(
                path,
                Refusal.NOT_EMPTY,
                "it holds data, and nothing is ever overwritten. See to it that no node uses it, "
                "move the directory away, and give the command again",
            )


def _check_apart(targets: Mapping[str, Path]) -> None:
    """Refuse a directory that is another node's as well, or lies in it."""
    taken = {path.resolve(): node for node, path in targets.items()}
    for node, path in targets.items():
        if taken[path.resolve()] != node:
            raise DirectoryRefused(
                path, Refusal.UNUSABLE, "two nodes cannot share it. Name one for each"
            )
        if outer := next((taken[each] for each in path.resolve().parents if each in taken), ""):
            raise DirectoryRefused(
                path,
                Refusal.UNUSABLE,
                f"it lies in the directory of {outer}, and would go with it. Name one beside it",
            )


def new_disks(nodes: Iterable[str]) -> Disks:
    """Name the disks of these nodes anew."""
    return {node: secrets.token_hex(8) for node in nodes}


def make_seeds(
    seed: SeedState,
    targets: Mapping[str, Path],
    disks: Disks,
    before_the_end: Callable[[], None] = lambda: None,
) -> None:
    """Make a data directory for each node. Raises BackupFlawed, StorageError, OSError.

    `disks`: of all nodes that go on together, from `new_disks`. `before_the_end`: called when all
    is made and no node would start from it yet. What was made is not removed if that fails; the
    same call makes it anew.
    """
    check_targets(targets)
    with ExitStack() as locked:  # until all are made: a node or another restore may look at them
        opened = {
            node: locked.enter_context(_opened(seed, node, path)) for node, path in targets.items()
        }
        for node, directory in opened.items():
            _make(seed, node, directory, disks)
        before_the_end()
        for path in targets.values():
            (path / UNFINISHED).unlink()
            sync_path(path)


def _opened(seed: SeedState, node: str, path: Path) -> DataDirectory:
    """Lock and lay out a target; what an earlier restore has left unfinished there goes first."""
    clear_unfinished(path)
    directory = DataDirectory(
        path, cluster_id=seed.cluster_id, node_id=node, bootstrap=True, disk_reserve_bytes=0
    )
    (path / UNFINISHED).touch()
    sync_path(path)
    return directory


def _make(seed: SeedState, node: str, directory: DataDirectory, disks: Disks) -> None:
    write_mark(directory.path, seed.mark)
    if seed.state is not None:
        _install_state(seed.state, directory.state_path, seed.sums)
    _begin_journal(seed, directory.journal_path, node, disks)
    for segment in seed.segments:
        _copy_segment(segment, directory.segments_path / segment.name, seed.sums)
    for checkpoint in seed.checkpoints:
        target = directory.segments_path / checkpoint.name.removeprefix(CHECKPOINT_PREFIX)
        _copy(checkpoint, target, seed.sums)
    sync_path(directory.segments_path)


def _install_state(stream: Path, path: Path, sums: Sums) -> None:
    store = StateStore(path)
    try:
        install_from(store, _chunks(stream, sums))
    finally:
        store.close()


def identity_of(cluster_id: str, node: str, disks: Disks) -> Identity:
    """Return the identity of a node's new disk: a member, that knows the disks of all."""
    return Identity(cluster_id, node, disks[node], MEMBER, tuple(sorted(disks.items())))


def _begin_journal(seed: SeedState, path: Path, node: str, disks: Disks) -> None:
    """Begin the log behind the state, as after the install of a snapshot."""
    journal = open_journal(path)
    try:
        journal.load()
        last_term = seed.entries[-1].term if seed.entries else seed.term
        journal.commit(
            JournalBatch(
                reset_to=(seed.index, seed.term),
                append=seed.entries,
                hard_state=HardState(max(last_term, seed.newest_term)),
                commit_index=max(seed.index, seed.commit_index),
                identity=identity_of(seed.cluster_id, node, disks),
                membership=seed.membership,
            )
        )
    finally:
        journal.close()


def _copy_segment(source: Path, target: Path, sums: Sums) -> None:
    target.mkdir(mode=0o750)
    for file in _manifest_last(source.iterdir()):
        if sums is not None and file not in sums:
            continue  # nobody has verified it
        _copy(file, target / file.name, sums)
    sync_path(target)


def _copy(source: Path, target: Path, sums: Sums) -> None:
    with target.open("xb") as copy:
        copy.writelines(_chunks(source, sums))
    sync_path(target)


def _manifest_last(files: Iterable[Path]) -> list[Path]:
    return sorted(files, key=lambda file: (file.suffix == ".json", file.name))


def _chunks(path: Path, sums: Sums) -> Iterator[bytes]:
    """Read a file; raises BackupFlawed at its end if it is not as it was verified."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_READ_BYTES):
            digest.update(chunk)
            yield chunk
    if sums is not None and digest.hexdigest() != sums[path]:
        raise BackupFlawed(
            f"{path} was changed after it was verified. No node starts from what was made: find "
            "what writes there, and restore again, from a copy if it is this backup"
        )
