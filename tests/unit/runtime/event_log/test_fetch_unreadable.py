"""A sealed segment that cannot be read here: it is named, and the node says what to do (S22)."""

from __future__ import annotations

import asyncio
from shutil import copytree, rmtree
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast.runtime.event_log.segment_calls import SegmentSource
from holdfast.storage.segments.segment_reader import CLUSTER_FILE
from holdfast.storage.segments.segment_writer import write_segment
from holdfast.storage.segments.segments import MANIFEST, SegmentUnreadable, segments_in
from unit.runtime.event_log.fetching_node import BOUNDARIES, LAST, LOG, Node, verify_here

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def manifest_damaged(segment: Path) -> None:
    (segment / MANIFEST).write_bytes(b"{")


def file_damaged(segment: Path) -> None:
    (segment / CLUSTER_FILE).write_bytes(b"PAR1 and nothing of it")


def file_of_something_else(segment: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), segment / CLUSTER_FILE)


def file_gone(segment: Path) -> None:
    (segment / CLUSTER_FILE).unlink()


@pytest.mark.parametrize(
    "damage", [manifest_damaged, file_damaged, file_of_something_else, file_gone]
)
def test_s22_a_segment_that_cannot_be_read_is_named_until_it_is_moved_away(
    damage: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S22: what is missing cannot be known then; a place that is told all the same would be wrong.

    Moved away, it is missing, and fetched.
    """
    monkeypatch.setattr("holdfast.runtime.event_log.fetch.run_child", verify_here)
    node = Node(tmp_path, live=31)
    node.sources["n2"] = SegmentSource(tmp_path / "peer")
    for last in BOUNDARIES:
        write_segment(tmp_path / "peer", LOG[last - 10 : last], "c", "n2")
    for path in segments_in(tmp_path / "peer"):
        copytree(path, node.segments / path.name)
    broken = segments_in(node.segments)[1]
    damage(broken)
    fetching = node.fetching()

    with pytest.raises(SegmentUnreadable):
        asyncio.run(fetching.fetch())

    assert fetching.known_gaps is None
    assert f"the sealed segment {broken} cannot be read" in fetching.problem
    assert "move the segment's folder out of the data directory" in fetching.problem

    rmtree(broken)
    asyncio.run(fetching.fetch())

    assert fetching.problem == ""
    assert fetching.missing == ()
    assert node.indexes() == list(range(1, LAST + 1))
