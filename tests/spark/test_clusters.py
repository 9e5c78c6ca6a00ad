"""`holdfast replay verify` to its end on clusters: what is wrong is found as on this machine.

Each run finds one changed byte, for then all checks are made as well: those that look at one node
take a sound one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from venv import EnvBuilder

import pyarrow as pa
import pytest
from click.testing import CliRunner

from holdfast.cli.main import main
from holdfast.replay.spark.package import package
from holdfast.storage.segments.segments import segments_in
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


def test_on_a_local_cluster(history: Path) -> None:
    check(history, "--master", "local-cluster[1,2,1024]")


def test_on_a_standalone_cluster_whose_workers_have_our_modules_from_the_package(
    history: Path, tmp_path: Path
) -> None:
    """They run a Python that has what we import, and not us."""
    EnvBuilder().create(tmp_path / "python")
    version = "python{}.{}".format(*sys.version_info)
    packages = tmp_path / "python" / "lib" / version / "site-packages"
    (packages / "more.pth").write_text(str(Path(pa.__file__).parents[1]))
    python = f"spark.pyspark.python={tmp_path / 'python' / 'bin' / 'python'}"
    files = f"spark.submit.pyFiles={package(tmp_path / 'packed').packages}"

    with standalone(tmp_path) as master:
        check(history, "--master", master, "--conf", python, "--conf", files)


def test_on_a_spark_connect_server(history: Path, tmp_path: Path) -> None:
    with connect(tmp_path) as remote:
        check(history, "--remote", remote)
