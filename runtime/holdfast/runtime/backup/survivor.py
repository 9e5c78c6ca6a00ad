"""Go on from the one node that is left, when the majority of the disks is lost for good (S13, S19).

The survivor's log is kept to its last entry, also what it cannot know to be committed: all that was
acknowledged and that it holds. Its disk gets a new name, forgets what it knew of the lost ones, and
is written to the directories of other nodes, so that a majority goes on together. As after a
restore the recovery number is raised first, and no disk from before is spoken to again. Knows
storage; no network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from holdfast.coordinator.model.ids import RECOVERY_NUMBER_MAX
from holdfast.raft.membership import ENTRY_KIND
from holdfast.runtime.backup.seed import (
    MEMBER,
    SeedState,
    check_targets,
    identity_of,
    make_seeds,
    new_disks,
)
from holdfast.runtime.replica.image import read_image
from holdfast.storage.directory.data_directory import DataDirectory
from holdfast.storage.directory.recovery_mark import RecoveryMark, write_mark
from holdfast.storage.disk.files import remove_tree, sync_path
from holdfast.storage.errors import DirectoryRefused, Refusal
from holdfast.storage.journal.journal import (
    Journal,
    JournalBatch,
    JournalImage,
    NotedMembership,
)
from holdfast.storage.journal.notes_file import NOTES_NAME
from holdfast.storage.journal.tailed_journal import open_journal
from holdfast.storage.segments.checkpoint import checkpoints_in
from holdfast.storage.segments.segments import segments_in
from holdfast.storage.state.rules import StateMeta
from holdfast.storage.state.state_store import StateStore, read_chunks

_CHUNK_BYTES: Final = 256 * 1024
_STREAM: Final = "stream"


class Owner(NamedTuple):
    """The cluster and the node that the survivor's directory has to belong to."""

    cluster_id: str
    node: str


@dataclass(frozen=True, slots=True)
class Recovered:
    """What was done."""

    recovery_number: int
    last_index: int
    """The last entry that was kept; what came after it is lost."""
    last_term: int


def recover(path: Path, owner: Owner, targets: Mapping[str, Path], number: int | None) -> Recovered:
    """Make a stopped node's directory, and those of other nodes, the cluster that goes on.

    `number`: the recovery number, if named. Raises DirectoryRefused with nothing changed if a node
    runs on the directory, or it is not a whole member's; StorageError, OSError.
    """
    check_targets(targets)
    with DataDirectory(path, cluster_id=owner.cluster_id, node_id=owner.node) as directory:
        _refuse_unsound(directory)
        journal = open_journal(directory.journal_path)
        try:
            image = journal.load()
            _refuse_learner(path, image)
            return _recover(directory, journal, image, owner, targets, number)
        finally:
            journal.close()


def _recover(
    directory: DataDirectory,
    journal: Journal,
    image: JournalImage,
    owner: Owner,
    targets: Mapping[str, Path],
    number: int | None,
) -> Recovered:
    """Write the others first: as long as this directory is as it was, the same call may follow."""
    copy = directory.copy_path.with_name(f"{directory.copy_path.name}-seed")
    try:
        meta, reached = _export(directory.state_path, copy)
        last = _last(image, meta)
        mark = RecoveryMark(_chosen(directory, reached, number), last[0])
        seed = SeedState(
            owner.cluster_id,
            meta.index if meta else 0,
            meta.term if meta else 0,
            copy / _STREAM if meta else None,
            tuple(segments_in(directory.segments_path)),
            mark,
            tuple(e for e in image.entries if e.index > (meta.index if meta else 0)),
            image.hard_state.term,
            image.commit_index,
            tuple(path for _, path in checkpoints_in(directory.segments_path)),
            _sent_back_to_files(image, last[0]),
        )
        disks = new_disks([owner.node, *targets])

        def rename_this_disk() -> None:
            write_mark(directory.path, mark)
            (directory.journal_path / NOTES_NAME).unlink(missing_ok=True)
            sync_path(directory.journal_path)
            own = identity_of(owner.cluster_id, owner.node, disks)
            journal.commit(JournalBatch(identity=own, membership=seed.membership))

        make_seeds(seed, targets, disks, rename_this_disk)
    finally:
        remove_tree(copy)
    return Recovered(mark.number, *last)


def _refuse_unsound(directory: DataDirectory) -> None:
    verdict = directory.verdict
    if not verdict.sound or verdict.blank:
        why = verdict.reason or "it holds no data"
        raise DirectoryRefused(
            directory.path,
            Refusal.UNUSABLE,
            f"{why}, so no cluster can go on from it. Recover from another node, or restore a "
            "backup",
        )


def _refuse_learner(path: Path, image: JournalImage) -> None:
    """Refuse a disk that was being rebuilt: it may lack what it should hold (S19)."""
    if image.identity is None or image.identity.stage != MEMBER:
        raise DirectoryRefused(
            path,
            Refusal.UNUSABLE,
            "this node was forming or being rebuilt, so it may lack what was acknowledged. Recover "
            "from another node, or restore a backup",
        )


def _export(state: Path, copy: Path) -> tuple[StateMeta | None, int]:
    """Write the state as a stream; return what it covers, and its recovery number."""
    store = StateStore(state)
    try:
        meta = store.meta()
        if meta is None:
            return None, 0
        image, _ = read_image(store.load())
        store.copy_to(copy)
    finally:
        store.close()
    with (copy / _STREAM).open("wb") as file:
        file.writelines(read_chunks(copy, _CHUNK_BYTES))
    return meta, image.state.recovery_number


def _sent_back_to_files(image: JournalImage, last: int) -> NotedMembership | None:
    """Have the files say which nodes go on, if the log has ever said which there were (S25 a).

    Those that it names are lost, and would be counted. None: the files have always said it.
    """
    told = any(entry.payload[:1] == ENTRY_KIND for entry in image.entries)
    return NotedMembership(last, "") if told or image.membership is not None else None


def _last(image: JournalImage, meta: StateMeta | None) -> tuple[int, int]:
    """Return index and term of the last entry that this disk holds, in its log or its state."""
    logged = (image.entries[-1].index, image.entries[-1].term) if image.entries else image.anchor
    return max(logged, (meta.index, meta.term)) if meta else logged


def _chosen(directory: DataDirectory, reached: int, number: int | None) -> int:
    """Return the recovery number to go on with, above all that this disk knows of."""
    last = max(reached, directory.recovery.number)
    chosen = last + 1 if number is None else number
    if not last < chosen <= RECOVERY_NUMBER_MAX:
        raise DirectoryRefused(
            directory.path,
            Refusal.UNUSABLE,
            f"recovery number {chosen} is not above {last}, which the cluster has, or is more than "
            f"{RECOVERY_NUMBER_MAX}. Name another one, or leave the option out",
        )
    return chosen
