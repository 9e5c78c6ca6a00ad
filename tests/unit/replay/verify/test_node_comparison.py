"""Each way to damage one node's archive of three is found, named, blamed on nobody else (S22)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from holdfast.replay.findings import Finding
from holdfast.replay.read.node_logs import NodeLog, node_logs
from holdfast.replay.read.url_path import Folder, archive_path
from holdfast.replay.verify.hashes import Comparable, Sum
from holdfast.replay.verify.node_comparison import NOTHING_READABLE, NodeComparison
from holdfast.storage.segments.segment_writer import write_segment
from holdfast.storage.segments.segments import segments_in
from spark.archive_damage import (
    AT,
    CUT_AT,
    LOG,
    VICTIM,
    copied,
    data,
    segment,
    sound_nodes,
)
from spark.damage_kinds import KINDS, Expected, Kind, changed
from spark.event_logs import write_node
from unit.replay.verify.plain_reader import PlainReader


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three nodes that agree; tests copy them."""
    parent = tmp_path_factory.mktemp("sound")
    sound_nodes(parent)
    return parent


@pytest.fixture
def nodes(sound: Path, tmp_path: Path) -> list[Path]:
    return copied(sound, tmp_path / "nodes")


def compared(folders: Sequence[Folder]) -> tuple[list[Finding], NodeLog | None]:
    """All findings, and the log that is to be folded."""
    comparison = NodeComparison(PlainReader(), node_logs(folders))
    chosen = comparison.run()
    return comparison.findings, chosen


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


@pytest.mark.parametrize("place", ["", "file://"], ids=["path", "url"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name.replace(" ", "-"))
def test_damage_of_one_node_s_archive_is_found_and_named(
    kind: Kind, place: str, nodes: list[Path]
) -> None:
    """By all checks that look at every node. The others look at a sound node, as without damage.

    A URL of this host shows links and pipes as well, which no object store has.
    """
    kind.change(nodes[2])

    found, chosen = compared([*nodes[:2], archive_path(f"{place}{nodes[2]}")])

    assert any(fits(finding, kind.expected) for finding in found), found
    assert blamed(found) == {"n3"}, found
    assert chosen is not None
    assert chosen.node in {"n1", "n2"}
    assert chosen.last == LOG.rows[-1].position


def test_there_are_at_least_fifty_kinds() -> None:
    assert len({kind.name for kind in KINDS}) >= 50


def test_of_three_sound_archives_nothing_is_said(nodes: list[Path]) -> None:
    found, chosen = compared(nodes)

    assert found == []
    assert chosen is not None


def rejoined(node: Path) -> None:
    """Have a node's first two segments in one, as earlier builds could seal them."""
    for folder in segments_in(node / "segments")[:2]:
        shutil.rmtree(folder)
    write_segment(node / "segments", LOG.rows[: CUT_AT[1]], "c", node.name)


def test_s22_segments_that_an_earlier_build_joined_are_a_note(nodes: list[Path]) -> None:
    """Nothing is lost, and the log is sound for ever as it is."""
    rejoined(nodes[2])
    comparison = NodeComparison(PlainReader(), node_logs(nodes))

    assert comparison.run() is not None
    assert comparison.findings == []
    assert [note for note in comparison.notes if "of node n3, 1 segment reaches" in note]


def test_s22_records_of_a_joined_segment_are_compared_with_others(nodes: list[Path]) -> None:
    """One that says something else than on most nodes is still found, by its position."""
    rejoined(nodes[2])
    changed_row = LOG.rows[VICTIM]._replace(content=LOG.rows[VICTIM + 1].content)
    rows = [*LOG.rows[:VICTIM], changed_row, *LOG.rows[VICTIM + 1 : CUT_AT[1]]]
    shutil.rmtree(segment(nodes[2], 0))
    write_segment(nodes[2] / "segments", rows, "c", "n3")

    found, _ = compared(nodes)

    assert ("changed", AT) in {(each.kind, each.position) for each in found}
    assert blamed(found) == {"n3"}


class Counting(PlainReader):
    """Notes of which nodes the records are read to be hashed."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def block_sums(self, logs: Sequence[NodeLog], common: Comparable) -> list[Sum]:
        self.read += [log.node for log in logs]
        return super().block_sums(logs, common)


@pytest.mark.parametrize(
    ("name", "read"), [("", ["n1"]), ("end lies, earlier", ["n1"]), ("time forged", ["n1", "n3"])]
)
def test_s22_logs_whose_files_have_equal_bytes_are_hashed_once(
    name: str, read: list[str], nodes: list[Path]
) -> None:
    """Each is still compared with its own manifest."""
    reader = Counting()
    if name:
        changed(nodes[2], name)

    NodeComparison(reader, node_logs(nodes)).run()

    assert reader.read == read


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
    name: str, nodes: list[Path]
) -> None:
    """No majority is needed where a node's own files tell that they are not what it sealed."""
    kind = next(each for each in KINDS if each.name == name)
    kind.change(nodes[2])

    found, chosen = compared([nodes[0], nodes[2]])

    assert any(fits(finding, kind.expected) for finding in found), found
    assert blamed(found) == {"n3"}, found
    assert chosen is not None
    assert chosen.node == "n1"


@pytest.mark.parametrize("place", ["", "file://"], ids=["path", "url"])
@pytest.mark.parametrize("name", ["link out of the archive", "a name with dots"])
def test_a_file_outside_of_the_archive_is_not_read(
    name: str, place: str, nodes: list[Path]
) -> None:
    """What lies outside would be a finding of its own: it is forged."""
    outside = nodes[2].parents[1] / "outside.parquet"
    changed(nodes[2], "offset forged")
    shutil.copy(data(nodes[2]), outside)
    changed(nodes[2], name)

    found, _ = compared([*nodes[:2], archive_path(f"{place}{nodes[2]}")])

    assert {each.kind for each in found} <= {"copy", "manifest", "missing"}


def test_nodes_that_begin_with_one_backup_are_several_nodes(nodes: list[Path]) -> None:
    """After a restore the first segments say that they are of the node that was backed up."""
    for node in nodes:
        manifest = segment(node, 0) / "manifest.json"
        raw = json.loads(manifest.read_text())
        manifest.write_text(json.dumps({**raw, "node_id": "n1"}))

    assert compared(nodes)[0] == []


def test_of_one_node_alone_a_file_that_cannot_be_read_is_named(nodes: list[Path]) -> None:
    """What is left of the only log is still to be folded."""
    data(nodes[0]).write_bytes(b"nothing")

    found, chosen = compared([nodes[0]])

    assert ("unreadable", str(data(nodes[0]))) in {(f.kind, f.file) for f in found}
    assert chosen is not None
    assert chosen.node == "n1"


def test_an_archive_in_which_nothing_can_be_read_gives_no_log_to_fold(tmp_path: Path) -> None:
    write_node(tmp_path / "n1", "n1", LOG.rows)
    for file in tmp_path.rglob("*.parquet"):
        file.write_bytes(b"")
    comparison = NodeComparison(PlainReader(), node_logs([tmp_path / "n1"]))

    assert comparison.run() is None
    assert {f.kind for f in comparison.findings} == {"unreadable"}
    assert comparison.notes == [NOTHING_READABLE]
