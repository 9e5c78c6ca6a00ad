"""S19, empty is not new: forming a cluster once, and rebuilding a disk without a vote."""

from __future__ import annotations

import pytest

from harness.cluster import HEARTBEAT, SETTINGS, Cluster
from harness.teeth import Switches, first_harm, guards
from holdfast.raft.api import EngineStopped
from holdfast.raft.core.context import Switch
from holdfast.raft.core.membership.rebuild import AGAIN_SECONDS
from holdfast.raft.messages import Ack


def stage(c: Cluster, node: str) -> str:
    return c.engine(node).status().stage


def x_is_on_a_and_b_and_the_disk_of_b_is_replaced(
    switches: Switches, *, bootstrap: bool
) -> Cluster:
    c = Cluster(switches=switches)
    c.elect("A")
    c.network.cut("A", "C")
    proposal = c.put("A", "X")
    c.pump("AB", rounds=4, seconds=HEARTBEAT)
    assert proposal in c.consumer("A").acknowledged
    c.restart("B", wiped=True, bootstrap=bootstrap)
    return c


@guards(Switch.S19_REBUILD, harm="x_is_lost")
def test_s19_a_replaced_disk_elects_nobody(switches: Switches) -> str:
    """A and B have X, C lags; B's disk is replaced; A dies; B must not vote for C."""
    c = x_is_on_a_and_b_and_the_disk_of_b_is_replaced(switches, bootstrap=False)
    c.crash("A")
    c.network.connect("B", "C")
    c.clock.advance(3)
    by_c = c.campaign("C", "B")
    c.clock.advance(3)
    by_b = c.campaign("B", "C")
    return first_harm(x_is_lost=by_c or by_b)


@guards(Switch.S19_FORM, harm="x_is_lost")
def test_s19_a_bootstrap_flag_left_in_a_unit_file_does_no_harm(switches: Switches) -> str:
    """The same with --bootstrap: C, a member, does not know this disk."""
    c = x_is_on_a_and_b_and_the_disk_of_b_is_replaced(switches, bootstrap=True)
    c.crash("A")
    c.network.connect("B", "C")
    c.clock.advance(3)
    c.pump("BC", rounds=4, seconds=HEARTBEAT)
    led = c.campaign("C", "B")
    return first_harm(x_is_lost=led, votes=stage(c, "B") == "member")


def test_s19_a_rebuild_ends_behind_a_barrier_that_the_others_committed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nothing of B counts before that; after it, A may die."""
    c = x_is_on_a_and_b_and_the_disk_of_b_is_replaced(Cluster("A").switches, bootstrap=False)
    held_by_c = c.disks["C"].journal.last_index
    c.network.connect("A", "B")
    c.network.connect("B", "C")
    c.pump(rounds=6, seconds=HEARTBEAT)
    assert stage(c, "B") == "rebuilding"
    assert c.engine("A").status().commit_index <= held_by_c + 1, "an ack of B was counted"
    assert "votes again" not in caplog.text
    c.network.connect("A", "C")
    c.pump(rounds=20, seconds=HEARTBEAT)
    c.elect("A") if c.engine("A").status().role != "leader" else None
    c.pump(rounds=20, seconds=HEARTBEAT)
    assert stage(c, "B") == "member"
    assert caplog.text.count("votes again") == 1, "an operator learns when it is over"
    assert c.consumer("B").values == ["X"]
    c.crash("A")
    c.clock.advance(3)
    assert c.campaign("C", "B")
    c.pump("BC", rounds=6, seconds=HEARTBEAT)
    assert c.consumer("C").values == ["X"]


@guards(Switch.S19_BARRIER, harm="fork")
def test_s19_a_stale_leader_elected_without_it_admits_no_new_disk(switches: Switches) -> str:
    """C leads a later term by B's vote and commits X with it; B is wiped; A is stale."""
    c = Cluster(switches=switches)
    c.isolate("B")
    c.elect("A", "AC")
    c.network.connect("A", "B")
    c.network.connect("B", "C")
    c.pump(rounds=4, seconds=HEARTBEAT)
    c.isolate("A")
    c.clock.advance(SETTINGS.election_min + 0.05)
    assert c.campaign("C", "B")
    x = c.put("C", "X")
    c.pump("BC", rounds=4)
    assert x in c.consumer("C").acknowledged
    c.restart("B", wiped=True)
    c.network.connect("A", "B")
    lost = None
    for _ in range(4):
        c.clock.advance(0.101)
        c.pump("AB", rounds=3)
        lost = lost or c.put("A", "Y")
    assert lost
    assert c.engine("A").status().role == "leader", "the scenario needs a stale leader"
    return first_harm(fork=lost in c.consumer("A").acknowledged, admitted=stage(c, "B") == "member")


@guards(Switch.S19_RESET, harm="never_caught_up")
def test_s19_a_new_disk_resets_the_leaders_progress(switches: Switches) -> str:
    """The engine's match index only rises: the same leader would never send the old entries."""
    c = Cluster(switches=switches)
    c.elect("A")
    for i in range(5):
        c.put("A", f"v{i}")
    c.pump(rounds=4, seconds=HEARTBEAT)
    c.restart("B", wiped=True)
    c.connect_all()
    c.pump(rounds=20, seconds=HEARTBEAT)
    return first_harm(never_caught_up=c.consumer("B").values != [f"v{i}" for i in range(5)])


def test_s19_an_ack_of_a_disk_that_is_gone_counts_for_nothing() -> None:
    """It was under way when the disk was replaced, and arrives after the leader knows."""
    c = Cluster()
    c.elect("A")
    c.pump(rounds=3, seconds=HEARTBEAT)
    gone = c.engine("B").overlay.identity.incarnation
    c.network.cut("A", "C")
    c.restart("B", wiped=True)
    c.network.connect("A", "B")
    c.pump("AB", rounds=4, seconds=HEARTBEAT)
    status = c.engine("A").status()
    late = Ack(status.term, status.last_index + 1, True, False, 1, 400, "member", gone)  # noqa: FBT003 - fields
    c.engine("A").on_message("B", late)
    c.tick("A")
    assert c.engine("A").status().commit_index < status.last_index
    assert not next(p for p in c.engine("A").status().peers if p.peer == "B").counted


def test_s19_nobody_votes_before_every_peer_is_forming() -> None:
    """Two of three configured nodes are there: no cluster yet."""
    c = Cluster(formed=False)
    c.network.connect("A", "B")
    c.pump("AB", rounds=10, seconds=HEARTBEAT)
    assert not c.campaign("A", "B")
    assert [stage(c, n) for n in "AB"] == ["forming", "forming"]
    c.connect_all()
    c.pump(rounds=6, seconds=HEARTBEAT)
    assert [stage(c, n) for n in "ABC"] == ["member"] * 3
    c.clock.advance(2)
    assert c.campaign("A", "B")


def test_s19_a_disk_replaced_while_the_cluster_forms_must_rebuild() -> None:
    """B has met the new disk of C, but A, a member, knows the old one: A's word decides."""
    c = Cluster(formed=False)
    c.connect_all()
    c.pump(rounds=2)
    c.network.deaf |= {("A", "B"), ("C", "B")}
    for node in "AC":
        c.network.lose(node, "B")
    c.pump(rounds=6, seconds=HEARTBEAT)
    assert [stage(c, n) for n in "ABC"] == ["member", "forming", "member"]
    c.restart("C", wiped=True, bootstrap=True)
    c.network.deaf.clear()
    c.network.connect("B", "C")
    c.network.cut("A", "B")
    c.pump("BC", rounds=6, seconds=HEARTBEAT)
    assert [stage(c, n) for n in "BC"] == ["forming", "forming"]
    c.network.connect("A", "C")
    c.pump("AC", rounds=6, seconds=HEARTBEAT)
    assert stage(c, "C") == "rebuilding"


def test_s19_a_cluster_of_one_forms_leads_and_commits() -> None:
    """It has its own path: nobody to wait for."""
    c = Cluster("A")
    c.elect("A")
    proposal = c.put("A", "X")
    c.pump(rounds=2)
    assert c.consumer("A").acknowledged == [proposal]
    assert c.lease("A")


def test_s19_a_cluster_of_one_has_nobody_to_rebuild_from() -> None:
    """It says so, instead of waiting for ever."""
    c = Cluster("A")
    with pytest.raises(EngineStopped, match="restore a backup"):
        c.restart("A", wiped=True)


def test_a_directory_of_another_node_is_refused() -> None:
    """It would vote twice."""
    c = Cluster("AB")
    c.crash("A")
    c.disks["A"], c.disks["B"] = c.disks["B"], c.disks["A"]
    with pytest.raises(EngineStopped, match="belongs to node 'B'"):
        c.start("A")


def test_s19_the_incarnation_is_durable_before_the_first_message() -> None:
    """Otherwise a crash could give two disks one name, or one disk two."""
    c = Cluster("AB", settings=SETTINGS, formed=False)
    identity = c.disks["A"].journal.load().identity
    assert identity is not None
    assert identity.incarnation == c.engine("A").overlay.identity.incarnation
    c.restart("A", bootstrap=True)
    assert identity.incarnation == c.engine("A").overlay.identity.incarnation


def told_that_nobody_can_lead(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [said for said in caplog.messages if said.startswith("no leader can be elected")]


def without_a_leader(c: Cluster, seconds: float) -> None:
    c.pump(rounds=round(seconds / HEARTBEAT), seconds=HEARTBEAT)
    assert [n for n in c.nodes if c.engine(n).status().role == "leader"] == []


def test_s25_a_node_that_no_leader_sends_anything_says_so_each_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A new node that nobody has added would wait in silence, and for ever."""
    c = Cluster()
    c.elect("A")
    c.restart("B", wiped=True)

    def told() -> list[str]:
        return [said for said in caplog.messages if "no leader has sent it anything" in said]

    c.pump(rounds=4, seconds=HEARTBEAT)
    assert told() == [], "a leader takes a moment"
    c.pump(rounds=round(12 * SETTINGS.election_max / HEARTBEAT), seconds=HEARTBEAT)
    (said,) = told()
    assert "`holdfast node add B`" in said
    c.pump(rounds=round(AGAIN_SECONDS / HEARTBEAT), seconds=HEARTBEAT)
    assert len(told()) == 2
    c.connect_all()
    c.pump(rounds=round(2 * AGAIN_SECONDS / HEARTBEAT), seconds=HEARTBEAT)
    assert (len(told()), stage(c, "B")) == (2, "member")


def test_s19_a_majority_that_rebuilds_is_told_by_each_node(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """None of them has a vote, so each would wait for a leader in silence, and for ever."""
    c = Cluster()
    c.elect("A")
    for node in "BC":
        c.restart(node, wiped=True)
    c.connect_all()
    c.pump(rounds=4, seconds=HEARTBEAT)
    assert [stage(c, node) for node in "ABC"] == ["member", "rebuilding", "rebuilding"]
    assert told_that_nobody_can_lead(caplog) == [], "an election may take as long"
    without_a_leader(c, 12 * SETTINGS.election_max)

    told = told_that_nobody_can_lead(caplog)
    assert len(told) == 3, "once by each"
    (said,) = set(told)
    assert "B, C rebuild" in said
    assert "the votes of 2 of 3 nodes, and only A may vote" in said
    assert "is back on at least 1 of those that rebuild" in said

    without_a_leader(c, AGAIN_SECONDS / 2)
    assert len(told_that_nobody_can_lead(caplog)) == 3
    without_a_leader(c, AGAIN_SECONDS / 2 + 2 * HEARTBEAT)
    assert len(told_that_nobody_can_lead(caplog)) == 6


def test_s19_a_minority_that_rebuilds_or_an_absent_majority_is_not_told_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """C rebuilds and B is away: A and C need B with its data, and it comes back with a leader."""
    c = Cluster()
    c.elect("A")
    c.put("A", "X")
    c.pump(rounds=3, seconds=HEARTBEAT)
    c.restart("C", wiped=True)
    c.network.connect("A", "C")
    c.crash("B")
    c.pump(rounds=15, seconds=HEARTBEAT)
    without_a_leader(c, 15 * SETTINGS.election_max)
    assert told_that_nobody_can_lead(caplog) == []
    c.start("B")
    c.connect_all()
    c.elect("A")
    c.pump(rounds=20, seconds=HEARTBEAT)

    assert [stage(c, node) for node in "ABC"] == ["member"] * 3
    assert c.consumer("C").values == ["X"]
    assert told_that_nobody_can_lead(caplog) == []


def test_s19_it_ends_when_a_disk_comes_back_with_its_data(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What the sentence tells the operator to do is what helps."""
    c = Cluster()
    c.elect("A")
    c.put("A", "X")
    c.pump(rounds=3, seconds=HEARTBEAT)
    kept = c.disks["B"]
    for node in "BC":
        c.crash(node)
    c.pump(rounds=round(2 * SETTINGS.election_max / HEARTBEAT), seconds=HEARTBEAT)
    for node in "BC":
        c.wipe(node)
        c.start(node)
    c.connect_all()
    c.pump(rounds=15, seconds=HEARTBEAT)
    without_a_leader(c, 12 * SETTINGS.election_max)
    assert len(told_that_nobody_can_lead(caplog)) == 3

    c.crash("B")
    c.disks["B"] = kept
    c.start("B")
    c.connect_all()
    c.elect("A")
    c.pump(rounds=round(2 * AGAIN_SECONDS / HEARTBEAT), seconds=HEARTBEAT)
    assert [stage(c, node) for node in "ABC"] == ["member"] * 3
    assert {tuple(c.consumer(node).values) for node in "ABC"} == {("X",)}
    assert len(told_that_nobody_can_lead(caplog)) == 3


def test_s13_a_disk_holds_nothing_until_a_leader_is_heard_whenever_it_was_started() -> None:
    """Until then it may become one of any restore; then it is of its leader's, for good."""
    c = Cluster()
    c.elect("A")
    c.restart("C", wiped=True)
    assert c.engine("C").holds_nothing()
    c.restart("C")
    assert c.engine("C").holds_nothing(), "it has a name, and nothing else"

    c.network.connect("A", "C")
    c.pump(rounds=3, seconds=HEARTBEAT)
    assert stage(c, "C") == "rebuilding"
    assert not c.engine("C").holds_nothing()
    c.connect_all()
    c.pump(rounds=20, seconds=HEARTBEAT)
    assert stage(c, "C") == "member"
    assert not c.engine("C").holds_nothing()


def test_s13_a_disk_that_forms_a_cluster_is_not_one_that_waits() -> None:
    c = Cluster(formed=False)

    assert not c.engine("A").holds_nothing()
