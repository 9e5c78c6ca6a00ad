"""S24: whatever the power leaves of a cut, and of the cut after it, the history is whole.

`./dev test storage -- -k cut_power` runs it; a failure names its seed and steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from shutil import copytree, rmtree

import pytest

from holdfast.coordinator.model.ids import Position
from holdfast.storage.segments import cut as cutting
from holdfast.storage.segments.checkpoint import (
    CheckpointFlawed,
    checkpoint_name,
    checkpoints_in,
    read_checkpoint,
)
from holdfast.storage.segments.cut import rows_behind
from holdfast.storage.segments.fold import CannotFold, RecordsMissing
from holdfast.storage.segments.held_log import held_log
from holdfast.storage.segments.log_check import check_node
from holdfast.storage.segments.segments import read_manifest, segments_in
from storage.folder_power import Power, PowerCut
from unit.storage.segments.sealed_history import History, history

SEED = 20_261_124
SECOND_CRASHES = 2
WALKS = 40
ACTS = 12
NEVER = Position(0, 0)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> History:
    return history(tmp_path_factory.mktemp("whole"), segments=5)


def copy_of(whole: History, place: Path) -> History:
    rmtree(place, ignore_errors=True)
    copytree(whole.segments.parent, place)
    return whole._replace(segments=place / "segments", state=place / "state")


def prepare(node: History, last: Position) -> None:
    """What a leader does before it proposes."""
    cutting.make_checkpoint(node.segments, last, None, rows_behind(node.segments, node.state, last))


def carry_out(node: History, last: Position) -> None:
    """What a node does whose log tells the cut; at its start, too."""
    cutting.make_checkpoint(node.segments, last, node.digest_at(last), iter(()))
    cutting.remove_cut(node.segments, last)


def check(node: History, cut: Position, *, said: str) -> None:
    """Whatever stood behind the cut is there, and is found to be whole by who reads it."""
    held = held_log("n1", node.segments)
    rest = [row for row in node.log.rows if row.position > node.boundaries[-1]]
    log = check_node("n1", held.segments, rest, held.start)
    assert [*held.flaws, *log.flaws] == [], said
    assert log.whole, said
    assert {row.position for row in node.rows_behind(cut)} <= set(log.hashes), said
    for place, path in checkpoints_in(node.segments):
        assert read_checkpoint(path).digest == node.digest_at(place), said


def check_done(node: History, cut: Position, *, said: str) -> None:
    """Nothing is left of what was cut off, and nothing that a crash has left over."""
    check(node, cut, said=said)
    ends = [Position(*read_manifest(path).last) for path in segments_in(node.segments)]
    assert all(last > cut for last in ends), said
    assert checkpoints_in(node.segments)[0][0] == cut, said
    hidden = [path.name for path in node.segments.glob(".*")]
    assert all(name > f".{checkpoint_name(cut)}~" for name in hidden), f"{said}: {hidden}"


def broken_off(node: History, last: Position, source: Random) -> Iterator[int]:
    """Carry a cut out again and again on the same node, until the power stays; yield the steps."""
    for at in range(10_000):
        try:
            with Power(node.segments, source, at):
                carry_out(node, last)
        except PowerCut:
            yield at
        else:
            return


def test_s24_the_power_may_fail_at_each_step_of_a_cut_and_again_in_the_next_attempt(
    whole: History, tmp_path: Path
) -> None:
    first, last = whole.boundaries[1], whole.boundaries[3]
    source, place, tried = Random(SEED), tmp_path / "n1", 0
    base = copy_of(whole, tmp_path / "base")
    carry_out(base, first)
    for at in range(10_000):
        node = copy_of(base, place)
        said = f"seed {SEED}, crash at {at}"
        try:
            with Power(node.segments, source, at):
                carry_out(node, last)
            break
        except PowerCut:
            tried += 1
        check(node, last, said=said)
        for again in sorted(source.sample(range(30), SECOND_CRASHES)):
            try:
                with Power(node.segments, source, again):
                    carry_out(node, last)
            except PowerCut:
                check(node, last, said=f"{said}, then at {again}")
        carry_out(node, last)
        check_done(node, last, said=said)
    assert tried > 40, "it crashed at every step"


def test_s24_a_cut_comes_to_its_end_although_the_power_fails_a_step_later_each_time(
    whole: History, tmp_path: Path
) -> None:
    node, last = copy_of(whole, tmp_path / "n1"), whole.boundaries[2]
    steps = list(broken_off(node, last, Random(SEED)))

    assert len(steps) > 3
    check_done(node, last, said=f"seed {SEED}, {len(steps)} crashes")


def test_s24_a_node_whose_records_lead_elsewhere_keeps_them_all(
    whole: History, tmp_path: Path
) -> None:
    """The log tells another digest: either this node is wrong, or the one that proposed it."""
    node, last = copy_of(whole, tmp_path / "n1"), whole.boundaries[1]
    before = sorted(node.segments.rglob("*"))

    with pytest.raises(CannotFold, match="and the log says"):
        cutting.make_checkpoint(node.segments, last, bytes(40), iter(()))
    with pytest.raises(FileNotFoundError):
        cutting.remove_cut(node.segments, last)
    assert sorted(node.segments.rglob("*")) == before


def test_s24_a_checkpoint_with_another_digest_is_not_taken_over_from_a_peer(
    whole: History, tmp_path: Path
) -> None:
    node, last = copy_of(whole, tmp_path / "n1"), whole.boundaries[1]
    prepare(node, last)
    arrived = (node.segments / checkpoint_name(last)).rename(tmp_path / "arrived")

    with pytest.raises(CheckpointFlawed, match="it should be"):
        cutting.take_over(arrived, node.segments, last, bytes(40))
    assert checkpoints_in(node.segments) == []


class Walk:
    """A node that prepares cuts, carries them out, loses power, and has its checkpoint damaged."""

    def __init__(self, node: History, seed: int) -> None:
        self.node, self.source, self.cut = node, Random(seed), NEVER
        self.said = f"seed {seed}:"

    def run(self) -> None:
        acts = [self.prepare, self.carry_out, self.carry_out, self.damage]
        for _ in range(ACTS):
            act = self.source.choice(acts)
            self.said += f" {act.__name__}"
            act()
            check(self.node, self.cut, said=self.said)
        self._finish()

    def prepare(self) -> None:
        """A proposal of which nothing is heard again, as of a leader that is none any more."""
        self._under_power(lambda: prepare(self.node, self._later()))

    def carry_out(self) -> None:
        """A cut is on the log. Without power, the next start tries again."""
        self.cut = self._later()
        self._under_power(lambda: carry_out(self.node, self.cut))

    def damage(self) -> None:
        """The disk damages the checkpoint of a cut that was carried out; a peer has a sound one."""
        if self.cut == NEVER:
            return
        self._finish()
        path = self.node.segments / checkpoint_name(self.cut)
        sound = path.read_bytes()
        path.write_bytes(sound[: self.source.randrange(len(sound))])
        with pytest.raises(RecordsMissing):
            carry_out(self.node, self.cut)
        self._fetch(sound[: self.source.randrange(len(sound))], refused=True)
        self._under_power(lambda: self._fetch(sound))
        self._fetch(sound)

    def _fetch(self, sent: bytes, *, refused: bool = False) -> None:
        arrived = self.node.segments / f".{checkpoint_name(self.cut)}.arrived"
        arrived.write_bytes(sent)
        digest = self.node.digest_at(self.cut)
        if not refused:
            cutting.take_over(arrived, self.node.segments, self.cut, digest)
            return
        with pytest.raises(CheckpointFlawed):
            cutting.take_over(arrived, self.node.segments, self.cut, digest)

    def _later(self) -> Position:
        """A boundary that is not cut off yet; the last cut itself, if there is none."""
        left = [last for last in self.node.boundaries if last > self.cut]
        return self.source.choice(left) if left else self.cut

    def _under_power(self, act: Callable[[], None]) -> None:
        at = self.source.randrange(60)
        try:
            with Power(self.node.segments, self.source, at):
                act()
        except PowerCut:
            self.said += f" (power at {at})"

    def _finish(self) -> None:
        if self.cut != NEVER:
            carry_out(self.node, self.cut)
            check_done(self.node, self.cut, said=self.said)


@pytest.mark.parametrize("walk", range(WALKS))
def test_s24_a_node_that_is_cut_off_again_and_again_under_faults_loses_nothing_behind_the_cut(
    whole: History, tmp_path: Path, walk: int
) -> None:
    Walk(copy_of(whole, tmp_path / "n1"), SEED + walk).run()
