"""`holdfast replay` on clusters: what is wrong is found, and all is told, as on this machine.

Each run of `verify` to its end finds one changed byte, for then all checks are made as well: those
that look at one node take a sound one. What else there is, is asked in one session
(`cluster_calls`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from venv import EnvBuilder

import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from holdfast.cli.main import main
from holdfast.replay.app import plain_state
from holdfast.replay.spark.package import package
from holdfast.storage.segments.segments import segments_in
from spark.archive_damage import CUT_AT, LOG
from spark.cluster_calls import asked, make_logs
from spark.spark_servers import connect, standalone

EVENTS = 70
SECONDS_MAX = 900
NODES = ("node-1", "node-2", "node-3")


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a log of three nodes of which one has a changed byte."""
    to = tmp_path_factory.mktemp("history") / "log"
    words = ["generate", "--events", str(EVENTS), "--groups", "4", "--out", str(to)]
    done = CliRunner().invoke(main, ["replay", *words])
    assert done.exit_code == 0, done.output
    file = damaged(to)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    return to


def damaged(history: Path) -> Path:
    """Return the file that has a changed byte."""
    return max(segments_in(history / "node-2" / "tail")[0].glob("*.parquet"))


def check(history: Path, *where: str) -> None:
    """Verify, and see that the damage is found, nothing else, and that the rest was checked.

    Paths are given as a user may: from the folder in which only this command runs.
    """
    words = [word for name in NODES for word in ("--node-dir", name)]
    words += ["--witness", "witness.jsonl", "--anchor", "anchor.json"]
    done = subprocess.run(
        [sys.executable, "-m", "holdfast.cli", "replay", "verify", "--json", *words, *where],
        cwd=history,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS_MAX,
    )
    assert done.returncode == 1, done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    told = json.loads(done.stdout)
    assert {(each["node"], each["file"]) for each in told["findings"]} == {
        ("node-2", str(damaged(history)))
    }
    assert told["unfinished"] is None
    assert told["records"] == EVENTS
    assert told["digest"] == json.loads((history / "anchor.json").read_text())["digest"]


@pytest.fixture(scope="module")
def here(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What is told on this machine."""
    folder = tmp_path_factory.mktemp("here")
    make_logs(folder)
    told = asked(spark, folder, folder / "out")
    state = LOG.state._replace(applied_index=LOG.index)
    assert told["state"] == json.loads(json.dumps(plain_state(state)))
    assert told["differing"]
    read = told["followed"]
    assert read["batches"] == [
        [len(LOG.rows), len(read["alerts"]), list(LOG.rows[-1].position)],
    ]
    assert len(read["events"]) == len(LOG.rows)
    assert read["alerts"]
    return told


def call(folder: Path, master: str, what: list[str], conf: tuple[str, ...] = ()) -> dict[str, Any]:
    """Ask in a session on a cluster; Python must find the tests, and workers not by that."""
    make_logs(folder)
    done = subprocess.run(
        [sys.executable, "-m", "spark.cluster_calls", json.dumps([master, conf, what])],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS_MAX,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


def check_runs(runs: list[dict[str, Any]]) -> None:
    """See that each run read what was new, and the last one found what had changed."""
    later = len(LOG.rows) - CUT_AT[-1]
    assert [(each["records"], each["known"]) for each in runs] == [
        (CUT_AT[-1], 0),
        (0, CUT_AT[-1]),
        (later, CUT_AT[-1]),
        (0, len(LOG.rows)),
    ]
    assert [each["found"] for each in runs] == [[], [], [], [["bytes", "n2"]]]


def test_on_a_local_cluster(history: Path, tmp_path: Path) -> None:
    """The workers that verify a log as it grows have less memory than Spark gives by itself."""
    check(history, "--master", "local-cluster[1,2,1024]")

    told = call(tmp_path, "local-cluster[2,1,700]", ["verified"])

    check_runs(told["verified"])


def test_on_a_standalone_cluster_whose_workers_have_our_modules_from_the_package(
    history: Path, here: dict[str, Any], tmp_path: Path
) -> None:
    """They run a Python that has what we import, and not us; so does what plans a stream."""
    EnvBuilder().create(tmp_path / "python")
    version = "python{}.{}".format(*sys.version_info)
    packages = tmp_path / "python" / "lib" / version / "site-packages"
    (packages / "more.pth").write_text(str(Path(pa.__file__).parents[1]))
    python = f"spark.pyspark.python={tmp_path / 'python' / 'bin' / 'python'}"
    files = f"spark.submit.pyFiles={package(tmp_path / 'packed').packages}"

    with standalone(tmp_path) as master:
        check(history, "--master", master, "--conf", python, "--conf", files)
        told = call(tmp_path, master, ["followed"], (python, files))

    assert told["followed"] == here["followed"]


def test_on_a_spark_connect_server(history: Path, here: dict[str, Any], tmp_path: Path) -> None:
    """The server begins in another folder, and is the one that writes what a tail finds."""
    with connect(tmp_path) as remote:
        check(history, "--remote", remote)
        told = call(tmp_path, remote, ["asked"])

    assert told["asked"] == here
