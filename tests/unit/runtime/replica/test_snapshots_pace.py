"""When snapshots are taken, and how their writing leaves time to callers (S18)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.coordinator.model.events import LogEntry
from holdfast.runtime.event_log.rests import SLICE_S
from holdfast.runtime.replica.snapshots import StateSnapshots
from holdfast.storage.codec.event_codec import encode_entry
from unit.runtime.replica.snapshot_nodes import DEADLINE, Node, entry_part


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[tuple[Node, Node]]:
    pair = Node(tmp_path / "a"), Node(tmp_path / "b")
    yield pair
    for node in pair:
        node.store.close()


def test_s18_nodes_take_their_first_snapshots_at_different_entries(
    nodes: tuple[Node, Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each costs callers a little; of all nodes at once it would be seen."""
    monkeypatch.setattr("holdfast.runtime.replica.snapshots.DIRTY_BYTES", 6_000)
    taken: dict[int, list[int]] = {}
    for node, ahead in zip(nodes, (0, 3_000), strict=True):
        node.snapshots = StateSnapshots(node.store, node.path / "copy", ahead_bytes=ahead)
        node.machine = node.snapshots.load()
        taken[ahead] = taken_at(node, 300)

    entry = len(encode_entry(LogEntry(50, 50, (entry_part(50),))))
    assert taken[0][0] == pytest.approx(6_000 / entry, rel=0.1)
    assert taken[3_000][0] == pytest.approx(3_000 / entry, rel=0.1)
    for at in taken.values():
        assert at[1] - at[0] == pytest.approx(6_000 / entry, rel=0.1), "as far apart as ever"


def taken_at(node: Node, last: int) -> list[int]:
    """The indexes at which it takes snapshots by itself."""
    found = []
    for index in range(1, last + 1):
        node.evolve(index, index)
        before = node.snapshots._under_way
        node.snapshots.maybe_take(node.machine, 1)
        if (now := node.snapshots._under_way) is not before and now is not None:
            now.result(DEADLINE)
            found.append(index)
    return found


@pytest.mark.parametrize("cause", ["a stop", "the next snapshot is due"])
def test_s18_a_snapshot_rests_no_longer_once_somebody_waits_for_it(
    nodes: tuple[Node, Node], monkeypatch: pytest.MonkeyPatch, cause: str
) -> None:
    """Or a stop took long, and snapshots fell ever further behind a long load."""
    monkeypatch.setattr("holdfast.runtime.replica.snapshots.DIRTY_BYTES", 3_000)
    node, _ = nodes
    node.snapshots = StateSnapshots(node.store, node.path / "copy", rest=3_600 / SLICE_S)
    node.machine = node.snapshots.load()
    node.evolve(1, 2_000)
    under_way = node.snapshots.take(node.machine, 1)
    assert not node.snapshots._rests.hurried

    if cause == "a stop":
        asyncio.run(node.snapshots.close(node.machine, 1))
    else:
        node.evolve(2_001, 2_100)

    under_way.result(DEADLINE)
    assert node.snapshots.latest().index == 2_000
