"""A node's data directory: one process at a time, the right node, and never silently empty (S19).

    lock        locked by the process that uses the directory
    raft/       the journal             raft.damaged-<n>/    one that was moved aside
    state/      state and event log     state.damaged-<n>/   the same
    segments/   sealed events           unfinished           exists while raft/ and state/ are made
    recovery    the restore that the data comes from, if any (`recovery_mark`)
    audit/      who was refused; nothing of the log

Leftovers of a crash (`raft.new`, `state.new`, `state.incoming`, `state.copy*`, `*.anew`) hold
nothing that was acknowledged, and are removed at the next start. Damaged environments are never
deleted, nor is a file `data.mdb.damaged-<n>` in one that was written anew.
"""

from __future__ import annotations

import errno
import fcntl
import os
from typing import TYPE_CHECKING

import lmdb

from holdfast.storage.directory.anew import BEGUN, write_anew
from holdfast.storage.directory.check import (
    CHECK_SECONDS_MAX,
    ENVIRONMENTS,
    JOURNAL_FOLDER,
    STATE_FOLDER,
    Verdict,
    verify_directory,
)
from holdfast.storage.directory.recovery_mark import RECOVERY_NAME, read_mark
from holdfast.storage.disk.environment import DATA_FILE, error_code
from holdfast.storage.disk.files import (
    make_directory,
    remove_tree,
    rename_durably,
    shortage,
    sync_path,
)
from holdfast.storage.errors import DirectoryRefused, Refusal
from holdfast.storage.journal.lmdb_journal import LmdbJournal
from holdfast.storage.journal.tail_files import PREALLOCATED_BYTES
from holdfast.storage.state.state_store import StateStore

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType
    from typing import Self

LOCK_NAME = "lock"
SEGMENTS_FOLDER = "segments"
AUDIT_FOLDER = "audit"
_LEFTOVERS = (
    *("raft.new", "state.new", "state.incoming", "state.copy*"),
    *(name + BEGUN for name in ENVIRONMENTS),
)
UNFINISHED = "unfinished"
_IGNORED = ("lock", "lost+found", AUDIT_FOLDER, RECOVERY_NAME, f"{RECOVERY_NAME}.new")
"""Our lock, a new ext4's own folder, the audit, and what a blank disk knows of its peers."""


def is_empty(path: Path) -> bool:
    """Return whether a directory is empty for a node: absent, or nothing in it was used (S19).

    Changes nothing; a running node may write there meanwhile.
    """
    if not path.is_dir():
        return not path.exists()
    laid_out = (*ENVIRONMENTS, UNFINISHED) if (path / UNFINISHED).exists() else ()
    segments = path / SEGMENTS_FOLDER
    sealed = segments.is_dir() and any(segments.iterdir())
    nothing = {*_IGNORED, *laid_out, SEGMENTS_FOLDER}
    nothing.update(each.name for pattern in _LEFTOVERS for each in path.glob(pattern))
    return not sealed and {each.name for each in path.iterdir()} <= nothing


def is_unfinished(path: Path) -> bool:
    """Return whether a directory was begun, and its making has not come to its end."""
    return (path / UNFINISHED).exists()


def clear_unfinished(path: Path) -> None:
    """Remove the segments of a directory whose making was not finished.

    Raises DirectoryRefused, with nothing removed, if a process uses it: it may be making it.
    """
    lock = _lock(path)
    try:
        if (path / UNFINISHED).exists():
            remove_tree(path / SEGMENTS_FOLDER)
    finally:
        os.close(lock)


class DataDirectory:
    """An open data directory, locked until `close`.

    Opening raises `DirectoryRefused`, and never changes stored records. `verdict` tells whether the
    content can be trusted. If not, the caller either stops or calls `set_aside` and rebuilds.
    Records that can be trusted, in a file that cannot be written to, are in a new one by then.
    """

    def __init__(
        self,
        path: Path,
        *,
        cluster_id: str,
        node_id: str,
        bootstrap: bool = False,
        rebuild: bool = False,
        disk_reserve_bytes: int | None = None,
        check_seconds_max: float = CHECK_SECONDS_MAX,
    ) -> None:
        """Lock, check, and lay out an empty directory if `bootstrap` or `rebuild` allows it.

        `bootstrap`: the operator states that this cluster is new. `rebuild`: the operator states
        that this node's disk is new and its peers have the data. Neither affects a directory with
        data. `disk_reserve_bytes`: free space needed to lay one out; None: the reserve of S20.
        """
        self.path = path
        self._owner = (cluster_id, node_id)
        self._bootstrap = bootstrap
        self._disk_reserve_bytes = disk_reserve_bytes
        self._check_seconds_max = check_seconds_max
        self._lock = _lock(path)
        try:
            self.recovery = read_mark(path)
            self._remove_leftovers()
            self.verdict = self._enter(may_create=bootstrap or rebuild)
        except BaseException:
            self.close()
            raise

    @property
    def journal_path(self) -> Path:
        """The folder of the journal: its environment, its tail and its marks."""
        return self.path / JOURNAL_FOLDER

    @property
    def state_path(self) -> Path:
        """The folder of `StateStore`."""
        return self.path / STATE_FOLDER

    @property
    def segments_path(self) -> Path:
        """The folder of sealed segments."""
        return self.path / SEGMENTS_FOLDER

    @property
    def copy_path(self) -> Path:
        """The folder for a copy of the state while it is streamed; absent at a start (S18)."""
        return self.path / f"{STATE_FOLDER}.copy"

    @property
    def bootstrapping(self) -> bool:
        """Whether this disk may take part in forming a cluster (S19): told so, and really new.

        False after damage was moved aside and beside sealed history, even if the flag was left on.
        """
        return self._bootstrap and self.verdict.blank and not self._has_past()

    @property
    def begins_cluster(self) -> bool:
        """Whether this start may create the cluster, with what the node's file says of it (S19)."""
        return self.bootstrapping or self.verdict.forming

    def set_aside(self) -> None:
        """Move damaged environments aside, and make empty ones to rebuild into.

        Both are moved even if one is sound: state and journal belong together, and the disk gets a
        new incarnation. After a crash in between one of them is missing, which is damage again.
        """
        number = 1 + max((_number(path) for path in self.path.glob("*.damaged-*")), default=0)
        for name in ENVIRONMENTS:
            if (self.path / name).exists():
                rename_durably(self.path / name, self.path / f"{name}.damaged-{number}")
        self.verdict = self._lay_out()

    def close(self) -> None:
        """Unlock, after journal and state are closed."""
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

    def _enter(self, *, may_create: bool) -> Verdict:
        present = [name for name in ENVIRONMENTS if (self.path / name).exists()]
        if present == list(ENVIRONMENTS):
            return self._checked()
        if present:
            missing = STATE_FOLDER if present == [JOURNAL_FOLDER] else JOURNAL_FOLDER
            return Verdict(sound=False, reason=f"{self.path / missing} is missing")
        if self._has_past():
            # `set_aside` was interrupted, or both environments were removed.
            return Verdict(sound=False, reason=f"{self.path} has neither journal nor state")
        self._refuse_strangers()
        if not may_create:
            raise DirectoryRefused(self.path, Refusal.EMPTY, _EMPTY)
        return self._lay_out()

    def _checked(self) -> Verdict:
        verdict = verify_directory(self.path, seconds_max=self._check_seconds_max)
        if verdict.refusal:
            raise DirectoryRefused(self.path, Refusal(verdict.refusal), verdict.reason)
        for stored, ours, what, refusal in (
            (verdict.cluster_id, self._owner[0], "cluster", Refusal.FOREIGN_CLUSTER),
            (verdict.node_id, self._owner[1], "node", Refusal.FOREIGN_NODE),
        ):
            if stored not in {"", ours}:
                raise DirectoryRefused(self.path, refusal, _foreign(what, stored, ours))
        for name in verdict.spoiled:
            self._write_anew(self.path / name)
        return verdict

    def _write_anew(self, environment: Path) -> None:
        size = (environment / DATA_FILE).stat().st_size
        taker = f"a sound copy of {environment / DATA_FILE} takes, whose pages are damaged"
        if lack := shortage(self.path, self._disk_reserve_bytes, size, taker):
            why = f"{lack}. {_NO_SPACE}"
            raise DirectoryRefused(self.path, Refusal.NO_SPACE, why)
        try:
            write_anew(environment)
        except (OSError, lmdb.Error) as error:
            raise _unusable(self.path, error) from error

    def _lay_out(self) -> Verdict:
        """Make both environments, empty; a mark file exists until both are complete."""
        if lack := shortage(self.path, self._disk_reserve_bytes, PREALLOCATED_BYTES):
            why = f"{lack}. {_NO_SPACE}"
            raise DirectoryRefused(self.path, Refusal.NO_SPACE, why)
        mark = self.path / UNFINISHED
        try:
            mark.touch()
            make_directory(self.segments_path)
            LmdbJournal.create(self.journal_path)
            StateStore.create(self.state_path)
            mark.unlink()
            sync_path(self.path)
        except (OSError, lmdb.Error) as error:
            raise _unusable(self.path, error) from error
        return Verdict(sound=True, blank=True)

    def _refuse_strangers(self) -> None:
        """Refuse a directory with unknown files: a home directory is no empty data directory."""
        known = {*_IGNORED, SEGMENTS_FOLDER}
        strangers = sorted(path.name for path in self.path.iterdir() if path.name not in known)
        if strangers:
            raise DirectoryRefused(self.path, Refusal.NOT_OURS, _strange(strangers[0]))

    def _has_past(self) -> bool:
        segments = self.segments_path
        sealed = segments.is_dir() and any(segments.iterdir())
        return sealed or any(self.path.glob("*.damaged-*"))

    def _remove_leftovers(self) -> None:
        mark = self.path / UNFINISHED
        if mark.exists():
            # The layout was not finished, so nothing has used it: start over.
            for name in ENVIRONMENTS:
                remove_tree(self.path / name)
            mark.unlink()
            sync_path(self.path)
        for pattern in _LEFTOVERS:
            for leftover in self.path.glob(pattern):
                remove_tree(leftover)


_EMPTY = (
    "it is empty, and empty is not new: a cluster whose disks were swapped must not start from"
    " nothing. Check first that the right disk is mounted."
)
_NO_SPACE = "Free space or choose another file system, then start again. Or lower that setting."


def _foreign(what: str, stored: str, ours: str) -> str:
    return (
        f"it belongs to {what} {stored!r}, and this node is configured as {what} {ours!r}. "
        f"Point the node at its own directory, or correct its configuration."
    )


def _strange(name: str) -> str:
    return f"it has no journal but holds {name!r}. Choose a directory that holds nothing else."


def _unusable(path: Path, error: OSError | lmdb.Error) -> DirectoryRefused:
    code = error_code(error) if isinstance(error, lmdb.Error) else (error.errno or 0)
    if code in {errno.ENOSPC, errno.EDQUOT}:
        return DirectoryRefused(path, Refusal.NO_SPACE, f"{error}. {_NO_SPACE}")
    advice = "Check that it is a directory that this user may write to."
    return DirectoryRefused(path, Refusal.UNUSABLE, f"{error}. {advice}")


def _number(path: Path) -> int:
    suffix = path.name.rpartition("-")[2]
    return int(suffix) if suffix.isdecimal() else 0


def _lock(path: Path) -> int:
    """Open and lock the lock file; the kernel unlocks it however the process ends."""
    try:
        make_directory(path)
        descriptor = os.open(path / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    except OSError as error:
        raise _unusable(path, error) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
        os.close(descriptor)
        if error.errno not in {errno.EWOULDBLOCK, errno.EACCES}:
            raise _unusable(path, error) from error
        raise DirectoryRefused(path, Refusal.IN_USE, _in_use(holder)) from error
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def _in_use(holder: str) -> str:
    who = f"process {holder}" if holder else "another process"
    return f"{who} uses it. Stop that one first, or give this node a directory of its own."
