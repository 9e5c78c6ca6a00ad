"""Tell failures of Spark, of the disk and of memory from faults in a log, with a sentence for each.

Knows exceptions, no log.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
from pyspark.errors import PySparkException

from holdfast.coordinator.model.text import truncate
from holdfast.replay.findings import CannotCheck

SPARK_FAILURES: Final = (PySparkException, Py4JError)
ALL_FAILURES: Final = (*SPARK_FAILURES, OSError, MemoryError)
_FULL: Final = "No space left on device"
_LOST: Final = (
    *("Answer from Java side is empty", "Connection refused", "Connection reset", "JAVA_GATEWAY"),
    *("Error while receiving", "SparkContext was shut down", "SparkContext has been shutdown"),
    *("stopped SparkContext", "An error occurred while trying to connect to the Java server"),
)
_MEMORY: Final = ("OutOfMemoryError", "GC overhead limit")
_LATE: Final = "Python worker failed to connect"
_WORKER: Final = {
    _LATE: "a worker of Spark's was not there within the ten seconds that Spark waits: this "
    "machine has too much to do; start again",
    "Python worker exited unexpectedly": "a worker of Spark's ended in the midst of its work: look "
    "at memory; verify again",
}
"""What Spark says of its workers, and what we say then."""
_NO_MODULE: Final = re.compile(r"No module named '?([\w.]+)")
_OTHER_PYTHON: Final = re.compile(r"different version:? (\S+) than that in driver:? (\d[\d.]*\d)")
_NOT_REACHED: Final = re.compile(r"\b(?:NotReached|FileNotFoundError): (.+://.+)")
"""What a worker raises that does not get at a file behind a URL (`read.urls`)."""
_NO_MASTER: Final = ("All masters are unresponsive", "Master removed our application")
_CANCELLED: Final = "part of cancellation of all jobs"
"""What Spark says when `reach.workers_watched` has given up."""
_BAD_VALUE: Final = (
    *("IllegalArgumentException", "NumberFormatException", "IllegalArgument", "INVALID_CONF"),
    *("CANNOT_MODIFY", "CannotModify", "should be", "must be", "Unrecognized", "Invalid "),
)
_CALLING: Final = "An error occurred while calling "
"""How py4j begins: with a name of its own. What the JVM threw is in the next line."""
_THROWN: Final = re.compile(r"(Exception|Error)\b")


@contextmanager
def surroundings(kinds: tuple[type[Exception], ...] = ALL_FAILURES) -> Iterator[None]:
    """Raise CannotCheck for what Spark, the disk or memory does in the body.

    `kinds`: what is caught. FileNotFoundError goes through: it tells of what was given.
    """
    try:
        yield
    except FileNotFoundError:
        raise
    except kinds as error:
        raise CannotCheck(sentence(error)) from error


def sentence(error: Exception) -> str:
    """Say in one sentence what failed, and what to do."""
    text = "\n".join(_texts(error))
    if _FULL in text or getattr(error, "errno", None) == errno.ENOSPC:
        return (
            "the disk is full where Spark keeps what it works on: free some space, or set TMPDIR "
            "to a folder on a disk that has it, and verify again"
        )
    if found := _NOT_REACHED.findall(text):
        return str(found[-1])  # those before are what it was made of
    if told := _of_a_cluster(text):
        return told
    if any(word in text for word in _MEMORY) or isinstance(error, MemoryError):
        return "Spark ran out of memory: give it more, or a machine that has it, and verify again"
    if told := next((said for word, said in _WORKER.items() if word in text), ""):
        return told
    if isinstance(error, ConnectionError | EOFError) or any(word in text for word in _LOST):
        return "Spark was lost: its JVM ended or does not answer; start the verification again"
    return f"Spark could not go on: {_first_line(text) or type(error).__name__}"


def came_late(error: Exception) -> bool:
    """Return whether a worker was not there in time: to start it again may be all that it needs."""
    return any(_LATE in text for text in _texts(error))


def refused_setting(error: Exception, settings: Mapping[str, str], by_java: str = "") -> str:
    """Say in one sentence which of the settings Spark refuses; "" if it is not about them.

    `by_java`: what the JVM wrote as it started.
    """
    text = "\n".join([by_java, *_texts(error)])
    lines = [line.strip() for line in text.splitlines()]
    named = [key for key in settings if key in text]
    reasons = [line for line in lines if any(word in line for word in (*named, *_BAD_VALUE))]
    if not settings or not reasons:
        return ""
    which = ", ".join(f"{key}={settings[key]}" for key in named or settings)
    best = [line for line in reasons if any(word in line for word in _BAD_VALUE)] or reasons
    return f"Spark refuses --conf {which}: {_reason(best[0])}"


def not_started(by_java: str) -> str:
    """Say why there is no JVM, from what it wrote."""
    lines = [line for line in by_java.splitlines() if _THROWN.search(line)]
    return f"Spark's JVM did not start: {_reason((lines or by_java.splitlines())[0])}"


def _texts(error: BaseException | None) -> Iterator[str]:
    """Yield what an exception says, and what those of the JVM that caused it say."""
    while error is not None:
        yield str(error)
        error = getattr(error, "_cause", None)  # of pyspark's exceptions


def _reason(line: str) -> str:
    """Return why something was thrown, without the names of classes before it."""
    return truncate(
        re.sub(r'^(: |Exception in thread "[^"]*" )?([\w.$]+(Exception|Error): )*', "", line)
    )


def _of_a_cluster(text: str) -> str:
    """Say what a master or workers lack; "" if they lack nothing."""
    if _CANCELLED in text:
        return "no worker of Spark's had room for us for a minute: look why, and start again"
    if any(word in text for word in _NO_MASTER):
        return "Spark's master does not take us: is that address a master of this version of Spark?"
    if found := _NO_MODULE.search(text):
        return (
            f"Spark's workers have no module {found[1]!r}: give them what they need, as "
            "`holdfast replay package --to DIR` tells, or install holdfast[spark] where they run"
        )
    if found := _OTHER_PYTHON.search(text):
        return (
            f"Spark's workers run Python {found[1]} and this is {found[2]}: name one of this "
            "version by --conf spark.pyspark.python=PROGRAM"
        )
    return ""


def _first_line(text: str) -> str:
    """Return what was said first, without the stack that follows, and without what was called."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    while len(lines) > 1 and lines[0].startswith(_CALLING):
        del lines[0]
    return _reason(lines[0]) if lines else ""
