"""S24: a node deletes history only behind a checkpoint that is the one on the log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree
from threading import Event

import pytest

from harness.plain_child import run_plain_child
from harness.poll import until_async
from holdfast.coordinator.model.events import Cause, HistoryCut, Record
from holdfast.coordinator.model.ids import Position
from holdfast.runtime.event_log import cutting as module
from holdfast.runtime.event_log.cutting import CannotCut, Cutting, CuttingPlace
from holdfast.runtime.event_log.seal import TURN_SECONDS_AN_EVENT
from holdfast.runtime.event_log.segment_calls import SegmentSource
from holdfast.storage.errors import StateFailed
from holdfast.storage.segments.checkpoint import checkpoint_name, checkpoints_in, read_checkpoint
from holdfast.storage.segments.cut import make_checkpoint
from holdfast.storage.segments.segments import read_manifest, segments_in
from unit.storage.segments.sealed_history import History, history


@pytest.fixture(autouse=True)
def plain_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "run_child", run_plain_child)


class Node:
    """A node's disk, and the cut that its state tells."""

    def __init__(self, path: Path, turn: int = 0) -> None:
        self.disk: History = history(path)
        self.cut: HistoryCut | None = None
        self.segments_when_durable: list[int] = []
        self.refuses_to_be_durable = False
        self.paused: list[float] = []
        self.sources: dict[str, SegmentSource] = {}
        self._turn = turn

    def cutting(self) -> Cutting:
        place = CuttingPlace(self.disk.state, self.disk.segments, self._turn)
        return Cutting(
            *(place, lambda: self.cut, self._make_durable, lambda: None),
            *(lambda: ("n2", "n3"), self._call, self._pause),
        )

    async def _make_durable(self) -> None:
        self.segments_when_durable.append(len(segments_in(self.disk.segments)))
        if self.refuses_to_be_durable:
            raise StateFailed(self.disk.state, "snapshot", "the disk says no", 5)

    async def _pause(self, seconds: float) -> None:
        self.paused.append(seconds)

    def _call(self, peer: str, request: bytes) -> Iterator[bytes]:
        if peer not in self.sources:
            raise TimeoutError(f"{peer} does not answer")
        return self.sources[peer].answer(request)

    def tells(self, number: int, digest: bytes | None = None) -> HistoryCut:
        """The log says: cut off up to that boundary."""
        last = self.disk.boundaries[number]
        self.cut = HistoryCut(last, 5, digest or self.disk.digest_at(last))
        return self.cut

    def carry_out(self) -> None:
        asyncio.run(self.cutting().carry_out())

    def left(self) -> int:
        return len(segments_in(self.disk.segments))


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path / "n1")


def test_s24_a_cut_on_the_log_is_carried_out(node: Node) -> None:
    last = node.tells(1).last

    node.carry_out()

    assert node.left() == 1
    assert [place for place, _ in checkpoints_in(node.disk.segments)] == [last]
    assert node.segments_when_durable == [3], "the state that tells the cut is durable before"


def test_s24_nothing_goes_before_the_state_that_tells_the_cut_is_durable(node: Node) -> None:
    """Else a start from an older state would look for what is gone."""
    node.tells(1)
    node.refuses_to_be_durable = True

    with pytest.raises(StateFailed):
        node.carry_out()
    assert node.left() == 3


def test_s24_a_node_with_another_history_deletes_nothing(node: Node) -> None:
    node.tells(1, digest=bytes(40))

    with pytest.raises(CannotCut, match="and the log says"):
        node.carry_out()
    assert node.left() == 3
    assert checkpoints_in(node.disk.segments) == []


def test_s24_the_leader_prepares_what_it_proposes_and_deletes_nothing_yet(node: Node) -> None:
    last = node.disk.boundaries[0]

    command = asyncio.run(node.cutting().prepare(last))

    assert command.last == last
    assert command.digest == node.disk.digest_at(last)
    assert node.left() == 3
    assert [place for place, _ in checkpoints_in(node.disk.segments)] == [last]


def test_s24_a_history_that_cannot_be_folded_is_not_proposed(node: Node) -> None:
    rmtree(segments_in(node.disk.segments)[0])

    with pytest.raises(CannotCut, match="missing"):
        asyncio.run(node.cutting().prepare(node.disk.boundaries[1]))


def test_s24_each_node_folds_in_its_turn_the_more_records_the_later(tmp_path: Path) -> None:
    node = Node(tmp_path, turn=2)
    last = node.tells(1).last
    count = len(node.disk.rows_through(last))

    node.carry_out()

    assert node.paused == [pytest.approx(2 * count * TURN_SECONDS_AN_EVENT)]


def peer_with_checkpoint(path: Path, number: int) -> History:
    disk = history(path, node="n3")
    last = disk.boundaries[number]
    make_checkpoint(disk.segments, last, disk.digest_at(last), iter(()))
    return disk


def test_s24_a_node_that_lacks_records_takes_over_a_peers_checkpoint(
    node: Node, tmp_path: Path
) -> None:
    """It was away while its peers cut their history off: its own segments end before the cut."""
    peer = peer_with_checkpoint(tmp_path / "n3", 1)
    node.sources["n3"] = SegmentSource(peer.segments)
    last = node.tells(1).last
    rmtree(segments_in(node.disk.segments)[1])

    node.carry_out()

    taken = read_checkpoint(node.disk.segments / checkpoint_name(last))
    assert taken.digest == node.disk.digest_at(last)
    assert node.left() == 1
    assert not list(node.disk.segments.glob(".*"))


def test_s24_a_peers_checkpoint_is_refused_if_it_is_not_the_one_on_the_log(
    node: Node, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    peer = peer_with_checkpoint(tmp_path / "n3", 1)
    path = checkpoints_in(peer.segments)[0][1]
    path.write_bytes(path.read_bytes()[:-5])
    node.sources["n3"] = SegmentSource(peer.segments)
    node.tells(1)
    rmtree(segments_in(node.disk.segments)[1])
    before = node.left()

    with pytest.raises(CannotCut, match="damaged"):
        node.carry_out()

    assert node.left() == before
    assert checkpoints_in(node.disk.segments) == []
    assert "is not taken over" in caplog.text


def test_s24_a_damaged_checkpoint_is_fetched_again_at_the_next_start(
    node: Node, tmp_path: Path
) -> None:
    peer = peer_with_checkpoint(tmp_path / "n3", 1)
    node.sources["n3"] = SegmentSource(peer.segments)
    last = node.tells(1).last
    node.carry_out()
    path = node.disk.segments / checkpoint_name(last)
    path.write_bytes(b"damaged")

    node.carry_out()

    assert read_checkpoint(path).digest == node.disk.digest_at(last)


def test_a_failure_is_told_and_tried_again_at_the_next_look(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is swallowed, and nothing is deleted meanwhile."""
    caplog.set_level(logging.INFO)

    async def story() -> None:
        cutting = node.cutting()
        node.tells(1, digest=bytes(40))
        cutting.start()
        await until_async(lambda: "Nothing was deleted" in caplog.text, "the failure is told")
        assert node.left() == 3
        assert "and the log says" in cutting.problem
        cut = node.tells(1)
        cutting.on_applied([_record(cut)], 99)
        await until_async(lambda: node.left() == 1, "it is carried out")
        await until_async(lambda: not cutting.problem, "and nothing is told any more")
        await cutting.close()

    asyncio.run(story())


def test_what_the_log_does_not_say_is_not_done(node: Node) -> None:
    node.carry_out()
    assert node.left() == 3


def _record(event: HistoryCut) -> Record:
    return Record(Position(99, 0), "", 1, 0, 0, Cause("S24", "CutHistory"), "", "", event)


def test_retention_is_told_the_size_and_the_age_of_each_segment(node: Node) -> None:
    parts = asyncio.run(node.cutting().sealed())

    for part, path, last in zip(
        parts, segments_in(node.disk.segments), node.disk.boundaries, strict=True
    ):
        newest = [record for record in node.disk.log.records if record.position <= last][-1]
        assert (part.last, part.last_ms) == (last, newest.log_time_ms)
        assert part.size == sum(file.stat().st_size for file in path.iterdir())
        assert part.records == read_manifest(path).count


def test_a_stop_waits_until_a_removal_has_ended(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory is unlocked after it, and may be another process's by then."""
    began, may_end, ended = Event(), Event(), list[str]()

    def slow(segments: Path, last: Position) -> int:
        del segments, last
        began.set()
        may_end.wait(20)
        ended.append("removed")
        return 0

    monkeypatch.setattr(module, "remove_cut", slow)

    async def story() -> None:
        cutting = node.cutting()
        node.tells(1)
        cutting.start()
        await until_async(began.is_set, "the removal begins")
        closing = asyncio.ensure_future(cutting.close())
        await asyncio.sleep(0)
        assert not closing.done()
        may_end.set()
        await closing
        assert ended == ["removed"]

    asyncio.run(story())


def test_s22_a_node_tells_where_its_newest_segment_ends(node: Node) -> None:
    assert asyncio.run(node.cutting().reached()) == node.disk.boundaries[-1]

    rmtree(node.disk.segments)
    assert asyncio.run(node.cutting().reached()) == Position(0, 0)
