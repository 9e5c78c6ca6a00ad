"""Make the data directories of nodes that go on together from one state (S13, S19).

All are made at once: each disk gets a new incarnation, and each knows those of all, as after a
bootstrap. So they are members from the start, and a disk from before is in nobody's list. The
recovery mark makes the first leader raise the recovery number, and every node refuse peers from
before. A directory that was not finished holds the mark `unfinished`, and no node starts from it.
Knows storage; no network.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from holdfast.storage.directory.data_directory import (
    SEGMENTS_FOLDER,
    UNFINISHED,
    DataDirectory,
    is_empty,
)
from holdfast.storage.directory.recovery_mark import RecoveryMark, write_mark
from holdfast.storage.disk.files import remove_tree, sync_path
from holdfast.storage.errors import DirectoryRefused, Refusal
from holdfast.storage.journal.journal import Entry, HardState, Identity, JournalBatch
from holdfast.storage.journal.tailed_journal import open_journal
from holdfast.storage.state.state_install import install_from
from holdfast.storage.state.state_store import StateStore

_READ_BYTES: Final = 256 * 1024
MEMBER: Final = "member"
"""The stage of a disk that may vote (S19)."""

Disks = Mapping[str, str]
"""The name of each node's disk: its incarnation."""


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


def check_targets(targets: Mapping[str, Path]) -> None:
    """Refuse a directory that holds data: nothing is ever overwritten. Raises DirectoryRefused."""
    if len({path.resolve() for path in targets.values()}) < len(targets):
        first = next(iter(targets.values()))
        raise DirectoryRefused(
            first, Refusal.IN_USE, "two nodes cannot share it. Name one for each"
        )
    for path in targets.values():
        if not is_empty(path) and not (path / UNFINISHED).exists():
            raise DirectoryRefused(
                path,
                Refusal.IN_USE,
                "it holds data, and a restore overwrites nothing. Stop the node, move the "
                "directory away, and restore again",
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
    """Make a data directory for each node. Raises StorageError, OSError.

    `disks`: of all nodes that go on together, from `new_disks`. `before_the_end`: called when all
    is made and no node would start from it yet. What was made is not removed if that fails; the
    same call makes it anew.
    """
    check_targets(targets)
    for node, path in targets.items():
        _make(seed, node, path, disks)
    before_the_end()
    for path in targets.values():
        (path / UNFINISHED).unlink()
        sync_path(path)


def _make(seed: SeedState, node: str, path: Path, disks: Disks) -> None:
    if (path / UNFINISHED).exists():
        remove_tree(path / SEGMENTS_FOLDER)
    with DataDirectory(
        path, cluster_id=seed.cluster_id, node_id=node, bootstrap=True, disk_reserve_bytes=0
    ) as directory:
        (path / UNFINISHED).touch()
        sync_path(path)
        write_mark(path, seed.mark)
        if seed.state is not None:
            _install_state(seed.state, directory.state_path)
        _begin_journal(seed, directory.journal_path, node, disks)
        for segment in seed.segments:
            _copy_segment(segment, directory.segments_path / segment.name)
        sync_path(directory.segments_path)


def _install_state(stream: Path, path: Path) -> None:
    store = StateStore(path)
    try:
        install_from(store, _chunks(stream))
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
            )
        )
    finally:
        journal.close()


def _copy_segment(source: Path, target: Path) -> None:
    target.mkdir(mode=0o750)
    for file in _manifest_last(source.iterdir()):
        shutil.copyfile(file, target / file.name)
        sync_path(target / file.name)
    sync_path(target)


def _manifest_last(files: Iterable[Path]) -> list[Path]:
    return sorted(files, key=lambda file: (file.suffix == ".json", file.name))


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(_READ_BYTES):
            yield chunk
