"""E-1, E-2, E-5, E-7, S7, S18: what enters a log, what leaves it, and what travels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from harness.cluster import HEARTBEAT, SETTINGS, Cluster
from harness.journal import PowerCut
from harness.teeth import Switches, first_harm, guards
from holdfast.raft.api import MIB, Applied, EngineStopped
from holdfast.raft.core.context import Switch
from holdfast.raft.messages import ITEMS_MAX, Append, EntryChunk, LogEntry, SnapshotChunk

if TYPE_CHECKING:
    from holdfast.storage.journal.journal import JournalBatch

SMALL = replace(SETTINGS, batch_bytes=100, chunk_bytes=100)


def ten_commands_reach_b_in_batches(switches: Switches) -> tuple[Cluster, int]:
    """A leads, C lags; ten commands go to B in batches; B has acked all of them."""
    c = Cluster(switches=switches, settings=SMALL)
    c.elect("A")
    c.network.cut("A", "C")
    engine, term = c.engine("A"), c.engine("A").status().term
    for i in range(10):
        engine.propose(f"v{i}".encode() + b"x" * 40, term)
    c.tick("A")
    return c, engine.status().last_index


@guards(Switch.CUT_ON_CONFLICT, harm="acknowledged_entries_cut")
def test_d1_a_follower_never_cuts_what_it_holds_already(switches: Switches) -> str:
    """An old batch arrives again (a duplicate, or a leader that went back): nothing is cut."""
    c, last = ten_commands_reach_b_in_batches(switches)
    first = next(m for m in c.network.waiting("A", "B") if isinstance(m, Append) and m.entries)
    c.exchange("A", "B")
    c.tick("A")
    assert c.engine("A").status().commit_index == last
    c.engine("B").on_message("A", first)
    c.engine("B").overlay.completion.run()
    return first_harm(acknowledged_entries_cut=c.disks["B"].journal.last_index < last)


@guards(Switch.ACK_NO_REWIND, harm="sent_again")
def test_d1_an_ack_does_not_make_the_leader_send_again(switches: Switches) -> str:
    """The first batch is acked while the others are under way."""
    c, _ = ten_commands_reach_b_in_batches(switches)
    before = len(c.network.waiting("A", "B"))
    assert before > 2
    c.network.deliver("A", "B", count=before - 1)
    c.engine("B").overlay.completion.run()
    c.network.deliver("B", "A")
    c.engine("A").overlay.completion.run()
    again = [m for m in c.network.waiting("A", "B") if isinstance(m, Append) and m.entries]
    return first_harm(sent_again=len(again) > 1)


def test_d1_a_committed_entry_is_never_cut_the_node_stops() -> None:
    """A leader with another entry below our commit index means a fork: loudly no."""
    c = Cluster()
    c.elect("A")
    c.put("A", "x")
    c.pump(rounds=4, seconds=HEARTBEAT)
    b = c.engine("B").status()
    forged = Append(b.term + 1, 1, 0, 1, 1, "", (LogEntry(b.term + 1, b"\x01"),))
    assert b.commit_index >= 2
    b_transport = c.engine("B").overlay
    b_transport._transport.poll = lambda: c.engine("B").on_message("A", forged)  # type: ignore[method-assign]  # forged
    with pytest.raises(EngineStopped, match="a leader has another entry at index 2"):
        c.tick("B")
    with pytest.raises(EngineStopped):
        c.tick("B")
    c.consumer("B").evolve()
    assert "committed" in c.consumer("B").stopped
    assert c.disks["B"].journal.last_index == b.last_index


def test_d2_a_heartbeat_commits_only_what_it_verified() -> None:
    """A deposed leader's own tail lies above what the new leader's message vouches for."""
    c = Cluster()
    c.elect("A")
    c.isolate("A")
    c.put("A", "orphan")
    a = c.engine("A").status()
    beat = Append(a.term + 1, 1, a.last_index, 1, 1, "", ())
    c.engine("A").on_message("B", beat)
    assert c.engine("A").status().commit_index < a.last_index


def test_d2_a_snapshot_chunk_commits_nothing() -> None:
    """E-2: the stock engine raises commit to its own tail on any chunk; the orphan was applied."""
    c = Cluster()
    c.elect("A")
    c.isolate("A")
    orphan = c.put("A", "orphan")
    a = c.engine("A").status()
    c.engine("A").on_message("B", SnapshotChunk(a.term + 1, 1, 50, a.term, 0, False, b"x"))  # noqa: FBT003 - a field
    c.tick("A")
    c.consumer("A").evolve()
    assert c.engine("A").status().commit_index == a.commit_index
    assert orphan in c.consumer("A").unsettled


@guards(Switch.ACK_AFTER_FLUSH, harm="acknowledged_and_lost")
def test_d5_nothing_acknowledged_is_lost_in_a_power_cut(switches: Switches) -> str:
    """Both followers lose power in the sync of the entry; the leader's disk burns."""
    c = Cluster(switches=switches)
    c.elect("A")
    c.pump(rounds=3, seconds=HEARTBEAT)
    proposal = c.put("A", "x")

    def cut(batch: object) -> None:
        if getattr(batch, "append", ()):
            raise PowerCut

    for node in "BC":
        c.disks[node].journal.before_commit = cut
        c.network.deliver("A", node)
        with pytest.raises((EngineStopped, PowerCut)):
            c.engine(node).overlay.completion.run()
        c.network.deliver(node, "A")
    c.tick("A")
    c.tick("A")
    c.consumer("A").evolve()
    held = any(e.payload.endswith(b"x") for n in "BC" for e in c.disks[n].journal.load().entries)
    return first_harm(acknowledged_and_lost=proposal in c.consumer("A").acknowledged and not held)


def test_d5_a_vote_is_durable_before_it_leaves() -> None:
    """The voter loses power while it stores the vote: the candidate never hears of it."""
    c = Cluster()
    c.clock.advance(2)
    c.calm()
    c.engine("A").overlay.state.election_deadline = 0
    c.tick("A")
    c.exchange("A", "B")
    c.tick("A")

    def cut(_batch: object) -> None:
        raise PowerCut

    c.disks["B"].journal.before_commit = cut
    c.network.deliver("A", "B")
    with pytest.raises(PowerCut):
        c.engine("B").overlay.completion.run()
    assert c.network.waiting("B", "A") == []


def test_d5_a_leader_counts_itself_only_when_it_is_durable() -> None:
    """A cluster of one whose disk fails in the sync of the entry has not acknowledged it."""
    c = Cluster("A")
    c.elect("A")
    term = c.engine("A").status().term
    proposal = c.engine("A").propose(b"x", term)

    def fail(_batch: object) -> None:
        raise OSError("input/output error")

    c.disks["A"].journal.before_commit = fail
    with pytest.raises(EngineStopped, match="input/output"):
        c.tick("A")
    c.consumer("A").evolve()
    assert proposal not in c.consumer("A").acknowledged
    assert "input/output" in c.consumer("A").stopped
    assert not c.lease("A")


def test_r7_a_divergent_tail_is_repaired_in_rounds_per_term() -> None:
    """200 divergent entries took the stock engine 20 s of virtual time, one index a round."""
    c = Cluster()
    c.elect("A")
    c.isolate("A")
    for i in range(200):
        c.put("A", f"lost{i}")
    c.elect("B", "BC")
    for i in range(300):
        c.put("B", f"n{i}")
    c.pump("BC", rounds=4, seconds=HEARTBEAT)
    c.network.connect("A", "B")
    c.pump("AB", rounds=8, seconds=HEARTBEAT)
    assert c.consumer("A").values == [f"n{i}" for i in range(300)]


@guards(Switch.S7_CHUNKS, harm="one_frame_blocks_the_link")
def test_s7_a_long_entry_travels_in_chunks(switches: Switches) -> str:
    """E-10: the stock chunks raised in the follower; here each frame is bounded and acked."""
    c = Cluster(switches=switches, settings=SMALL)
    c.elect("A")
    c.put("A", "y" * 5000)
    longest = 0
    for _ in range(60):
        waiting = c.network.waiting("A", "B")
        chunks = [len(m.data) for m in waiting if isinstance(m, EntryChunk)]
        whole = [len(e.command) for m in waiting if isinstance(m, Append) for e in m.entries]
        longest = max([longest, sum(chunks), *whole])
        c.pump()
    c.pump(rounds=3, seconds=HEARTBEAT)
    assert all(c.consumer(n).values == ["y" * 5000] for n in "ABC")
    return first_harm(one_frame_blocks_the_link=longest > 4 * 100)


def test_s7_an_entry_above_the_own_limit_stops_the_node() -> None:
    """Limits that differ between nodes are a mistake that must be seen, not a silent gap."""
    c = Cluster("AB", settings=replace(SMALL, entry_bytes_max=1000))
    c.elect("A")
    a = c.engine("A").status()
    chunk = EntryChunk(a.term, 1, 0, a.last_index, a.term, a.term, 1001, 0, b"x" * 100)
    with pytest.raises(EngineStopped, match="entry_bytes_max is 1000 here"):
        c.engine("B").on_message("A", chunk)


def test_what_is_under_way_to_a_silent_peer_is_bounded_in_bytes() -> None:
    """The stock engine has no limit: a peer that answers nothing is sent everything."""
    c = Cluster("AB", settings=replace(SETTINGS, inflight_bytes_max=2000, batch_bytes=500))
    c.elect("A")
    engine, term = c.engine("A"), c.engine("A").status().term
    c.network.lose("A", "B")
    for _ in range(100):
        engine.propose(b"x" * 200, term)
    for _ in range(5):
        c.calm()
        c.tick("A")
    flying = [m for m in c.network.waiting("A", "B") if isinstance(m, Append)]
    assert 2000 <= sum(len(e.command) for m in flying for e in m.entries) < 3000
    c.pump(rounds=20)
    c.pump(rounds=3, seconds=HEARTBEAT)
    assert len(c.consumer("B").values) == 100


def test_a_batch_has_no_more_entries_than_its_receiver_admits() -> None:
    """Bounded in bytes alone, a batch of tiny entries would be refused again and again."""
    settings = replace(SETTINGS, batch_bytes=MIB, proposals_max=2 * ITEMS_MAX)
    c = Cluster("AB", settings=settings)
    c.elect("A")
    engine, term = c.engine("A"), c.engine("A").status().term
    for _ in range(ITEMS_MAX + 1):
        engine.propose(b"", term)
    c.tick("A")
    waiting = c.network.waiting("A", "B")
    batches = [len(m.entries) for m in waiting if isinstance(m, Append) and m.entries]
    assert batches == [ITEMS_MAX, 1]


def test_a_stale_leader_is_told_the_term() -> None:
    """E-14: the stock engine ignores it without a word."""
    c = Cluster()
    c.elect("A")
    c.isolate("A")
    c.clock.advance(0.45)
    assert c.campaign("B", "C")
    assert c.engine("A").status().role == "leader"
    c.network.connect("A", "C")
    c.exchange("A", "C")  # whose disks they have (S25 f)
    assert c.engine("A").status().role == "leader"
    c.network.deaf.add(("C", "B"))
    c.tick("A")
    c.exchange("A", "C")
    assert c.engine("A").status().role == "follower"
    assert c.engine("A").status().term == c.engine("C").status().term


def test_d6_a_consumer_that_raises_holds_up_nobody() -> None:
    """Nothing is executed in the tick: the engine goes on, and delivers everything once."""
    c = Cluster()
    c.elect("A")
    c.put("A", "bad")
    c.put("A", "good")
    for _ in range(4):
        c.pump(seconds=HEARTBEAT, evolve=False)
    b = c.engine("B")
    items = b.take()
    assert [i.payload for i in items if isinstance(i, Applied)][-2:] == [b"bad", b"good"]
    c.pump(rounds=4, seconds=HEARTBEAT, evolve=False)
    assert not [i for i in b.take() if isinstance(i, Applied)]


def test_d4_a_cut_is_one_batch_that_rewrites_nothing() -> None:
    """E-4: the stock journal is rewritten in place by every compaction."""
    c = Cluster("A")
    c.elect("A")
    for i in range(20):
        c.put("A", f"v{i}")
    c.pump(rounds=2)
    batches: list[JournalBatch] = []
    c.disks["A"].journal.before_commit = batches.append
    c.consumer("A").snapshot()
    c.pump(rounds=2)
    assert [(b.cut_to is not None, list(b.append), b.reset_to) for b in batches] == [
        (True, [], None)
    ]


def test_a_tail_is_kept_for_peers_that_lag_a_little() -> None:
    """E-15: without one, a peer that is a few entries behind needs the whole snapshot."""
    c = Cluster(settings=replace(SETTINGS, trailing_bytes=100_000))
    c.elect("A")
    c.isolate("C")
    for i in range(20):
        c.put("A", f"v{i}")
    c.pump("AB", rounds=3, seconds=HEARTBEAT)
    c.consumer("A").snapshot()
    c.pump("AB", rounds=2)
    c.connect_all()
    c.pump(rounds=4, seconds=HEARTBEAT)
    assert c.consumer("C").values == [f"v{i}" for i in range(20)]
    assert c.disks["C"].snapshot.mark.index == 0, "a snapshot was sent"


def test_s7_heartbeats_pass_between_the_chunks_of_an_entry() -> None:
    """A slow link: one message a round; no election, the lease holds, the entry arrives."""
    c = Cluster("AB", settings=SMALL)
    c.elect("A")
    c.put("A", "y" * 3000)
    for _ in range(80):
        c.clock.advance(0.05)
        c.network.deliver("A", "B", count=2)
        c.network.deliver("B", "A")
        for node in "AB":
            c.tick(node)
            c.consumer(node).evolve()
        assert c.lease("A")
    assert c.consumer("B").values == ["y" * 3000]


def test_s7_lost_chunks_are_sent_again() -> None:
    """The transport may lose what does not fit its queue; the stream goes on from the gap."""
    c = Cluster("AB", settings=SMALL)
    c.elect("A")
    c.put("A", "y" * 2000)
    for round_ in range(120):
        if round_ % 5 == 2:
            c.network.lose("A", "B", 1)
        c.pump(seconds=HEARTBEAT)
    assert c.consumer("B").values == ["y" * 2000]


def test_a_restart_finds_term_vote_and_entries() -> None:
    """Raft thesis 3.4, 3.8: all of it, from the model journal."""
    c = Cluster()
    c.elect("A")
    c.put("A", "x")
    c.pump(rounds=3, seconds=HEARTBEAT)
    before = c.engine("B").status()
    c.restart("B")
    after = c.engine("B").status()
    assert (after.term, after.last_index) == (before.term, before.last_index)
    assert c.disks["B"].journal.load().hard_state.voted_for == "A"


def test_kill_all_three_and_nothing_acknowledged_is_lost() -> None:
    """All at once, in the middle of a load."""
    c = Cluster()
    c.elect("A")
    for i in range(50):
        c.put("A", f"v{i}")
        if i % 7 == 0:
            c.pump(seconds=0.02)
    acknowledged = len(c.consumer("A").acknowledged)
    assert acknowledged > 20
    for node in "ABC":
        c.crash(node)
    for node in "ABC":
        c.start(node)
    c.connect_all()
    c.clock.advance(2)
    assert any(c.campaign(who, "ABC") for who in "BCA")
    c.pump(rounds=6, seconds=HEARTBEAT)
    for node in "ABC":
        assert c.consumer(node).values[:acknowledged] == [f"v{i}" for i in range(acknowledged)]


def test_a_follower_knows_until_when_its_state_was_the_newest() -> None:
    """For reads that may be stale: each heartbeat that tells nothing newer says so."""
    c = Cluster()
    c.elect("A")
    c.put("A", "x")
    c.pump(rounds=3, seconds=HEARTBEAT)
    first = c.engine("B").status()
    c.pump(rounds=5, seconds=HEARTBEAT)
    later = c.engine("B").status()
    assert first.current_index == later.current_index == later.commit_index
    assert later.current_at > first.current_at
    c.network.lose("A", "B")
    c.put("A", "y")
    c.network.lose("A", "B")
    c.put("A", "z")
    c.clock.advance(HEARTBEAT)
    c.exchange("A", "C")
    c.tick("A")
    heartbeat = c.network.waiting("A", "B")[-1]
    c.engine("B").on_message("A", heartbeat)
    behind = c.engine("B").status()
    assert c.engine("A").status().commit_index > behind.commit_index
    assert behind.current_at == later.current_at, "entries are missing here"
