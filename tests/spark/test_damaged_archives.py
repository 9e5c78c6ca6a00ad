"""Damaged archives, as far as Spark has to read them; what cannot be compared is refused.

`tests/unit/replay/verify/test_node_comparison.py` has every way to damage one, with a reader that
does in plain Python what Spark does here. So it is enough that both read the same.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from holdfast.replay.app import WrongUse, verify
from holdfast.replay.read.node_logs import NodeLog, node_logs
from holdfast.replay.verify.file_checks import check_forms
from holdfast.replay.verify.hashes import Comparable, Place, differing_blocks
from holdfast.replay.verify.spark_reader import SparkReader
from holdfast.storage.segments.segments import segments_in
from spark.archive_damage import LOG, copied, data, sound_nodes
from spark.damage_kinds import KINDS, changed
from spark.event_logs import write_node
from unit.replay.verify.plain_reader import PlainReader


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three nodes that agree; tests copy them."""
    parent = tmp_path_factory.mktemp("sound")
    sound_nodes(parent)
    return parent


@pytest.fixture
def nodes(sound: Path, tmp_path: Path) -> list[Path]:
    return copied(sound, tmp_path / "nodes")


def read_again(sound: Path, parent: Path) -> Iterator[NodeLog]:
    """A sound log; and of each damaged one what is read again and has other bytes, by its kind."""
    seen: set[bytes] = set()
    for number, kind in enumerate(KINDS):
        folders = copied(sound, parent / str(number))
        kind.change(folders[2])
        usable = check_forms(PlainReader().run, node_logs(folders)).logs
        if not seen:
            yield usable[0]._replace(node="sound")
            seen |= {Path(path).read_bytes() for s in usable[0].segments for path in s.files}
        for log in usable[2:]:
            new = tuple(s for s in log.segments if contents(s.files) - seen)
            seen |= {content for s in new for content in contents(s.files)}
            if new:
                yield log._replace(node=kind.name, segments=new)


def contents(paths: Sequence[str]) -> set[bytes]:
    return {Path(path).read_bytes() for path in paths}


def judgeable(places: Sequence[Place]) -> list[tuple[object, ...]]:
    return [(each.position, each.group, sorted(each.copies)) for each in places]


def test_spark_reads_each_damaged_file_that_passed_its_check_as_plain_python_does(
    spark: SparkSession, sound: Path, tmp_path: Path
) -> None:
    """S22: so what is found without Spark is found with it. Some file of many kinds is as sound."""
    logs = list(read_again(sound, tmp_path))
    whole = Comparable(LOG.rows[-1].position, ())
    plain, sparks = PlainReader(), SparkReader(spark)

    sums = plain.block_sums(logs, whole)

    assert len(logs) > 20
    assert sorted(sparks.block_sums(logs, whole)) == sorted(sums)

    few = [log for log in logs if log.node == "sound" or "sealing" in log.node]
    blocks = differing_blocks(few, plain.block_sums(few, whole))
    places = plain.differing_places(few, whole, blocks)
    assert len(places) > 1
    assert judgeable(sparks.differing_places(few, whole, blocks)) == judgeable(places)


def test_the_sound_nodes_are_verified_beside_one_that_is_not(
    nodes: list[Path], spark: SparkSession
) -> None:
    changed(nodes[2], "a bit flipped after sealing")

    report = verify(nodes, spark=spark)

    assert {finding.node for finding in report.findings} == {"n3"}, report.table()
    assert "changed" in {finding.kind for finding in report.findings}
    assert not report.passed
    assert report.records == len(LOG.rows)


def test_one_node_alone_shows_its_damage_without_a_traceback(
    nodes: list[Path], spark: SparkSession
) -> None:
    """The only log, with a segment that cannot be read: what is left is still checked."""
    data(nodes[0]).write_bytes(b"nothing")

    report = verify([nodes[0]], spark=spark)

    assert ("unreadable", str(data(nodes[0]))) in {(f.kind, f.file) for f in report.findings}
    assert not report.passed


def test_an_archive_in_which_nothing_can_be_read_is_not_verified(
    tmp_path: Path, spark: SparkSession
) -> None:
    write_node(tmp_path / "n1", "n1", LOG.rows)
    for file in tmp_path.rglob("*.parquet"):
        file.write_bytes(b"")

    report = verify([tmp_path / "n1"], spark=spark)

    assert {f.kind for f in report.findings} == {"unreadable"}
    assert not report.passed


# What is no comparison of several nodes is refused, in one sentence.


def refused(folders: list[Path]) -> str:
    with pytest.raises(WrongUse) as caught:
        verify(folders)
    sentence = str(caught.value)
    assert "\n" not in sentence
    return sentence


def test_a_directory_given_twice_is_refused(nodes: list[Path]) -> None:
    assert f"{nodes[0]}" in refused([nodes[0], nodes[1], nodes[0]])


@pytest.mark.parametrize("again", ["link", "segments", "dots"])
def test_a_directory_given_twice_under_two_names_is_refused(again: str, nodes: list[Path]) -> None:
    link = nodes[0].with_name("link")
    link.symlink_to(nodes[0])
    names = {"link": link, "segments": nodes[0] / "segments", "dots": nodes[1] / ".." / "n1"}

    assert "given twice" in refused([nodes[0], nodes[1], names[again]])


def test_a_copy_of_one_node_is_no_other_node(nodes: list[Path]) -> None:
    copy = nodes[0].with_name("n4")
    shutil.copytree(nodes[1], copy)

    said = refused([nodes[0], nodes[1], copy])

    assert "both hold the log of node n2" in said
    assert str(copy) in said


def test_hard_links_to_a_peer_s_files_are_refused(nodes: list[Path]) -> None:
    peer = Path(str(data(nodes[2])).replace("/n3/", "/n2/"))
    data(nodes[2]).unlink()
    os.link(peer, data(nodes[2]))

    said = refused(nodes)

    assert str(peer) in said
    assert str(data(nodes[2])) in said


def test_nodes_of_two_clusters_are_refused_and_named(nodes: list[Path]) -> None:
    for each in segments_in(nodes[2] / "segments"):
        manifest = each / "manifest.json"
        manifest.write_text(manifest.read_text().replace('"cluster_id": "c"', '"cluster_id": "d"'))

    said = refused(nodes)

    assert "several clusters: c, d" in said
    assert f"{nodes[2]}: d" in said
