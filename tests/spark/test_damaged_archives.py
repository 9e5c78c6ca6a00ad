"""Each way to damage one node's archive of three is found, named, blamed on nobody else (S22)."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from holdfast.replay.app import WrongUse, verify
from holdfast.replay.findings import Finding
from holdfast.replay.read.node_logs import node_logs
from holdfast.replay.verify.verification import Verification
from holdfast.storage.segments.segments import segments_in
from spark.archive_damage import LOG, data, segment, sound_nodes
from spark.damage_kinds import KINDS, Expected, Kind
from spark.event_logs import write_node


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three nodes that agree; tests copy them."""
    parent = tmp_path_factory.mktemp("sound")
    sound_nodes(parent)
    return parent


@pytest.fixture
def nodes(sound: Path, tmp_path: Path) -> list[Path]:
    shutil.copytree(sound, tmp_path / "nodes")
    return [tmp_path / "nodes" / name for name in ("n1", "n2", "n3")]


def fits(found: Finding, expected: Expected) -> bool:
    return (
        found.kind == expected.kind
        and found.file.endswith(expected.file)
        and (not expected.group or found.group == expected.group)
        and (expected.position is None or found.position == expected.position)
    )


def blamed(findings: Sequence[Finding]) -> set[str]:
    """The nodes, by the names of their directories: one that holds nothing is named by its path."""
    return {Path(finding.node).name for finding in findings}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name.replace(" ", "-"))
def test_damage_of_one_node_s_archive_is_found_and_named(
    kind: Kind, nodes: list[Path], spark: SparkSession
) -> None:
    """By all checks that look at every node. The others look at a sound node, as without damage."""
    kind.change(nodes[2])
    verification = Verification(spark, node_logs(nodes))

    folded = verification.compare_nodes()

    found = verification.findings
    assert any(fits(finding, kind.expected) for finding in found), found
    assert blamed(found) == {"n3"}, found
    assert folded is not None
    assert folded.node in {"n1", "n2"}
    assert folded.last == LOG.rows[-1].position


WHOLE = ["garbage", "end lies, later", "a row lost after sealing", "offset forged", "segment gone"]


@pytest.mark.parametrize("name", WHOLE, ids=lambda name: name.replace(" ", "-"))
def test_the_sound_nodes_are_verified_all_the_same(
    name: str, nodes: list[Path], spark: SparkSession
) -> None:
    changed(nodes[2], name)

    report = verify(nodes, spark=spark)

    assert blamed(report.findings) == {"n3"}, report.table()
    assert not report.passed
    assert report.records == len(LOG.rows)


def changed(node: Path, name: str) -> None:
    next(kind for kind in KINDS if kind.name == name).change(node)


def test_there_are_at_least_fifty_kinds() -> None:
    assert len({kind.name for kind in KINDS}) >= 50


def test_three_sound_archives_are_verified(nodes: list[Path], spark: SparkSession) -> None:
    report = verify(nodes, spark=spark)

    assert report.passed, report.table()
    assert report.records == len(LOG.rows)


TWO_NODES = [
    "end lies, later",
    "count lies",
    "typed column gone",
    "a row lost after sealing",
    "a bit flipped after sealing",
    "offset forged",
    "chain of the group forged",
]


@pytest.mark.parametrize("name", TWO_NODES, ids=lambda name: name.replace(" ", "-"))
def test_of_two_nodes_the_one_that_contradicts_itself_is_blamed(
    name: str, nodes: list[Path], spark: SparkSession
) -> None:
    """No majority is needed where a node's own files tell that they are not what it sealed."""
    kind = next(each for each in KINDS if each.name == name)
    kind.change(nodes[2])

    verification = Verification(spark, node_logs([nodes[0], nodes[2]]))

    folded = verification.compare_nodes()

    found = verification.findings
    assert any(fits(finding, kind.expected) for finding in found), found
    assert blamed(found) == {"n3"}, found
    assert folded is not None
    assert folded.node == "n1"


@pytest.mark.parametrize("name", ["link out of the archive", "a name with dots"])
def test_a_file_outside_of_the_archive_is_not_read(
    name: str, nodes: list[Path], spark: SparkSession
) -> None:
    """What lies outside would be a finding of its own: it is forged."""
    outside = nodes[2].parents[1] / "outside.parquet"
    changed(nodes[2], "offset forged")
    shutil.copy(data(nodes[2]), outside)
    changed(nodes[2], name)

    verification = Verification(spark, node_logs(nodes))
    verification.compare_nodes()

    assert {each.kind for each in verification.findings} <= {"copy", "manifest", "missing"}


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


def test_nodes_that_begin_with_one_backup_are_several_nodes(
    nodes: list[Path], spark: SparkSession
) -> None:
    """After a restore the first segments say that they are of the node that was backed up."""
    for node in nodes:
        manifest = segment(node, 0) / "manifest.json"
        raw = json.loads(manifest.read_text())
        manifest.write_text(json.dumps({**raw, "node_id": "n1"}))

    assert verify(nodes, spark=spark).passed


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
