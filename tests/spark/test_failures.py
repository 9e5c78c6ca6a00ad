"""What fails around a verification is told in one sentence, apart from faults in a log."""

from __future__ import annotations

import errno
import os

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]  # no types
from pyspark.errors import PySparkException

from holdfast.replay.findings import CannotCheck, WrongUse
from holdfast.replay.spark.failures import surroundings

FULL = """An error occurred while calling o1.collect.
: org.apache.spark.SparkException: Job aborted due to stage failure
	at org.apache.spark.x
Caused by: java.io.IOException: No space left on device
	at java.base/java.io"""


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (Py4JError(FULL), "disk is full"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "disk is full"),
        (Py4JError("Caused by: java.lang.OutOfMemoryError: Java heap space"), "out of memory"),
        (MemoryError(), "out of memory"),
        (PySparkException("Python worker exited unexpectedly (crashed)"), "worker"),
        (Py4JNetworkError("Answer from Java side is empty"), "Spark was lost"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), "Spark was lost"),
        (PySparkException("[JAVA_GATEWAY_EXITED] Java gateway process exited"), "Spark was lost"),
        (PySparkException("what nobody thought of\n\tat a.stack"), "what nobody thought of"),
    ],
)
def test_a_failure_of_the_surroundings_is_one_sentence(error: Exception, said: str) -> None:
    with pytest.raises(CannotCheck) as caught, surroundings():
        raise error

    sentence = str(caught.value)
    assert said in sentence
    assert "\n" not in sentence
    assert "at a.stack" not in sentence


@pytest.mark.parametrize("error", [FileNotFoundError("gone"), WrongUse("twice"), KeyError("bug")])
def test_what_was_given_and_what_is_a_bug_go_through(error: Exception) -> None:
    """Only the surroundings are excused: a mistake of ours must not look like a full disk."""
    with pytest.raises(type(error)), surroundings():
        raise error
