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

from holdfast.raft.membership import ENTRY_KIND
from holdfast.runtime.backup.recovery_numbers import NumberRefused, Wanted, next_above
from holdfast.runtime.backup.seed import (
    MEMBER,
    SeedState,
    check_targets,
    identity_of,
    make_seeds,
    new_disks,
)
from holdfast.runtime.replica.image import read_image
from holdfast.storage.directory.data_directory import DataDirectory, is_empty, is_unfinished
from holdfast.storage.directory.recovery_mark import RecoveryMark, read_mark, write_mark
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


def recover(path: Path, owner: Owner, targets: Mapping[str, Path], wanted: Wanted) -> Recovered:
    """Make a stopped node's directory, and those of other nodes, the cluster that goes on.

    `wanted`: the recovery number, if said. Raises DirectoryRefused with nothing changed if a node
    runs on the directory, or it is not a whole member's; StorageError, OSError.
    """
    _refuse_what_is_done(path, targets)
    check_targets(targets)
    with DataDirectory(path, cluster_id=owner.cluster_id, node_id=owner.node) as directory:
        _refuse_unsound(directory)
        journal = open_journal(directory.journal_path)
        try:
            image = journal.load()
            _refuse_learner(path, image)
            return _recover(directory, journal, image, owner, targets, wanted)
        finally:
            journal.close()


def known_number(path: Path) -> int:
    """Return the recovery number that a disk knows. Raises DirectoryRefused, OSError."""
    return read_mark(path).number


def _refuse_what_is_done(path: Path, targets: Mapping[str, Path]) -> None:
    """Say that this recovery has been carried out, if it was: its end may have been seen by nobody.

    All directories have the mark of the survivor then, and none of them is unfinished.
    """
    mark = read_mark(path)
    whole = (each for each in targets.values() if not is_empty(each) and not is_unfinished(each))
    made = [each for each in whole if read_mark(each) == mark]
    if mark.number and made and len(made) == len(targets):
        raise DirectoryRefused(
            made[0],
            Refusal.IN_USE,
            f"the cluster has gone on from here before, with recovery number {mark.number}, and "
            "the directories of --seed are those that were made then, whole. If that was the same "
            "command, it had succeeded: start these nodes together, without --bootstrap. If they "
            "have run since and are to be given up, move their directories away first",
        )


def _recover(
    directory: DataDirectory,
    journal: Journal,
    image: JournalImage,
    owner: Owner,
    targets: Mapping[str, Path],
    wanted: Wanted,
) -> Recovered:
    """Write the others first: as long as this directory is as it was, the same call may follow."""
    copy = directory.copy_path.with_name(f"{directory.copy_path.name}-seed")
    try:
        meta, reached = _export(directory.state_path, copy)
        last = _last(image, meta)
        mark = RecoveryMark(_chosen(directory, reached, wanted), last[0])
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


def _chosen(directory: DataDirectory, reached: int, wanted: Wanted) -> int:
    """Return the recovery number to go on with, above all that this disk knows of."""
    try:
        return next_above(max(reached, directory.recovery.number), wanted)
    except NumberRefused as error:
        why = f"{error}. Nothing was changed"
        raise DirectoryRefused(directory.path, Refusal.UNUSABLE, why) from error
