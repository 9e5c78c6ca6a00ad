"""Ctrl-C while Java starts leaves no Java behind; one that Spark knows is left to Spark."""

from __future__ import annotations

from contextlib import suppress
from subprocess import Popen
from typing import Any

import pytest
from pyspark import SparkContext, java_gateway

from holdfast.replay.spark.begun_jvm import POPEN, begun_jvm


def begun(error: BaseException, known: object) -> Popen[Any]:
    """What Spark has started when its start ends with an error."""
    with pytest.MonkeyPatch.context() as patch, suppress(type(error)), begun_jvm():
        process: Popen[Any] = vars(java_gateway)[POPEN](["sleep", "3600"])
        patch.setattr(SparkContext, "_gateway", known)
        raise error
    return process


def test_a_jvm_that_spark_has_not_heard_of_ends_with_its_start() -> None:
    assert begun(KeyboardInterrupt(), None).poll() is not None
    assert vars(java_gateway)[POPEN] is Popen


def test_a_jvm_that_spark_knows_stays() -> None:
    """It serves the next session, too, also where the first one was refused."""
    with begun(ValueError("refused"), object()) as process:
        assert process.poll() is None
        process.kill()


def test_spark_starts_its_jvm_by_that_name() -> None:
    assert POPEN in java_gateway.launch_gateway.__code__.co_names
