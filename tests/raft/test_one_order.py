"""S4: one FIFO, in order, bounded; only what is evolved may be cut. E-6: nothing runs in a tick."""

from __future__ import annotations

from dataclasses import replace

from harness.cluster import HEARTBEAT, SETTINGS, Cluster
from harness.journal import Snapshot
from harness.teeth import Switches, first_harm, guards
from holdfast.raft.api import Applied, Item, LeaderSeen, ProbeFailed, RoleChanged, SnapshotMark
from holdfast.raft.core.apply_queue import ApplyQueue
from holdfast.raft.core.context import Switch
from holdfast.raft.messages import Ack


@guards(Switch.S4_ORDER, harm="decides_on_stale_state")
def test_s4_the_leader_role_comes_after_all_older_entries(switches: Switches) -> str:
    """A becomes leader while entries of B are in its log and not yet known to be committed."""
    c = Cluster(switches=switches)
    c.elect("B")
    for i in range(3):
        c.put("B", f"x{i}")
    c.network.deliver("B", "A")
    c.tick("A")
    c.isolate("B")
    a = c.consumer("A")
    a.evolve()
    assert a.values == []
    c.clock.advance(2)
    assert c.campaign("A", "C")
    harm = ""
    for _ in range(6):
        c.pump("AC", seconds=HEARTBEAT, evolve=False)
        for item in c.engine("A").take():
            a.take(item)
            if a.may_decide and len(a.values) < 3:
                harm = "decides_on_stale_state"
    return harm or first_harm(never_starts=not a.may_decide)


def test_s4_a_step_down_does_not_wait_for_the_sync_of_the_term_that_caused_it() -> None:
    """S4, S5: the consumer of a node whose disk is slow stops deciding before the disk is done."""
    c = Cluster()
    c.elect("A")
    proposal = c.put("A", "x")
    probe = c.engine("A").begin_probe()
    c.tick("A")
    c.consumer("A").evolve()
    from_term_99 = Ack(
        99, 1, success=False, reset=False, round=0, promise_ms=0, stage="member", incarnation="disk"
    )
    told_before_the_sync = list[Item]()
    disk = c.disks["A"].journal
    disk.before_commit = lambda _batch: told_before_the_sync.extend(c.engine("A").take())
    c.engine("A").on_message("B", from_term_99)
    c.tick("A")
    assert told_before_the_sync == [
        RoleChanged("follower", 99, None, (proposal,)),
        ProbeFailed(probe, None),
    ]


@guards(Switch.S4_BOUND, harm="unbounded")
def test_s4_a_consumer_that_stands_still_holds_back_delivery_not_ticks(switches: Switches) -> str:
    """The engine keeps its lead and commits; memory stays bounded; nothing is lost or reordered."""
    c = Cluster(switches=switches, settings=replace(SETTINGS, apply_queue_items_max=5))
    c.elect("A")
    term = c.engine("A").status().term
    for i in range(100):
        c.put("A", f"v{i}")
    c.pump(rounds=30, seconds=HEARTBEAT, evolve=False)
    status = c.engine("A").status()
    harm = first_harm(
        unbounded=len(c.engine("A").overlay.apply_queue) > 7,
        engine_stopped=status.role != "leader" or status.term != term or status.commit_index < 100,
    )
    c.pump(rounds=100)
    return harm or first_harm(order=c.consumer("A").values != [f"v{i}" for i in range(100)])


def test_s4_room_that_is_made_during_a_delivery_ends_the_wait_as_well() -> None:
    """The consumer is another thread: it may take when what was delivered is not pushed yet."""
    c = Cluster("A", settings=replace(SETTINGS, apply_queue_items_max=2))
    c.elect("A")
    overlay, consumer, woken = c.engine("A").overlay, c.consumer("A"), list[None]()
    for i in range(6):
        c.put("A", f"v{i}")
    c.tick("A")
    consumer.evolve(1)
    deliver = overlay.delivery.deliver

    def deliver_and_be_interrupted() -> None:
        deliver()
        consumer.evolve(1)

    overlay.delivery.deliver = deliver_and_be_interrupted  # type: ignore[method-assign]  # a thread
    overlay.waker.wake = lambda: woken.append(None)  # type: ignore[method-assign]  # to hear of it
    c.tick("A")
    assert overlay.apply_queue.room
    assert overlay.state.handed_index < overlay.state.commit_index
    assert woken


@guards(Switch.S4_CUT, harm="entries_lost")
def test_s4_the_journal_is_never_cut_above_what_is_evolved(switches: Switches) -> str:
    """The consumer lags and the process dies: what it had not evolved must still be there."""
    c = Cluster("A", switches=switches)
    c.elect("A")
    for i in range(10):
        c.put("A", f"v{i}")
    c.pump(rounds=2, evolve=False)
    status = c.engine("A").status()
    c.disks["A"].snapshot = Snapshot(SnapshotMark(status.commit_index, status.term))
    c.engine("A").cut(status.commit_index)
    c.pump(rounds=2, evolve=False)
    first = c.engine("A").status().first_index
    return first_harm(entries_lost=first > c.engine("A").status().evolved_index + 1)


def test_s4_adjacent_role_changes_merge_and_keep_every_unknown_proposal() -> None:
    """Roles pass the bound, so they must not pile up."""
    fifo = ApplyQueue(items_max=1, bytes_max=1)
    fifo.push([Applied(1, 1, b"x")])
    assert not fifo.room
    for term in range(2, 50):
        fifo.push([RoleChanged("follower", term, None)])
    assert fifo.take(9) == [Applied(1, 1, b"x"), RoleChanged("follower", 49, None)]
    assert fifo.room
    fifo.push([LeaderSeen("A", 1), LeaderSeen("B", 2)])
    assert fifo.take(9) == [LeaderSeen("B", 2)]


def test_s4_the_consumer_is_told_once_when_there_is_something_again() -> None:
    """The asyncio side is woken for the first item only; it drains the rest."""
    fifo, calls = ApplyQueue(items_max=9, bytes_max=99), []
    fifo.on_items = lambda: calls.append(len(fifo))
    fifo.push([Applied(1, 1, b"")])
    fifo.push([Applied(2, 1, b"")])
    assert calls == [1]
    fifo.take(9)
    fifo.push([Applied(3, 1, b"")])
    assert calls == [1, 1]


def test_s4_a_take_that_makes_room_again_tells_who_delivers() -> None:
    """Entries that found no room wait in the log; no timer must be needed to fetch them."""
    told: list[None] = []
    fifo = ApplyQueue(items_max=2, bytes_max=99, on_room=lambda: told.append(None))
    fifo.push([Applied(1, 1, b"")])
    fifo.take(9)
    assert told == [], "there was room all the time"
    fifo.push([Applied(2, 1, b""), Applied(3, 1, b"")])
    fifo.take(1)
    assert len(told) == 1


def test_s4_after_a_restart_delivery_goes_on_behind_the_state() -> None:
    """The snapshot holds v0..v4; the journal's tail brings the rest, once."""
    c = Cluster("A")
    c.elect("A")
    for i in range(10):
        c.put("A", f"v{i}")
        c.pump()
        if i == 4:
            c.consumer("A").snapshot()
    c.pump(rounds=2)
    c.restart("A")
    assert c.consumer("A").values == [f"v{i}" for i in range(5)]
    c.clock.advance(2)
    c.elect("A")
    assert c.consumer("A").values == [f"v{i}" for i in range(10)]


def test_a_cluster_of_one_does_not_wait_for_a_timer_before_it_commits() -> None:
    """No peer will ever wake it: the tick that syncs an entry must make the next one come."""
    c = Cluster("A")
    c.elect("A")
    waker, waits = c.engine("A").overlay.waker, list[float]()

    class NoPark:
        """Nothing may really wait in a test."""

        def park(self, seconds: float) -> None:
            waits.append(seconds)

        def unpark(self) -> None:
            pass

    waker._park = NoPark()
    c.engine("A").propose(b"x", c.engine("A").status().term)
    waker._called = False  # the proposal's own wake-up has brought this tick
    c.engine("A").tick(1.0)
    c.engine("A").tick()
    c.consumer("A").evolve()
    assert waits == [0.0, 0.0], "the tick that synced the entry waited"
    assert c.consumer("A").values == ["x"]
