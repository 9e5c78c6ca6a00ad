"""A directory of backups of one cluster: files arrive in `incoming/`, the manifest comes last.

    manifest.json             the backup; it names all that belongs to it
    state-<index>-<copy>      the state at that entry
    checkpoint-<place>        what the history before the segments has led to, if it was cut off
    segments-<n>/<segment>/   sealed segments; n: the recovery number in which they were written
    incoming/                 what has arrived of a backup that is not finished
    lock                      locked by the process that writes here, or restores it
    restored                  the recovery number of the last restore, so that none is used twice

Until the new manifest is renamed into its place, the earlier backup is whole and valid. Segments
that are here are not fetched again: a segment's name and recovery number tell its records. Knows
files; no network.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.runtime.backup.manifest import (
    CHECKPOINT_PREFIX,
    MANIFEST,
    BackupFlawed,
    BackupManifest,
    StoredFile,
    load_manifest,
    write_manifest,
)
from holdfast.storage.disk.files import make_directory, remove_tree, rename_durably, sync_path
from holdfast.storage.segments.segments import MANIFEST as SEGMENT_MANIFEST

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

_INCOMING: Final = "incoming"
_PENDING: Final = "copy.json"
_LOCK: Final = "lock"
_STATE: Final = "state"
RESTORED: Final = "restored"
"""Notes the recovery number of the last restore of this backup."""
_READ_BYTES: Final = 1 << 20


class Pending(NamedTuple):
    """The copy from which an unfinished backup was being read."""

    node: str
    copy_id: str


class BackupFolder:
    """An open directory of backups, locked until it is closed. Raises BackupFlawed, OSError."""

    def __init__(self, path: Path) -> None:
        """Lock it, and read the backup that it holds; an absent directory is made."""
        self.path = path
        self._refuse_strangers()
        make_directory(path.absolute())
        self._lock = self._locked()
        try:
            self.earlier = load_manifest(path) if (path / MANIFEST).exists() else None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Unlock it."""
        os.close(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- what may come ---

    def check_cluster(self, cluster_id: str) -> None:
        """Refuse a backup of another cluster than that of the one that is here."""
        if self.earlier is not None and self.earlier.cluster_id != cluster_id:
            raise BackupFlawed(
                f"{self.path} holds a backup of cluster {self.earlier.cluster_id!r}, and this "
                f"cluster is {cluster_id!r}: a backup never takes the place of another cluster's. "
                "Name another directory"
            )

    def check_newer(self, recovery_number: int, index: int) -> None:
        """Refuse a backup that is older than the one that is here."""
        if self.earlier is None:
            return
        here = (self.earlier.recovery_number, self.earlier.index)
        if (recovery_number, index) < here:
            raise BackupFlawed(
                f"{self.path} holds a newer backup, at index {here[1]} of recovery number "
                f"{here[0]}, and the node asked is at index {index} of recovery number "
                f"{recovery_number}: take it from a node that is further, or name another directory"
            )

    # --- what has come ---

    def pending(self) -> Pending | None:
        """Return the copy from which an unfinished backup was read."""
        try:
            return Pending(**json.loads((self._incoming / _PENDING).read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def begin(self, pending: Pending) -> None:
        """Keep what has arrived of this copy; drop what is another one's."""
        before = self.pending()
        if before is None or before.node != pending.node:
            remove_tree(self._incoming)
        elif before != pending:
            self.partial(_STATE).unlink(missing_ok=True)
        make_directory(self._incoming.absolute())
        (self._incoming / _PENDING).write_text(json.dumps(pending._asdict()))

    def partial(self, *parts: str) -> Path:
        """Return where a file grows: the state's, or that of a segment."""
        path = self._incoming.joinpath(*(parts or (_STATE,)))
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def finish_state(self, name: str) -> StoredFile:
        """Put the whole state in its place."""
        return self.finish_file(self.partial(), name)

    def finish_file(self, arrived: Path, name: str) -> StoredFile:
        """Put a file that is whole in its place."""
        sync_path(arrived)
        rename_durably(arrived, self.path / name)
        return self._summed(name)

    def segment_folder(self, recovery_number: int, name: str) -> str:
        """Return the name of a segment's folder here."""
        return f"segments-{recovery_number}/{name}"

    def has_segment(self, folder: str) -> bool:
        """Return whether the segment is here, whole."""
        return (self.path / folder / SEGMENT_MANIFEST).exists()

    def finish_segment(self, folder: str) -> None:
        """Put a segment whose files have all arrived in its place, by one rename."""
        arrived = self._incoming / Path(folder).name
        for file in sorted(arrived.iterdir()):
            sync_path(file)
        sync_path(arrived)
        make_directory((self.path / folder).parent.absolute())
        rename_durably(arrived, self.path / folder)

    def files_of(self, folder: str) -> list[StoredFile]:
        """Return the files of a segment that is here; those of the last backup are not read."""
        known = {each.name: each for each in self.earlier.files} if self.earlier else {}
        names = sorted(f"{folder}/{file.name}" for file in (self.path / folder).iterdir())
        return [known.get(name) or self._summed(name) for name in names]

    def publish(self, manifest: BackupManifest) -> None:
        """Make this the backup of the directory; then remove what only the earlier one needed."""
        write_manifest(self.path, manifest)
        remove_tree(self._incoming)
        kept = {file.name for file in manifest.all_files()}
        for old in (*self.path.glob(f"{_STATE}-*"), *self.path.glob(f"{CHECKPOINT_PREFIX}*")):
            if old.name not in kept:
                old.unlink()
        for folder in self.path.glob("segments-*/*"):
            if str(folder.relative_to(self.path)) not in manifest.segments:
                remove_tree(folder)

    # --- helpers ---

    @property
    def _incoming(self) -> Path:
        return self.path / _INCOMING

    def _summed(self, name: str) -> StoredFile:
        size, digest = sum_file(self.path / name)
        return StoredFile(name, size, digest)

    def _refuse_strangers(self) -> None:
        """Refuse a directory with files that are no backup's: nothing of them is touched."""
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise BackupFlawed(f"{self.path} is a file: name a directory for the backup")
        ours = (_INCOMING, _LOCK, MANIFEST, f"{MANIFEST}.new", RESTORED, f"{RESTORED}.new")
        for each in sorted(self.path.iterdir()):
            prefixes = (f"{_STATE}-", CHECKPOINT_PREFIX, "segments-")
            if each.name not in ours and not each.name.startswith(prefixes):
                raise BackupFlawed(
                    f"{self.path} is no directory of a backup, it holds {each.name!r}: name one "
                    "that is empty, absent, or holds a backup of this cluster"
                )

    def _locked(self) -> int:
        lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        _lock(lock, self.path)
        return lock


@contextmanager
def restoring(path: Path) -> Iterator[None]:
    """Keep others from writing to a backup, and from restoring it, meanwhile. Raises BackupFlawed.

    One that cannot be written has no lock. Nothing can be noted there either, so a restore of it
    needs a number that the operator names.
    """
    try:
        lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    except OSError:
        yield
        return
    _lock(lock, path)
    try:
        yield
    finally:
        os.close(lock)


def _lock(lock: int, path: Path) -> None:
    """Lock an open file, or close it and raise BackupFlawed."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        raise BackupFlawed(
            f"another process writes to the backup in {path}, or restores it: wait for its end, or "
            "name another directory"
        ) from error


def sum_file(path: Path) -> tuple[int, str]:
    """Read a whole file; return its size and SHA-256. Raises OSError."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(_READ_BYTES):
            digest.update(chunk)
            size += len(chunk)
    return size, digest.hexdigest()
