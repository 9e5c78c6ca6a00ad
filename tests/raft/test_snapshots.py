"""S18, E-1: snapshots between engines: streamed, installed, broken off, and never half there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.cluster import HEARTBEAT, SETTINGS, Cluster
from holdfast.raft.api import EngineStopped
from holdfast.raft.core.snapshot_transfer import WINDOW

SMALL = replace(SETTINGS, batch_bytes=100, chunk_bytes=100)


def cut_off_c_and_compact(settings: object = None) -> Cluster:
    c = Cluster(settings=settings or SMALL)  # type: ignore[arg-type]  # a test's own
    c.elect("A")
    c.isolate("C")
    for i in range(60):
        c.put("A", f"v{i}")
    c.pump("AB", rounds=4, seconds=HEARTBEAT)
    c.consumer("A").snapshot()
    c.pump("AB", rounds=2, seconds=HEARTBEAT)
    assert c.engine("A").status().first_index > 50
    return c


def test_s18_a_follower_behind_the_journal_gets_a_snapshot_and_goes_on() -> None:
    """While it is streamed, the leader commits on; nothing is skipped or doubled."""
    c = cut_off_c_and_compact()
    c.connect_all()
    for i in range(60, 70):
        c.put("A", f"v{i}")
        c.pump(seconds=0.02)
    c.pump(rounds=10, seconds=HEARTBEAT)
    assert c.consumer("C").values == [f"v{i}" for i in range(70)]
    assert c.disks["C"].journal.load().anchor[0] > 50


def test_s18_no_second_install_before_the_first_is_evolved() -> None:
    """The consumer stalls; what it finds on disk must be what its next item says."""
    c = cut_off_c_and_compact()
    c.connect_all()
    first = c.disks["A"].snapshot.mark
    c.pump(rounds=8, seconds=HEARTBEAT, evolve=False)
    assert c.disks["C"].snapshot.mark == first
    c.isolate("C")
    c.consumer("A").evolve()
    for i in range(60, 90):
        c.put("A", f"v{i}")
    c.pump("AB", rounds=3, seconds=HEARTBEAT)
    c.consumer("A").snapshot()
    c.pump("AB", rounds=3, seconds=HEARTBEAT)
    c.connect_all()
    c.pump(rounds=8, seconds=HEARTBEAT, evolve=False)
    assert c.disks["C"].snapshot.mark == first
    c.pump(rounds=8, seconds=HEARTBEAT)
    assert c.consumer("C").values == [f"v{i}" for i in range(90)]


def test_s18_a_snapshot_that_breaks_off_or_arrives_broken_is_sent_anew() -> None:
    """A copy that cannot be read, a digest that does not match: neither stalls the peer."""
    c = cut_off_c_and_compact()
    c.disks["A"].broken_reads, c.disks["C"].broken_installs = 2, 2
    c.connect_all()
    c.pump(rounds=80, seconds=HEARTBEAT)
    assert c.consumer("C").values == [f"v{i}" for i in range(60)]
    assert c.engine("A").status().role == "leader"


def test_s18_a_slow_install_changes_nothing_until_it_is_durable() -> None:
    """A crash before that finds the old state and the old journal."""
    c = cut_off_c_and_compact()
    c.disks["C"].slow_installs = True
    c.connect_all()
    c.pump(rounds=10, seconds=HEARTBEAT)
    assert c.consumer("C").values == []
    assert c.engine("A").status().role == "leader"
    c.restart("C")
    c.disks["C"].slow_installs = False
    c.connect_all()
    c.pump(rounds=12, seconds=HEARTBEAT)
    assert c.consumer("C").values == [f"v{i}" for i in range(60)]


def test_s20_a_slow_disk_at_the_receiver_holds_back_the_leader() -> None:
    """What arrived counts when the disk took it: more than a window never waits in memory."""
    settings = replace(SMALL, chunk_bytes=30)
    c = cut_off_c_and_compact(settings)
    disk = c.disks["C"]
    disk.slow_writes = True
    c.connect_all()
    c.pump(rounds=60, seconds=HEARTBEAT)
    assert 0 < disk.waiting <= WINDOW * settings.chunk_bytes
    assert c.engine("A").status().role == "leader"

    disk.slow_writes = False
    c.pump(rounds=30, seconds=HEARTBEAT)
    assert c.consumer("C").values == [f"v{i}" for i in range(60)]


def test_s20_a_disk_that_fails_while_it_takes_a_snapshot_gets_another_one() -> None:
    """Nobody waits for the end of a stream whose bytes nobody writes any more."""
    c = cut_off_c_and_compact(replace(SMALL, chunk_bytes=30))
    c.disks["C"].broken_writes = 2
    c.connect_all()
    c.pump(rounds=120, seconds=HEARTBEAT)
    assert c.consumer("C").values == [f"v{i}" for i in range(60)]


def test_s20_a_disk_that_goes_on_failing_costs_the_leader_few_copies() -> None:
    """Each stream is a copy of the whole state on the leader's disk."""
    c = cut_off_c_and_compact(replace(SMALL, chunk_bytes=30))
    c.disks["C"].broken_writes = 1_000
    c.connect_all()
    rounds = 100
    c.pump(rounds=rounds, seconds=HEARTBEAT)
    assert 1 < c.disks["A"].opened <= 1 + rounds * HEARTBEAT / SMALL.election_max
    assert c.engine("A").status().role == "leader"


def test_s18_a_crash_between_install_and_journal_is_repaired_at_start() -> None:
    """The state is renamed, the journal not yet reset: the start joins them."""
    c = cut_off_c_and_compact()
    c.crash("C")
    c.disks["C"].snapshot = c.disks["A"].snapshot
    c.start("C")
    c.connect_all()
    c.put("A", "after")
    c.pump(rounds=6, seconds=HEARTBEAT)
    assert c.consumer("C").values == [*[f"v{i}" for i in range(60)], "after"]


def test_s18_lost_chunks_of_a_snapshot_and_a_receiver_that_forgets() -> None:
    """Loss, then a crash of the receiver in the middle: it ends whole all the same."""
    c = cut_off_c_and_compact()
    c.connect_all()
    for round_ in range(60):
        if round_ % 4 == 1:
            c.network.lose("A", "C", 1)
        if round_ == 3:
            c.restart("C")
            c.connect_all()
        c.pump(seconds=HEARTBEAT)
    assert c.consumer("C").values == [f"v{i}" for i in range(60)]


def test_d1_a_snapshot_keeps_the_suffix_that_matches() -> None:
    """The stock engine wipes the follower's log past the snapshot, acknowledged entries too."""
    c = Cluster()
    c.elect("A")
    for i in range(5):
        c.put("A", f"v{i}")
    c.network.deliver("A", "B")
    c.engine("B").overlay.completion.run()
    c.tick("B")
    b = c.engine("B").status()
    index = b.commit_index + 2
    assert b.last_index > index
    c.engine("B").overlay.journal.rebase(index, b.term)
    c.engine("B").overlay.completion.run()
    assert c.engine("B").status().last_index == b.last_index
    assert c.disks["B"].journal.last_index == b.last_index


def test_s18_a_state_that_ends_before_the_journal_begins_is_refused() -> None:
    """The state's directory was replaced alone: what lies between is nowhere on this node."""
    c = Cluster("A")
    c.elect("A")
    for i in range(5):
        c.put("A", f"v{i}")
    c.pump(rounds=2)
    c.consumer("A").snapshot()
    c.pump(rounds=2)
    c.crash("A")
    c.disks["A"].snapshot = type(c.disks["A"].snapshot)()
    with pytest.raises(EngineStopped, match="what lies between is lost"):
        c.start("A")


def test_s18_a_stream_has_a_time_limit_and_the_journal_waits_no_longer() -> None:
    """A peer that never takes its snapshot must not keep the journal for ever."""
    c = cut_off_c_and_compact(replace(SMALL, stream_seconds_max=5.0))
    c.disks["C"].slow_installs = True
    c.connect_all()
    c.pump(rounds=6, seconds=HEARTBEAT)
    assert next(p for p in c.engine("A").status().peers if p.peer == "C").streaming
    streamed = c.disks["A"].snapshot.mark.index
    for i in range(60, 90):
        c.put("A", f"v{i}")
    c.pump(rounds=3, seconds=HEARTBEAT)
    c.consumer("A").snapshot()
    c.pump(rounds=3, seconds=HEARTBEAT)
    assert c.engine("A").status().first_index == streamed + 1
    c.pump(rounds=60, seconds=HEARTBEAT)
    assert c.engine("A").status().first_index > streamed + 1
    c.disks["C"].slow_installs = False
    c.pump(rounds=10, seconds=HEARTBEAT)
    assert c.consumer("C").values == [f"v{i}" for i in range(90)]
