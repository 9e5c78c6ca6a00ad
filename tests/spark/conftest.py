"""One Spark session for all tests of the replay in a process, and which files begin first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from harness.file_order import longest_first
from holdfast.replay.spark.session import session

HERE = Path(__file__).parent
LONGEST = (
    "test_clusters.py",
    "test_checkpoints.py",
    "test_consumer_states.py",
    "test_states.py",
    "test_damage.py",
    "test_acknowledged.py",
    "test_killed_tail.py",
)
"""Files that begin before all others, the longest first."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first if this folder runs by itself."""
    longest_first(items, HERE, LONGEST)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with session("local[2]", quick=True) as running:
        yield running


@pytest.fixture
def one_jvm(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands that are invoked here, and not in processes of their own, share that session."""
    monkeypatch.setattr("holdfast.replay.app.opened", lambda *_, **__: nullcontext(spark))
