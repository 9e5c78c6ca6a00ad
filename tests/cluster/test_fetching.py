"""S22: a real node that lacks sealed segments fetches them from its peers, over mutual TLS."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from cluster.processes import holdfast, running
from cluster.test_log import SMALL_SEGMENTS, whole_log
from harness.poll import until

if TYPE_CHECKING:
    from pathlib import Path

CHILDREN_S = 120.0
"""What is sealed and verified is so at the lowest priority, on a machine that has much to do."""


def spans(segments: Path) -> list[tuple[int, int]]:
    """The first and the last entry of every finished segment, as its folder's name has them."""
    names = [path.name for path in segments.iterdir() if path.name[0] != "."]
    return sorted((int(name[:20]), int(name[21:])) for name in names)


def test_s22_a_node_without_its_sealed_segments_has_a_whole_history_again(tmp_path: Path) -> None:
    """As after the install of a snapshot: state and journal are there, sealed events are not."""
    with running(tmp_path / "c", 3, *SMALL_SEGMENTS) as cluster:
        for number in range(30):
            cluster.create_topic(f"t{number}", 1)
        cluster.settled()
        victim = cluster.follower()
        segments = cluster.data(victim) / "segments"
        until(
            lambda: len(list(segments.glob("*/manifest.json"))) >= 2,
            "it seals",
            within_s=CHILDREN_S,
        )
        cluster.kill(victim)
        lost = spans(segments)
        shutil.rmtree(segments)
        segments.mkdir()
        cluster.bring_back(victim)
        expected = whole_log(cluster, cluster.leader())
        until(
            lambda: whole_log(cluster, victim) == expected,
            "its history is whole again",
            within_s=CHILDREN_S,
        )
        cluster.kill(*cluster.names)
        verified = holdfast("log", "verify", "--node-dir", str(cluster.data(victim)))
        found = spans(segments)

    assert lost
    assert len(expected) >= 30
    # A kill between a segment's sync and the drop of its records leaves them in the event log; the
    # next start seals those anew, up to the last boundary: one segment may stand for two.
    assert all(any(a <= first and last <= b for a, b in found) for first, last in lost), found
    assert verified.returncode == 0, verified.stdout + verified.stderr
