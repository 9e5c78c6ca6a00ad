"""Keep the classes that a JVM loads to run Spark, so that the next one starts in half the time.

Java writes them to an archive as it ends, and maps that file when it starts again (AppCDS, JEP
350). An archive fits one Java and the jars of one Spark, so its name tells of both, and it lies in
the Python environment that has this Spark: it goes with it. Java compares the sums of an archive
and starts without one that does not fit. Knows Java and files; nothing here may fail a start.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(sys.prefix, "var", "cache", "holdfast")
_MAGIC: Final = (0xF00BABA8).to_bytes(4, sys.byteorder)
"""What a complete archive of this kind begins with: Java writes its head last."""
_PENDING_S_MAX: Final = 600
"""A run that was to write an archive and has not by then was killed; another one may."""
_QUIET: Final = "-Xlog:disable -Xlog:all=error:stderr"
"""Java warns of each class that it leaves out, on standard output."""


def java_options(java: Path, jars: Path, folder: Path = _FOLDER) -> str:
    """Return the options by which a JVM uses the archive, or writes it as it ends.

    `java`: the program; `jars`: the folder with Spark's jars. "" where there is to be none: this
    Java has no base archive, or the folder cannot be written, or by others, too.
    """
    try:
        return _options(java.resolve(), jars, folder)
    except OSError:
        return ""


def _options(java: Path, jars: Path, folder: Path) -> str:
    base = java.parent.parent / "lib" / "server" / "classes.jsa"
    if not _is_ours(folder):
        return ""
    archive = folder / f"spark-{_fingerprint(base, jars)}.jsa"
    if _is_complete(archive):
        return f'"-XX:SharedArchiveFile={archive}" -XX:+VerifySharedSpaces {_QUIET}'
    return f'"-XX:ArchiveClassesAtExit={archive}" {_QUIET}' if _begins(archive) else ""


def _is_ours(folder: Path) -> bool:
    """Make the folder, and tell whether nobody else can write there: Java runs what it finds."""
    places = (folder.parent.parent, folder.parent, folder)
    for place in places:
        place.mkdir(mode=0o755, exist_ok=True)
    known = [place.stat() for place in places]
    return all(each.st_uid in {0, os.getuid()} and not each.st_mode & 0o022 for each in known)


def _fingerprint(base: Path, jars: Path) -> str:
    """Tell this Java and these jars from all others. Raises OSError if Java has no base archive."""
    files = [base, *sorted(jars.glob("*.jar"))]
    told = [(str(path), *_of_file(path)) for path in files]
    return hashlib.sha256(repr(told).encode()).hexdigest()[:16]


def _of_file(path: Path) -> tuple[int, int]:
    known = path.stat()
    return known.st_size, known.st_mtime_ns


def _is_complete(archive: Path) -> bool:
    try:
        with archive.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except FileNotFoundError:
        return False


def _begins(archive: Path) -> bool:
    """Tell whether this run is to write the archive: of several at once, one."""
    marker = archive.with_suffix(".pending")
    with suppress(FileNotFoundError):
        if time.time() - marker.stat().st_mtime > _PENDING_S_MAX:
            marker.unlink()
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return False
    return True
