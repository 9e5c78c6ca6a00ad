"""Find out whether directories of stopped nodes hold what the nodes acknowledged.

A disk that rebuilds (S19) has files, but lacks the data. A child process reads, since a damaged
file can kill the process that reads it (S21). As a program,
`python -m holdfast.storage.directory.stage DIR` prints the stage: that of the stored
identity, "" if there is none, "unknown" if it cannot be told.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from holdfast.storage.directory.check import JOURNAL_FOLDER, STATE_FOLDER
from holdfast.storage.directory.data_directory import LOCK_NAME, is_empty
from holdfast.storage.errors import StorageError
from holdfast.storage.journal.journal_reader import read_journal

if TYPE_CHECKING:
    from collections.abc import Iterable

UNKNOWN: Final = "unknown"
SECONDS_MAX: Final = 30.0
"""How long the read of one directory may take."""
_EXIT_USAGE: Final = 2


def lacks_data(directories: Iterable[Path]) -> set[Path]:
    """Return the directories whose node is no voter of a formed cluster and has no data for others.

    They are absent, empty, set aside as damaged, or rebuilding. A directory that cannot be judged
    (damaged, in use, foreign) is not among them: its node will report it. Changes nothing.
    """
    asked = list(directories)
    children = {path: _asking(path) for path in asked if not is_empty(path)}
    return {path for path in asked if path not in children or _lacks(children[path])}


def _asking(path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-P", "-m", "holdfast.storage.directory.stage", str(path)]
    return subprocess.Popen(  # noqa: S603 - our own module, no shell
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


def _lacks(child: subprocess.Popen[str]) -> bool:
    """Return whether a child reports a lack of data; one that dies or takes too long does not."""
    try:
        told, _ = child.communicate(timeout=SECONDS_MAX)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        return False
    return child.returncode == 0 and told.strip() in {"", "rebuilding"}


def stored_stage(directory: Path) -> str:
    """Read the stage in this process, which a damaged file may kill."""
    try:
        lock = os.open(directory / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        lock = -1
    except OSError:
        return UNKNOWN
    try:
        if lock >= 0:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return _stage_in(directory)
    except (OSError, StorageError):
        return UNKNOWN
    finally:
        if lock >= 0:
            os.close(lock)


def _stage_in(directory: Path) -> str:
    present = [(directory / name).exists() for name in (JOURNAL_FOLDER, STATE_FOLDER)]
    if not all(present):
        return "" if any(present) or any(directory.glob("*.damaged-*")) else UNKNOWN
    identity = read_journal(directory / JOURNAL_FOLDER).identity
    return identity.stage if identity else ""


def main(arguments: list[str]) -> int:
    """Print the stage of one directory, as a program."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m holdfast.storage.directory.stage DIRECTORY\n")
        return _EXIT_USAGE
    sys.stdout.write(stored_stage(Path(arguments[0])) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
