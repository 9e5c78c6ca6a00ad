"""Snapshots over a real state store: what is taken, loaded, streamed and installed (S18)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import lmdb
import pytest

from harness.consumers import Consumers, owning
from harness.core import Core
from harness.poll import until
from holdfast.coordinator.model.events import LevelRaised
from holdfast.coordinator.model.state import State
from holdfast.raft.api import SnapshotFailed, SnapshotMark
from holdfast.runtime.replica.snapshots import CHUNKS_AHEAD
from holdfast.runtime.replica.state_machine import StateMachine
from holdfast.storage.codec import event_codec
from holdfast.storage.errors import (
    DirectoryRefused,
    InstallRefused,
    Refusal,
    StateContradicted,
)
from holdfast.storage.state.state_install import StateInstall
from unit.runtime.replica.snapshot_nodes import DEADLINE, Node


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[tuple[Node, Node]]:
    pair = Node(tmp_path / "a"), Node(tmp_path / "b")
    yield pair
    for node in pair:
        node.store.close()


def nobody() -> None:
    """Nobody waits for the progress of this snapshot."""


def drain(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """What a tick loop would read: empty chunks mean that nothing is there yet."""
    end = time.monotonic() + DEADLINE
    for chunk in chunks:
        assert time.monotonic() < end
        if chunk:
            yield chunk


def test_a_start_finds_what_was_taken(nodes: tuple[Node, Node]) -> None:
    node, _ = nodes
    node.evolve(1, 40)
    node.take()
    node.evolve(41, 60)
    node.take()
    before = node.digest()
    node.store.close()
    node.reopen()

    assert node.digest() == before
    assert node.snapshots.latest() == SnapshotMark(60, 1)
    assert len(node.store.events((0, 0), 1000)) == 60


@pytest.mark.source("it replaces a constant of the codec")
def test_a_state_of_a_level_that_is_unknown_here_is_refused_in_words(
    nodes: tuple[Node, Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    """S3: a node that goes back to an older version after the level was raised."""
    node, _ = nodes
    node.apply("", LevelRaised(2))
    node.take()
    node.store.close()
    monkeypatch.setattr(event_codec, "SCHEMA_VERSION", 2)  # as in a version that knows no level 2

    with pytest.raises(DirectoryRefused, match="its state is of a newer level") as refused:
        node.reopen()
    assert refused.value.refusal is Refusal.NEWER_SCHEMA


def test_s3_a_snapshot_that_contradicts_the_stored_one_is_told_at_the_next_chance(
    nodes: tuple[Node, Node],
) -> None:
    """The writer's thread refuses it; the loop hears of it, and the one on disk stays."""
    node, _ = nodes
    node.evolve(1, 40)
    node.snapshots.take(node.machine, 2).result()
    node.evolve(41, 60)
    with pytest.raises(StateContradicted, match="is of term 1"):
        node.snapshots.take(node.machine, 1).result()

    with pytest.raises(StateContradicted, match="the stored one of 40 is of term 2"):
        node.snapshots.maybe_take(node.machine, 1)
    assert node.snapshots.latest() == SnapshotMark(40, 2)


def test_s6_a_history_that_cannot_be_stored_stops_no_snapshot(nodes: tuple[Node, Node]) -> None:
    """Nothing is decided on it; the rest is durable, and a start works."""
    node, _ = nodes
    consumers = Consumers()
    consumers.form(a=owning(0))
    node.follow(consumers.calls.core)
    good, told = node.machine.histories, node.machine.histories["g"]
    bad = told[-1]._replace(number=told[-1].number + 1, came=-1)
    node.machine.histories = good.set("g", (*told, bad))
    node.take()
    before = node.digest()
    node.store.close()
    node.reopen()

    assert node.digest() == before
    assert node.machine.histories == good


def test_a_snapshot_that_a_defect_stops_is_an_alarm(
    nodes: tuple[Node, Node], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S18: nobody looks at the future, and without snapshots the journal is never cut."""
    node, _ = nodes
    node.evolve(1, 3)
    monkeypatch.setattr(node.store, "write_snapshot", _fail)
    with pytest.raises(ZeroDivisionError):
        node.take()

    (alarm,) = caplog.records
    assert (alarm.levelname, alarm.getMessage()) == (
        "CRITICAL",
        "alarm: snapshot 3 could not be taken",
    )


def _fail(*_: object) -> None:
    raise ZeroDivisionError


def test_a_crash_between_snapshots_leaves_the_one_before(nodes: tuple[Node, Node]) -> None:
    """All or nothing: what was evolved since comes back from the journal's tail."""
    node, _ = nodes
    node.evolve(1, 40)
    node.take()
    before = node.digest()
    node.evolve(41, 60)
    node.store.close()
    node.reopen()

    assert node.digest() == before


def test_a_streamed_snapshot_is_the_same_state_events_and_chains(nodes: tuple[Node, Node]) -> None:
    full, empty = nodes
    full.evolve(1, 300)
    full.take()
    sink = empty.snapshots.begin(full.snapshots.latest(), nobody)
    for chunk in drain(full.snapshots.open(300)):
        sink.write(chunk)
    sink.seal()
    end = time.monotonic() + DEADLINE
    while not sink.ready():
        assert time.monotonic() < end
    sink.install()
    empty.machine = empty.snapshots.load()

    assert empty.digest() == full.digest()
    assert empty.snapshots.latest() == SnapshotMark(300, 1)
    assert empty.store.events((0, 0), 1000) == full.store.events((0, 0), 1000)


def test_a_stream_of_a_snapshot_that_is_gone_fails_and_does_not_end(
    nodes: tuple[Node, Node],
) -> None:
    """The receiver resets its journal to the index that was announced: it must be that state."""
    node, _ = nodes
    node.evolve(1, 10)
    node.take()
    node.evolve(11, 20)
    node.take()

    with pytest.raises(SnapshotFailed, match="moved on from index 10"):
        list(drain(node.snapshots.open(10)))


def test_a_snapshot_that_differs_from_what_was_announced_has_failed(
    nodes: tuple[Node, Node],
) -> None:
    full, empty = nodes
    full.evolve(1, 20)
    full.take()
    sink = empty.snapshots.begin(SnapshotMark(19, 1), nobody)
    for chunk in drain(full.snapshots.open(20)):
        sink.write(chunk)
    sink.seal()
    sink.join(DEADLINE)

    with pytest.raises(SnapshotFailed, match="covers 20, not 19"):
        sink.ready()
    assert StateMachine(State()).state == empty.machine.state


def test_a_snapshot_of_what_is_durable_already_keeps_its_term(nodes: tuple[Node, Node]) -> None:
    """S18: after a start only the store knows the last entry's term.

    With another term the next start would take the journal for a diverged one and drop its tail.
    """
    node, _ = nodes
    node.evolve(1, 10)
    node.take()
    node.store.close()
    node.reopen()
    node.snapshots.take(node.machine, 0).result()

    assert node.snapshots.latest() == SnapshotMark(10, 1)
    meta = node.store.meta()
    assert meta is not None
    assert (meta.index, meta.term) == (10, 1)


def test_a_stream_that_nobody_reads_any_more_leaves_no_copy(
    nodes: tuple[Node, Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    """S18: each broken stream would else keep a copy of the whole state until the next start."""
    monkeypatch.setattr("holdfast.runtime.replica.snapshots.CHUNK_BYTES", 512)
    node, _ = nodes
    node.evolve(1, 400)
    node.take()
    stream = node.snapshots.open(400)
    next(drain(stream))
    del stream

    end = time.monotonic() + DEADLINE
    while list(node.path.glob("state.copy*")):
        assert time.monotonic() < end


def test_a_snapshot_that_was_given_up_does_not_spoil_the_next_one(nodes: tuple[Node, Node]) -> None:
    """S18: both grow up in one folder, each written by a thread of its own."""
    full, empty = nodes
    full.evolve(1, 20)
    full.take()
    for _ in range(20):
        given_up = empty.snapshots.begin(SnapshotMark(20, 1), nobody)
        given_up.write(b"")
        given_up.abort()
    sink = empty.snapshots.begin(SnapshotMark(20, 1), nobody)
    for chunk in drain(full.snapshots.open(20)):
        sink.write(chunk)
    sink.seal()
    sink.join(DEADLINE)

    assert sink.ready()
    sink.install()
    assert empty.snapshots.latest() == SnapshotMark(20, 1)


def test_s18_what_is_told_of_rebalances_survives_a_restart_at_any_entry(
    nodes: tuple[Node, Node],
) -> None:
    """A snapshot holds it; the journal's tail, replayed, goes on from there."""
    node, _ = nodes
    core = rebalanced()
    whole = core.log[:]
    for cut in (3, 6, len(whole)):
        core.log[:] = whole[:cut]
        node.follow(core)
        node.take()
        told = node.machine.histories
        node.store.close()
        node.reopen()
        assert node.machine.histories == told
    assert node.machine.histories == core.histories
    assert [each.moved for each in core.histories["g"]] == [0, 1]


def test_s18_an_installed_snapshot_brings_what_is_told_of_rebalances(
    nodes: tuple[Node, Node],
) -> None:
    """A node that was too far behind describes groups as every other does."""
    full, empty = nodes
    core = rebalanced()
    full.follow(core)
    full.take()
    index = core.state.applied_index
    sink = empty.snapshots.begin(SnapshotMark(index, core.log[-1].term), nobody)
    for chunk in drain(full.snapshots.open(index)):
        sink.write(chunk)
    sink.seal()
    sink.join(DEADLINE)
    assert sink.ready()
    sink.install()
    empty.machine = empty.snapshots.load()

    assert empty.machine.histories == core.histories
    assert empty.digest() == full.digest()


def rebalanced() -> Core:
    """A coordinator whose log has two rebalances of a group."""
    consumers = Consumers()
    consumers.form(a=owning(0, 1))
    consumers.join("b")
    consumers.rejoin()
    consumers.assign(a=owning(0), b=owning(1))
    return consumers.calls.core


class SlowDisk:
    """An install whose writes wait until the test lets them go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go_on = Event()
        monkeypatch.setattr(StateInstall, "add", self._add)

    def _add(self, _chunk: bytes) -> None:
        assert self.go_on.wait(DEADLINE)


def test_s20_a_slow_disk_bounds_what_waits_in_memory(
    nodes: tuple[Node, Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was only queued is not taken; what finds no room is refused, and comes again."""
    disk, progress = SlowDisk(monkeypatch), Event()
    sink = nodes[0].snapshots.begin(SnapshotMark(20, 1), progress.set)
    accepted = 0
    while sink.write(b"x" * 100):
        accepted += 1
        assert accepted <= CHUNKS_AHEAD + 1, "one is being written, the others wait"
    assert sink.taken() == 0
    assert not progress.is_set()

    disk.go_on.set()
    until(lambda: sink.taken() == accepted * 100, "all that was accepted is written")
    assert progress.is_set(), "the leader is told at once"
    assert sink.write(b"x")
    sink.abort()
    sink.join(DEADLINE)


def test_s20_a_failed_write_is_told_before_the_end_of_the_stream(
    nodes: tuple[Node, Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the leader would wait for progress that nobody makes any more."""

    def full(_self: StateInstall, _chunk: bytes) -> None:
        raise InstallRefused("the disk is full")

    monkeypatch.setattr(StateInstall, "add", full)
    progress = Event()
    sink = nodes[0].snapshots.begin(SnapshotMark(20, 1), progress.set)
    assert sink.write(b"x")
    assert progress.wait(DEADLINE)
    with pytest.raises(SnapshotFailed, match="the disk is full"):
        sink.taken()


@pytest.mark.parametrize("step", ["__init__", "add", "seal"])
def test_s18_any_failure_of_an_install_is_told(
    nodes: tuple[Node, Node], monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Whatever it is: a thread that ended in silence would keep the leader waiting for ever."""

    def break_down(*_arguments: object) -> None:
        raise lmdb.Error("MDB_BAD_TXN")

    monkeypatch.setattr(StateInstall, step, break_down)
    sink = nodes[0].snapshots.begin(SnapshotMark(20, 1), nobody)
    sink.write(b"")
    sink.seal()
    sink.join(DEADLINE)
    for asks in (sink.taken, sink.ready):
        with pytest.raises(SnapshotFailed, match="MDB_BAD_TXN"):
            asks()


def test_s20_what_was_given_up_is_not_written_any_more(
    nodes: tuple[Node, Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next snapshot waits for the disk's present chunk, not for all that had arrived."""
    written: list[bytes] = []
    disk = SlowDisk(monkeypatch)

    def add(_self: StateInstall, chunk: bytes) -> None:
        written.append(chunk)
        assert disk.go_on.wait(DEADLINE)

    monkeypatch.setattr(StateInstall, "add", add)
    sink = nodes[0].snapshots.begin(SnapshotMark(20, 1), nobody)
    for number in range(4):
        assert sink.write(b"%d" % number)
    until(lambda: written, "the first chunk is being written")
    sink.abort()
    disk.go_on.set()
    sink.join(DEADLINE)
    assert written == [b"0"]
