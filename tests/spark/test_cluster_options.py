"""`--conf` and workers as a user gets them: refusals of Spark's own, in one sentence each."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark.archive_damage import sound_nodes

SECONDS_MAX = 900

WITHOUT_US = """
import sys
if any("pyspark" in each for each in sys.orig_argv):
    sys.path[:] = [each for each in sys.path if each not in {roots!r}]
"""


def state(node: Path, *more: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "holdfast.cli", "replay", "state", "--node-dir", str(node), *more],
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS_MAX,
    )
    assert "\tat " not in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 1
    return done


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sound_nodes(tmp_path_factory.mktemp("nodes"))[0]


def test_a_worker_is_this_python(spark: SparkSession) -> None:
    """Not the `python3` on PATH, which may lack everything."""
    numbers = spark.sparkContext.parallelize([0], 1)

    assert numbers.map(lambda _: sys.executable).collect() == [sys.executable]


@pytest.mark.parametrize(
    ("key", "value"),
    [("spark.executor.memory", "abc"), ("spark.sql.shuffle.partitions", "abc")],
    ids=["refused by spark-submit with a stack", "refused by the session"],
)
def test_a_setting_that_spark_refuses_ends_with_2_and_is_named(
    key: str, value: str, node: Path
) -> None:
    done = state(node, "--conf", f"{key}={value}")

    assert done.returncode == 2, done.stderr
    assert f"--conf {key}={value}" in done.stderr


def test_workers_without_our_modules_end_with_5_and_one_sentence(
    node: Path, tmp_path: Path
) -> None:
    import holdfast  # noqa: PLC0415 - a package without a file, so it is only asked for its folders

    roots = [str(Path(each).parent) for each in holdfast.__path__]
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_US.format(roots=roots))
    path = os.pathsep.join([str(tmp_path), *(each for each in sys.path if each not in roots)])

    done = state(node, "--conf", f"spark.executorEnv.PYTHONPATH={path}")

    assert done.returncode == 5, done.stderr
    assert "no module 'holdfast" in done.stderr
    assert "holdfast replay package" in done.stderr
