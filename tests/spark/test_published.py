"""Published logs: Spark reads what is behind a URL by its workers, and comes to the same (S22).

`tests/unit/replay/verify/test_node_comparison.py` has each kind of damage behind a URL.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from holdfast.cli.main import main
from holdfast.replay.app import CannotCheck, Cut, difference, plain_state, report, state, why
from holdfast.replay.app import verify as verified
from holdfast.replay.publish.publication import publish
from holdfast.replay.read.node_logs import node_log
from holdfast.replay.read.url_path import archive_path
from holdfast.replay.spark.failures import surroundings
from holdfast.replay.spark.log_tables import rows, stored_rows
from spark.archive_damage import LOG, data, sound_nodes
from spark.damage_kinds import changed


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return sound_nodes(tmp_path_factory.mktemp("nodes"))


@pytest.fixture(scope="module")
def urls(nodes: list[Path], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    parent = tmp_path_factory.mktemp("published")
    for node in nodes:
        publish(node, f"file://{parent}/{node.name}")
    return [f"file://{parent}/{node.name}" for node in nodes]


def test_workers_hand_over_what_the_jvm_reads(
    nodes: list[Path], urls: list[str], spark: SparkSession
) -> None:
    """Every column of every row, by whichever way."""
    here, there = node_log(nodes[0]), node_log(archive_path(urls[0]))

    for read in (rows, stored_rows):
        assert sorted(map(str, read(spark, there).collect())) == sorted(
            map(str, read(spark, here).collect())
        )


def test_what_is_told_of_urls_is_what_is_told_of_directories(
    nodes: list[Path], urls: list[str], spark: SparkSession, tmp_path: Path
) -> None:
    one, two = verified(urls, spark=spark), verified(nodes, spark=spark)

    assert one.passed, one.table()
    assert (one.records, one.last, one.digest) == (len(LOG.rows), two.last, two.digest)
    assert plain_state(state([urls[1]], spark=spark)) == plain_state(state([nodes[1]], spark=spark))
    cuts = Cut(LOG.rows[20].position), Cut(LOG.rows[-1].position)
    assert difference([urls[0]], *cuts, spark=spark) == difference([nodes[0]], *cuts, spark=spark)
    assert why([urls[0]], "g0", 1) == why([nodes[0]], "g0", 1)
    assert report([urls[0]], tmp_path / "out", spark=spark).page.exists()


def test_a_file_that_is_gone_when_a_worker_fetches_it_proves_nothing(
    nodes: list[Path], spark: SparkSession, tmp_path: Path
) -> None:
    """Code 5, in one sentence: it was there when the folder was listed, and had been checked."""
    url = f"file://{tmp_path}/n1"
    publish(nodes[0], url)
    table = rows(spark, node_log(archive_path(url)))
    for file in tmp_path.rglob("*.parquet"):
        file.unlink()

    with pytest.raises(CannotCheck, match=f"^there is nothing at {url}"), surroundings():
        table.collect()


def test_the_command_verifies_urls_and_names_a_damaged_file_by_its_url(
    nodes: list[Path], tmp_path: Path, one_jvm: None
) -> None:
    """Exit code 1, one sentence, and the sound nodes are not accused."""
    del one_jvm
    targets = []
    for node in nodes:
        targets.append(tmp_path / node.name)
        command = ["log", "publish", "--node-dir", str(node), "--to", str(targets[-1])]
        assert CliRunner().invoke(main, command).exit_code == 0
    changed(targets[2], "offset forged")
    dirs = [word for each in targets for word in ("--node-dir", f"file://{each}")]

    done = CliRunner().invoke(main, ["replay", "verify", *dirs, "--json"])

    assert done.exit_code == 1, done.stderr
    assert len(done.stderr.splitlines()) == 1
    told = json.loads(done.stdout)
    file = f"file://{data(targets[2])}"
    assert [(found["kind"], found["node"], found["file"]) for found in told["findings"]] == [
        ("bytes", "n3", file),
        ("payload", "n3", file),
    ]
    assert told["records"] == len(LOG.rows)
