"""What nodes tell of their logs is kept in the form that a replay compares (S3)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

from holdfast.chaos.cluster.target import Target
from holdfast.chaos.workload.anchors import ANCHORS, Anchors
from holdfast.replay.read.anchor_files import Anchor, read_anchors
from holdfast.v1.admin_pb2 import DescribeClusterResponse, LogAnchor

TOLD = LogAnchor(
    format=1,
    cluster_id="c",
    node="told",
    index=1 << 40,
    log_time_ms=7,
    chain=b"\x01" * 32,
    digest=b"\x00" * 7 + b"\x02",
    version="0.2.0",
    recovery_number=3,
)


class Nodes:
    """One node tells, one has no log yet, one is down."""

    names = ("told", "empty", "down")

    async def describe(self, name: str, *, anchor: bool) -> DescribeClusterResponse | None:
        assert anchor
        answers = {"told": DescribeClusterResponse(anchor=TOLD), "empty": DescribeClusterResponse()}
        return answers.get(name)


def test_a_replay_reads_what_a_node_told_and_misses_nobody_else(tmp_path: Path) -> None:
    file = tmp_path / ANCHORS
    anchors = Anchors(cast("Target", Nodes()), file)

    asyncio.run(anchors.ask(*Nodes.names))
    asyncio.run(anchors.ask("told"))

    told = Anchor("c", "told", 1 << 40, 7, b"\x01" * 32, 2, 3)
    assert [each._replace(source="") for each in read_anchors([file])] == [told, told]


def test_who_never_began_to_ask_ends_at_once(tmp_path: Path) -> None:
    """As after a run that failed before its work began."""
    asyncio.run(Anchors(cast("Target", Nodes()), tmp_path / ANCHORS).stop())

    assert not (tmp_path / ANCHORS).exists()
