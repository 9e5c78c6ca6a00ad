"""The five ways in which the stock engine loses what it acknowledged, and the same on ours.

E-1, E-2, E-4, the orphaned dump (E-3) and the power cut (E-5): each first on PySyncObj as
published, where the loss must be seen, then the same schedule on the overlay and its journal, where
nothing may be lost. No lost message is needed for any of them.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import signal
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pysyncobj.syncobj
import pytest

from cluster.power_files import NONE
from cluster.power_supply import Disk, why_no_fuse
from harness.children import environment
from harness.cluster import HEARTBEAT, SETTINGS, Cluster
from harness.poll import until
from harness.stock import SUCCESS, StockWorld
from harness.stock_process import AFTER, BEFORE, GO
from holdfast.raft.messages import Append
from holdfast.storage.journal.journal import Entry
from holdfast.storage.journal.lmdb_journal import LmdbJournal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SMALL = replace(SETTINGS, batch_bytes=100, chunk_bytes=100)
TEN = [f"v{i}" + "x" * 40 for i in range(10)]
stock_journal: Any = importlib.import_module("pysyncobj.journal")


@pytest.fixture(autouse=True)
def _quiet_engine_and_own_clock() -> Iterator[None]:
    """The engine logs what it does wrong; and it keeps its clock in a module global."""
    before = pysyncobj.syncobj.monotonicTime
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
    pysyncobj.syncobj.monotonicTime = before


# --- E-1: the leader goes back, sends a tail again, and dies; C lags ---


def test_r1_the_stock_engine_loses_acknowledged_commands() -> None:
    """An ack rewinds the leader; what it sends again cuts what the follower has acknowledged."""
    w = StockWorld("ABC", appendEntriesBatchSizeBytes=100)
    w.connect("AB")
    w.elect("A", "AB")
    acknowledged = w.acknowledged("A", TEN)
    w.tick("A")
    w.deliver("A", "B")
    w.deliver("B", "A")
    w.clock.advance(HEARTBEAT)
    w.tick("A")
    sent = len(w.queues["A", "B"])
    w.deliver("A", "B", 1)
    w.deliver("B", "A")
    w.clock.advance(HEARTBEAT)
    w.tick("A")
    w.deliver("A", "B", sent - 1)
    w.deliver("B", "A")
    w.tick("A")
    assert acknowledged == TEN
    w.deliver("A", "B", 1)
    w.cut("AB")
    w.connect("BC")
    w.clock.advance(2)
    w.elect("B", "BC")
    assert len(w.nodes["B"].items) < len(TEN)


def test_r1_the_overlay_loses_none_of_them() -> None:
    """An ack rewinds nothing, and a batch that arrives again cuts nothing."""
    c = Cluster(settings=SMALL)
    c.elect("A")
    c.network.cut("A", "C")
    term = c.engine("A").status().term
    for value in TEN:
        c.engine("A").propose(value.encode(), term)
    c.tick("A")
    sent = c.network.waiting("A", "B")
    again = next(m for m in sent if isinstance(m, Append) and m.entries)
    c.network.deliver("A", "B", 1)
    c.engine("B").overlay.completion.run()
    c.network.deliver("B", "A")
    c.clock.advance(HEARTBEAT)
    c.tick("A")
    c.exchange("A", "B")
    c.tick("A")
    c.consumer("A").evolve()
    assert len(c.consumer("A").acknowledged) == len(TEN)
    c.engine("B").on_message("A", again)
    c.crash("A")
    c.network.connect("B", "C")
    c.elect("B", "BC")
    c.pump("BC", rounds=6, seconds=HEARTBEAT)
    assert c.consumer("B").values == TEN
    assert c.consumer("C").values == TEN


# --- E-2: a deposed leader with an entry of its own is sent a snapshot ---


def test_r2_the_stock_engine_acknowledges_what_nobody_else_has() -> None:
    """A chunk of the snapshot raises the commit index to the end of the unverified tail."""
    w = StockWorld("ABC", logCompactionBatchSize=64)
    w.connect("AB", "AC", "BC")
    w.elect("A", "ABC")
    w.cut("AB", "AC")
    told: list[int] = []
    w.nodes["A"].put("orphan", callback=lambda _result, error: told.append(error))
    w.tick("A")
    w.elect("B", "BC")
    for i in range(50):
        w.nodes["B"].put(f"new{i}")
    w.pump("BC", rounds=6, seconds=HEARTBEAT)
    w.nodes["B"].forceLogCompaction()
    w.pump("BC", rounds=3, seconds=HEARTBEAT)
    w.connect("AB")
    for _ in range(3):
        w.clock.advance(HEARTBEAT)
        w.calm()
        w.tick("B")
        w.deliver("B", "A", 2)
        w.tick("A")
        if told:
            break
        w.deliver("A", "B")
    assert told == [SUCCESS]
    assert "orphan" not in w.nodes["B"].items


def test_r2_the_overlay_tells_that_it_is_lost() -> None:
    """Chunk by chunk: never acknowledged, and in the end A holds what the others hold."""
    c = Cluster(settings=SMALL)
    c.elect("A")
    c.isolate("A")
    orphan = c.put("A", "orphan")
    c.elect("B", "BC")
    for i in range(50):
        c.put("B", f"new{i}")
    c.pump("BC", rounds=6, seconds=HEARTBEAT)
    c.consumer("B").snapshot()
    c.pump("BC", rounds=3, seconds=HEARTBEAT)
    c.network.connect("A", "B")
    for _ in range(400):
        c.clock.advance(HEARTBEAT / 4)
        c.calm()
        c.tick("B")
        c.network.deliver("B", "A", 2)
        c.tick("A")
        c.consumer("A").evolve()
        c.network.deliver("A", "B")
        assert orphan not in c.consumer("A").acknowledged
    assert c.disks["A"].snapshot.mark.index > 0, "it was sent as a snapshot"
    assert c.consumer("A").values == c.consumer("B").values == [f"new{i}" for i in range(50)]


# --- E-4: kill -9 while the journal is cut at entry 500 of 1,000 ---

R4_STOCK = """
import os, sys
from pysyncobj.journal import FileJournal
journal = FileJournal(sys.argv[1])
for i in range(1, 1001):
    journal.add(b"c", i, 1)
add, left = FileJournal.add, iter(range(10))
def killed(self, *args):
    if next(left, None) is None:
        os.kill(os.getpid(), 9)
    add(self, *args)
FileJournal.add = killed
journal.deleteEntriesTo(500)
"""
R4_OURS = """
import os, sys
from pathlib import Path
from holdfast.storage.journal import lmdb_journal as own
from holdfast.storage.journal.journal import Entry, JournalBatch
own.LmdbJournal.create(Path(sys.argv[1]))
journal = own.LmdbJournal(Path(sys.argv[1]))
journal.load()
journal.commit(JournalBatch(append=[Entry(i, 1, b"c") for i in range(1, 1001)]))
cut = own._delete_through
def killed(txn, database, last):
    cut(txn, database, 10)
    os.kill(os.getpid(), 9)
own._delete_through = killed
journal.commit(JournalBatch(cut_to=(500, 1), commit_index=900))
"""


def killed_in_a_cut(program: str, path: Path) -> None:
    """Run it until it kills itself."""
    command = [sys.executable, "-c", program, str(path)]
    done = subprocess.run(command, env=environment(), capture_output=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr


def test_r4_the_stock_journal_loses_its_tail(tmp_path: Path) -> None:
    """It is rewritten in place, entry by entry: 490 of the 500 that were to stay are gone."""
    killed_in_a_cut(R4_STOCK, tmp_path / "journal")
    journal = stock_journal.FileJournal(str(tmp_path / "journal"))
    assert [journal[at][1] for at in (0, -1)] == [501, 510]
    journal._destroy()


def test_r4_our_journal_is_cut_whole_or_not_at_all(tmp_path: Path) -> None:
    """A cut is one transaction."""
    killed_in_a_cut(R4_OURS, tmp_path / "raft")
    journal = LmdbJournal(tmp_path / "raft")
    assert [entry.index for entry in journal.load().entries] == list(range(1, 1001))
    journal.close()


# --- the orphaned dump (E-3): all are killed while they write their dumps ---


def started(what: str, folder: Path) -> tuple[subprocess.Popen[str], list[str]]:
    """Three stock nodes in a process, and what they acknowledged; the process waits."""
    command = [sys.executable, "-m", "harness.stock_process", what, str(folder)]
    process = subprocess.Popen(
        command, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    acknowledged: list[str] = json.loads(process.stdout.readline())
    assert len(acknowledged) == BEFORE + AFTER
    return process, acknowledged


def kill(process: subprocess.Popen[str]) -> None:
    """Kill -9, and read nothing more."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        pipe.close()


def left(folder: Path) -> list[str]:
    """What three stock nodes hold after their restart."""
    command = [sys.executable, "-m", "harness.stock_process", "left", str(folder)]
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=60, check=True
    )
    found: list[str] = json.loads(done.stdout)
    return found


def test_orphaned_dump_the_stock_engine_throws_its_journal_away(tmp_path: Path) -> None:
    """The forked child outlives its parent and renames the dump, which the journal then lacks."""
    process, acknowledged = started("dump", tmp_path)
    kill(process)
    (tmp_path / GO).touch()
    until(lambda: len(list(tmp_path.glob("*.dump"))) == 3, "the orphans have written their dumps")
    found = left(tmp_path)
    assert len(found) < len(acknowledged)
    assert set(acknowledged) - set(found) >= set(acknowledged[-AFTER // 2 :])


def test_orphaned_dump_the_overlay_reads_on_from_its_journal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All three are killed after the snapshot was stored and before the journal was cut at it."""
    c = Cluster()
    c.elect("A")
    values = [f"v{i}" for i in range(BEFORE + AFTER)]
    for value in values[:BEFORE]:
        c.put("A", value)
    c.pump(rounds=6, seconds=HEARTBEAT)
    for node in c.nodes.values():
        monkeypatch.setattr(node.engine, "cut", lambda _index: None)  # killed before it
        node.consumer.snapshot()
    for value in values[BEFORE:]:
        c.put("A", value)
    c.pump(rounds=6, seconds=HEARTBEAT)
    assert len(c.consumer("A").acknowledged) == len(values)
    for name in "ABC":
        c.crash(name)
    for name in "ABC":
        c.start(name)
        assert c.disks[name].snapshot.values == tuple(values[:BEFORE])
    c.connect_all()
    c.elect("B")
    assert [c.consumer(name).values for name in "ABC"] == [values] * 3


# --- the power cut (E-5) ---


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A disk that forgets what was not synced, if a file system can be mounted here."""
    (tmp_path / "disk").mkdir()
    reason = why_no_fuse(tmp_path / "disk")
    if reason:
        pytest.skip(f"no FUSE: {reason}; that nothing is synced is tested below all the same")
    made = Disk(tmp_path / "disk", tmp_path / "backing")
    made.power_on()
    yield made
    made.power_off()


def cut(disk: Disk, process: subprocess.Popen[str]) -> None:
    """The process ends with the power; nothing that was not synced is kept."""
    disk.begin_cut()
    disk.await_cut()
    process.kill()
    disk.end_cut(NONE)
    kill(process)
    disk.power_on()


def test_power_cut_the_stock_engine_loses_everything(disk: Disk) -> None:
    """Thirty commands, acknowledged by three nodes; after the cut not one of them holds one."""
    process, acknowledged = started("put", disk.directory)
    cut(disk, process)
    assert set(left(disk.directory)) & set(acknowledged) == set()


def test_power_cut_our_journal_keeps_everything(disk: Disk) -> None:
    """The same cut; whole nodes of ours meet it in tests/cluster/test_power_cut.py."""
    program = R4_OURS.partition("cut =")[0] + "print(flush=True)\nsys.stdin.read()\n"
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(disk.directory / "raft")],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    cut(disk, process)
    journal = LmdbJournal(disk.directory / "raft")
    assert journal.load().entries == tuple(Entry(i, 1, b"c") for i in range(1, 1001))
    journal.close()


def test_power_cut_the_stock_journal_is_never_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not when entries are added, not when a vote is stored."""
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda _fd: synced.append("fsync"))
    monkeypatch.setattr(stock_journal.FileJournal, "flush", lambda _self: synced.append("msync"))
    w = StockWorld("A", tmp_path)
    w.elect("A", "A")
    w.nodes["A"].put("x")
    w.pump("A", rounds=4, seconds=HEARTBEAT)
    assert w.nodes["A"].items == ["x"]
    assert synced == []
    w.close()
