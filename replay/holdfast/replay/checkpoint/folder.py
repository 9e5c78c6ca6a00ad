"""The folder in which runs keep their checkpoint: one run at a time, old or new, never half of one.

It holds the record of what was verified, `verified.json`, and beside it a folder with the parts of
the state, which the record names with the SHA-256 of each. The parts are durable before the record
appears by one rename; what it does not name is removed by the next run that writes. Knows files,
and not what the parts are.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from itertools import count, groupby
from pathlib import Path
from typing import Final

from holdfast.coordinator.model.text import truncate
from holdfast.replay.checkpoint.record import OtherRecord, Verified, parsed, written
from holdfast.replay.findings import CannotCheck, WrongUse
from holdfast.storage.disk.files import make_directory, rename_durably, sync_path
from holdfast.storage.segments.file_contents import sha256_of

RECORD: Final = "verified.json"
LOCK: Final = ".lock"
_STATE: Final = "state-"
_BEGUN: Final = ".begun-"
"""Begins the name of what a run has not finished."""


class Folder:
    """A folder that this run alone uses."""

    def __init__(self, path: Path) -> None:
        """Begin with a folder that is there, and locked."""
        self.path = path

    def read(self) -> Verified | None:
        """Return what the last run has verified; None if no run has left anything.

        Raises WrongUse for a newer form, and CannotCheck if record or state are damaged.
        """
        try:
            record = parsed((self.path / RECORD).read_bytes())
        except FileNotFoundError:
            return None
        except OtherRecord as error:
            raise WrongUse(
                f"the checkpoint in {self.path} is of {error}: use a newer Holdfast, or give "
                "another folder"
            ) from error
        except (OSError, ValueError) as error:
            raise _damaged(self.path / RECORD, truncate(str(error))) from error
        self._check_state(record)
        return record

    def _check_state(self, record: Verified) -> None:
        folder = self.state_of(record)
        for name, told in record.parts.items():
            path = folder / Path(name).name
            try:
                found = sha256_of(path)
            except OSError as error:
                raise _damaged(path, error.strerror or str(error)) from error
            if found != told:
                raise _damaged(path, f"it has the SHA-256 {found[:16]}…, and {told[:16]}… was kept")

    def state_of(self, record: Verified) -> Path:
        """Return the folder with the parts of a record's state; it is within this one."""
        return self.path / Path(record.state).name

    def keep_state(self, chunks: Iterable[tuple[str, bytes]]) -> tuple[str, dict[str, str]]:
        """Make the parts of a state durable; return their folder's name, and the sums of all.

        `chunks`: the name of a file, and its next bytes; those of a file follow on each other.
        Raises OSError, and then nothing has changed.
        """
        begun = self.path / f"{_BEGUN}{os.getpid()}"
        shutil.rmtree(begun, ignore_errors=True)
        begun.mkdir()
        parts = {}
        for name, content in groupby(chunks, lambda each: each[0]):
            digest = sha256()
            with (begun / name).open("xb") as file:
                for _, chunk in content:
                    digest.update(chunk)
                    file.write(chunk)
                file.flush()
                os.fsync(file.fileno())
            parts[name] = digest.hexdigest()
        sync_path(begun)
        named = f"{_STATE}{sha256(repr(sorted(parts.items())).encode()).hexdigest()[:16]}"
        free = (path for n in count() if not (path := self.path / f"{named}-{n}").exists())
        kept = next(free)  # the last run's state may be the same, and its record still names it
        rename_durably(begun, kept)
        return kept.name, parts

    def keep(self, record: Verified) -> None:
        """Make a record the newest one, and remove what it does not name. Raises OSError."""
        begun = self.path / f"{_BEGUN}{RECORD}"
        begun.write_bytes(written(record))
        sync_path(begun)
        rename_durably(begun, self.path / RECORD)
        for other in self.path.iterdir():
            if other.name.startswith((_STATE, _BEGUN)) and other.name != record.state:
                shutil.rmtree(other, ignore_errors=True)


@contextmanager
def opened(path: Path) -> Iterator[Folder]:
    """Hold a folder for one run; it is made if it is not there.

    Raises WrongUse for a folder of something else, and CannotCheck if another run uses it, or it
    cannot be made or written.
    """
    try:
        foreign = path.is_dir() and next(filter(_is_foreign, path.iterdir()), None)
        if foreign:
            raise WrongUse(
                f"{path} holds {foreign.name}, and no run left that: give a folder of its own for "
                "the checkpoint, or a new one"
            )
        make_directory(path.absolute())
        lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise CannotCheck(f"cannot keep a checkpoint in {path}: {error.strerror}") from error
    try:
        _claim(lock, path)
        yield Folder(path)
    finally:
        os.close(lock)


def _claim(lock: int, path: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise CannotCheck(
            f"another verification uses the checkpoint in {path}: wait for it, or give another "
            "folder"
        ) from error


def _is_foreign(path: Path) -> bool:
    return path.name not in {RECORD, LOCK} and not path.name.startswith((_STATE, _BEGUN))


def _damaged(path: Path, why: str) -> CannotCheck:
    return CannotCheck(
        f"the checkpoint is damaged: {path} cannot be used ({why}). Verify with --full, which "
        "reads everything and writes a new one"
    )
