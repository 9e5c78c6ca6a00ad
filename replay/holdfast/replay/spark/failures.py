"""Tell failures of Spark, of the disk and of memory from faults in a log, with a sentence for each.

Knows exceptions, no log.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
from pyspark.errors import PySparkException

from holdfast.coordinator.model.text import truncate
from holdfast.replay.findings import CannotCheck

_FULL: Final = "No space left on device"
_LOST: Final = (
    *("Answer from Java side is empty", "Connection refused", "Connection reset", "JAVA_GATEWAY"),
    *("Error while receiving", "SparkContext was shut down", "SparkContext has been shutdown"),
    *("stopped SparkContext", "An error occurred while trying to connect to the Java server"),
)
_MEMORY: Final = ("OutOfMemoryError", "GC overhead limit")
_WORKER: Final = ("Python worker exited unexpectedly", "Python worker failed to connect")


@contextmanager
def surroundings() -> Iterator[None]:
    """Raise CannotCheck for what Spark, the disk or memory does in the body.

    FileNotFoundError goes through: it tells of what was given.
    """
    try:
        yield
    except FileNotFoundError:
        raise
    except (PySparkException, Py4JError, OSError, MemoryError) as error:
        raise CannotCheck(sentence(error)) from error


def sentence(error: Exception) -> str:
    """Say in one sentence what failed, and what to do."""
    text = str(error)
    if _FULL in text or getattr(error, "errno", None) == errno.ENOSPC:
        return (
            "the disk is full where Spark keeps what it works on: free some space, or set TMPDIR "
            "to a folder on a disk that has it, and verify again"
        )
    if any(word in text for word in _MEMORY) or isinstance(error, MemoryError):
        return "Spark ran out of memory: give it more, or a machine that has it, and verify again"
    if any(word in text for word in _WORKER):
        return "a worker of Spark's ended in the midst of its work: look at memory; verify again"
    if isinstance(error, ConnectionError | EOFError) or any(word in text for word in _LOST):
        return "Spark was lost: its JVM ended or does not answer; start the verification again"
    return f"Spark could not go on: {_first_line(text) or type(error).__name__}"


def _first_line(text: str) -> str:
    """Return what was said first, without the stack that follows."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return truncate(lines[0]) if lines else ""
