"""The errors of a disk: one root class, and attributes, so that no caller has to parse a sentence.

Each message says what happened, to which file, why, and what to do next. Knows nothing of LMDB.

    StorageError
        JournalFailed       a batch may not be on disk: stop the node
        JournalDamaged      what the journal holds cannot be trusted: rebuild (S19, S21)
        StateDamaged        the same for the replicated state
        StateFailed         a snapshot or an install was not written: the state on disk is as before
        DiskFull            the same, because there is no room (S20)
        WriteRefused        the batch contradicts what is stored: a defect, nothing was written
        StateContradicted   the same, of a snapshot: the state forked, or went back in time
        WriteOvertaken      an installed snapshot took the place of what was being written to
        InstallRefused      a snapshot that a peer streamed is not whole or too old: ask again
        DirectoryRefused    this directory must not be used by this node as it is
"""

from __future__ import annotations

import errno
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class User(NamedTuple):
    """Who uses an environment: what for, in which thread, since when (seconds ago)."""

    operation: str
    thread: str
    seconds: float

    def __str__(self) -> str:
        """For people."""
        return f"{self.operation} in thread {self.thread} for {self.seconds:.1f} s"


class StorageError(Exception):
    """Root of everything that this package raises on purpose."""


class JournalFailed(StorageError):
    """A batch may not be durable, so nothing that depends on it may leave the node.

    Never tried again: after a failed fsync the kernel may have dropped the pages and still call
    the next one a success. `code` is the errno (or LMDB's own negative code), 0 if unknown.
    """

    def __init__(self, path: Path, cause: str, code: int = 0) -> None:
        self.path = path
        self.cause = cause
        self.code = code
        super().__init__(
            f"the journal {path} could not make a batch durable: {cause}. This node must stop; "
            f"what it acknowledged before is safe. {_next_step(code)}, then start it again."
        )

    @property
    def disk_full(self) -> bool:
        """Whether the cause was want of room, which an operator can mend without a new disk."""
        return is_want_of_room(self.code)


class JournalDamaged(StorageError):
    """The journal's content is not what was written (S21).

    `index` is the entry at fault, None if the fault is in a named record or in the file itself.
    `damage` says what is damaged and how, without the path and without advice.
    """

    def __init__(self, path: Path, index: int | None, reason: str) -> None:
        self.path = path
        self.index = index
        self.reason = reason
        where = "" if index is None else f" at entry {index}"
        self.damage = f"the journal{where}: {reason}"
        super().__init__(
            f"the journal {path} is damaged{where}: {reason}. Do not delete it: let the node move "
            f"it aside and rebuild from its peers, and have the disk examined."
        )


class StateDamaged(StorageError):
    """A record of the replicated state is not what was written (S21).

    `database` and `key` name the record; both are empty if the file itself is at fault.
    `damage` says what is damaged and how, without the path and without advice.
    """

    def __init__(self, path: Path, reason: str, *, database: str = "", key: bytes = b"") -> None:
        self.path = path
        self.database = database
        self.key = key
        self.reason = reason
        where = f" in {database}, key {key.hex()}" if database else ""
        self.damage = f"the state{where}: {reason}"
        super().__init__(
            f"the state {path} is damaged{where}: {reason}. Do not delete it: let the node move "
            f"it aside and rebuild from its peers, and have the disk examined."
        )


class StateFailed(StorageError):
    """A write to the state did not happen; what was there before is there still, whole (S18)."""

    def __init__(self, path: Path, operation: str, cause: str, code: int = 0) -> None:
        self.path = path
        self.operation = operation
        self.cause = cause
        self.code = code
        super().__init__(
            f"the state {path} could not take a {operation}: {cause}. Nothing was changed on disk. "
            f"{_next_step(code)}."
        )


class DiskFull(StateFailed):
    """`StateFailed` for want of room: may be tried again once there is some (S20)."""


class StateBusy(StorageError):
    """The state was not closed, because somebody still reads or writes it."""

    def __init__(self, path: Path, users: Sequence[User], waited_s: float) -> None:
        self.path = path
        self.users = tuple(users)
        super().__init__(
            f"the state {path} was not closed: after {waited_s:.0f} s it is still in use by "
            f"{'; '.join(map(str, users))}. Nothing is lost, what was written is durable; the end "
            "of this process lets go of it. If that does not come, end it with SIGKILL."
        )


class WriteRefused(StorageError):
    """A batch contradicts what is stored, for example by truncating a committed entry.

    It is a defect of the caller, found before anything was written.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"storage refused a write: {reason}. Nothing was written. This is a defect in Holdfast:"
            f" stop the node and report it with the node's log."
        )


class WriteOvertaken(WriteRefused):
    """The state was replaced by an installed snapshot while this was written: nothing is lost."""


class StateContradicted(WriteRefused):
    """A snapshot that no course of the log leads to from the stored one: the node must stop."""


class InstallRefused(StorageError):
    """A streamed snapshot cannot be installed; the state in use was not touched."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"a streamed snapshot was refused: {reason}. The state in use was not touched; "
            f"the snapshot has to be streamed again from the start."
        )


class Refusal(StrEnum):
    """Why a directory is refused."""

    IN_USE = "in use"
    FOREIGN_CLUSTER = "another cluster's"
    FOREIGN_NODE = "another node's"
    EMPTY = "empty"
    NOT_EMPTY = "not empty"
    NOT_OURS = "not a data directory"
    NO_SPACE = "no space"
    NEWER_SCHEMA = "written by a newer version"
    UNUSABLE = "not usable"


class DirectoryRefused(StorageError):
    """This node must not use this directory as it is. Nothing in it was changed."""

    def __init__(self, path: Path, refusal: Refusal, detail: str) -> None:
        self.path = path
        self.refusal = refusal
        self.detail = detail
        super().__init__(f"the data directory {path} is refused ({refusal}): {detail}")


# LMDB's MDB_MAP_FULL: the map, not the disk, is at its end. The remedy is the same kind: room.
MAP_FULL = -30792
# EFBIG is want of room as well: a limit on the size of this process's files ends there, as a disk
# would, and an operator can raise it while the node runs.
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, MAP_FULL})


def is_want_of_room(code: int) -> bool:
    """Return whether this errno, or code of LMDB, says that there is no room (S20)."""
    return code in _NO_ROOM


def state_failure(path: Path, operation: str, cause: Exception, code: int) -> StateFailed:
    """`DiskFull` or `StateFailed`, by the code."""
    kind = DiskFull if is_want_of_room(code) else StateFailed
    return kind(path, operation, str(cause), code)


def _next_step(code: int) -> str:
    if code == errno.EFBIG:
        return "Raise the limit on the size of its files (ulimit -f, or LimitFSIZE of its service)"
    if is_want_of_room(code):
        return "Free space on its file system"
    if code == errno.EIO:  # LMDB says so, too, if a disk was full in the middle of a write
        return "Examine the disk, the free space on it, and the kernel's log"
    return "Examine the disk and the kernel's log"
