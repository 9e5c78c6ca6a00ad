"""The lock of a local cluster's directory: one command at a time runs it.

The lock is taken before anything is laid out, so that two commands never lay out one cluster. It is
the system's lock, so it ends with the process that holds it. The file with the holder's process id
stays, and has no meaning by itself. Knows processes and files, not what nodes do.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.cli.local_cluster.layout import LOCK_NAME
from holdfast.server.config import cluster_file
from holdfast.server.config.node_config import CannotStart

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO


@contextmanager
def claimed(directory: Path) -> Iterator[None]:
    """Hold the lock of this directory's cluster; a cluster.json left by a crash is removed.

    Makes the directory if it is absent. Raises CannotStart, with nothing changed, if the cluster
    runs, if the directory cannot be made, or if cluster.json is a foreign file.
    """
    with _opened(directory) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            pid = file.read().strip() or "not written yet"
            raise CannotStart(_running(directory, f"pid {pid}")) from None
        _refuse_orphans(directory)
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        (directory / cluster_file.NAME).unlink(missing_ok=True)
        yield


def _opened(directory: Path) -> TextIO:
    """Open the file that is locked."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        return (directory / LOCK_NAME).open("a+")
    except OSError as error:
        raise CannotStart(
            f"cannot use {directory} for a cluster: {error.strerror}. Give a directory that you "
            "may write to with --dir, or one that can be made"
        ) from error


def _running(directory: Path, who: str) -> str:
    return (
        f"the cluster in {directory} runs already: `holdfast cluster start`, {who}. Use it (see "
        f"`holdfast cluster status --cluster {directory}`), stop it first, or give another --dir"
    )


def _refuse_orphans(directory: Path) -> None:
    """Refuse a directory whose nodes still run: they outlive a command that was killed.

    They are looked for among the processes: cluster.json may be gone while they run.
    """
    path = directory / cluster_file.NAME
    try:
        cluster_file.read(path)
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        raise CannotStart(f"{error}. Remove it, or give another --dir") from error
    alive = [f"{name} (pid {pid})" for name, pid in sorted(_nodes_of(directory))]
    if alive:
        raise CannotStart(
            f"the cluster in {directory} still runs, though the command that started it is gone: "
            f"{', '.join(alive)}. Stop these processes first, or give another --dir"
        )


def _nodes_of(directory: Path) -> Iterator[tuple[str, int]]:
    """Yield name and process id of each node that runs with a configuration in this directory."""
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with suppress(OSError):  # it has ended meanwhile, or is none of ours to look at
                config = _configuration(process)
                if config and config.parent.parent == directory.resolve():
                    yield config.parent.name, int(process.name)


def _configuration(process: Path) -> Path | None:
    """Return the file that a process has as `--config`; None if the process is no node."""
    words = [os.fsdecode(word) for word in (process / "cmdline").read_bytes().split(b"\0")]
    if "node" not in words or not any("holdfast" in word for word in words):
        return None
    for word, following in pairwise(words):
        option, equals, value = word.partition("=")
        if option == "--config":
            given = Path(value if equals else following)
            base = Path() if given.is_absolute() else (process / "cwd").readlink()
            return (base / given).resolve()
    return None
