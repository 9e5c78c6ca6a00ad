"""One Spark session for all tests of the replay, and logs for it to read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from holdfast.replay.spark.session import session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with session("local[2]", quick=True) as running:
        yield running
