"""What fails around a verification is told in one sentence, apart from faults in a log."""

from __future__ import annotations

import errno
import os

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]  # no types
from pyspark.errors import PySparkException

from holdfast.replay.findings import CannotCheck, WrongUse
from holdfast.replay.spark.failures import (
    not_started,
    refused_setting,
    sentence,
    surroundings,
)

FULL = """An error occurred while calling o1.collect.
: org.apache.spark.SparkException: Job aborted due to stage failure
	at org.apache.spark.x
Caused by: java.io.IOException: No space left on device
	at java.base/java.io"""


CALLED = "An error occurred while calling None.org.apache.spark.Context."

UNREACHED = """An exception was thrown from the Python worker:
Traceback (most recent call last):
FileNotFoundError: s3://b/n1/file

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
holdfast.replay.read.urls.NotReached: s3://b/n1/file cannot be read: no answer
"""


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (Py4JError(FULL), "disk is full"),
        (PySparkException(UNREACHED), "s3://b/n1/file cannot be read: no answer"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "disk is full"),
        (Py4JError("Caused by: java.lang.OutOfMemoryError: Java heap space"), "out of memory"),
        (MemoryError(), "out of memory"),
        (PySparkException("Python worker exited unexpectedly (crashed)"), "look at memory"),
        (PySparkException("Python worker failed to connect back."), "has too much to do"),
        (Py4JNetworkError("Answer from Java side is empty"), "Spark was lost"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), "Spark was lost"),
        (PySparkException("[JAVA_GATEWAY_EXITED] Java gateway process exited"), "Spark was lost"),
        (PySparkException("what nobody thought of\n\tat a.stack"), "what nobody thought of"),
        (
            Py4JError(f"{CALLED}\n: org.TasteException: too many cooks\n\tat a.stack"),
            "go on: too many cooks",
        ),
        (Py4JError(CALLED), CALLED),
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


NO_MODULE = """An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "worker.py", line 1, in main
ModuleNotFoundError: No module named 'holdfast'"""
OTHER_PYTHON = (
    "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: "
    "3.11, PySpark cannot run with different minor versions."
)
STACK = """Exception in thread "main" org.apache.spark.SparkException: Cores must be a number
	at org.apache.spark.deploy.SparkSubmit"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (NO_MODULE, "no module 'holdfast': give them what they need"),
        (OTHER_PYTHON, "run Python 3.9 and this is 3.11"),
        ("All masters are unresponsive! Giving up.", "master does not take us"),
        (
            "Job 3 cancelled as part of cancellation of all jobs",
            "no worker of Spark's had room for us for a minute",
        ),
    ],
)
def test_what_a_cluster_lacks_is_one_sentence(text: str, said: str) -> None:
    assert said in sentence(PySparkException(text))


def test_a_setting_is_blamed_only_if_one_was_given_and_the_failure_is_about_settings() -> None:
    exited = PySparkException("[JAVA_GATEWAY_EXITED]")

    told = refused_setting(exited, {"spark.cores": "x"}, STACK)

    assert told == "Spark refuses --conf spark.cores=x: Cores must be a number"
    assert not refused_setting(exited, {}, STACK)
    assert not refused_setting(PySparkException(FULL), {"spark.cores": "2"})
    assert not_started(STACK) == "Spark's JVM did not start: Cores must be a number"
