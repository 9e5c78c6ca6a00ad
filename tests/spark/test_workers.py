"""What Spark's Python workers may import."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession


def test_a_worker_imports_nothing_from_the_working_directory(spark: SparkSession) -> None:
    """Spark starts them with `python -m`, in whatever directory the replay was started."""
    numbers = spark.sparkContext.parallelize([0], 1)

    assert numbers.map(lambda _: sys.flags.safe_path).collect() == [True]
