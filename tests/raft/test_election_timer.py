"""S10, S19: the election timer, which the overlay and the engine each compare with the clock."""

from __future__ import annotations

from unittest import mock

from harness.cluster import SETTINGS, Cluster


def timer_fires_within_the_tick(c: Cluster, node: str) -> None:
    """The timer runs out after the overlay has looked at it, and before the engine does.

    A thread that waits for a processor, or for a sync, reads its clock so late.
    """
    overlay = c.engine(node).overlay
    overlay.state.election_deadline = c.nodes[node].clock() + 0.01
    looked = overlay.elections.tick

    def tick() -> None:
        looked()
        c.clock.advance(0.02)

    with mock.patch.object(overlay.elections, "tick", tick):
        c.tick(node)


def test_s19_a_timer_that_fires_within_a_tick_makes_no_candidate_without_a_vote() -> None:
    """A node that still forms would vote for itself, and after a restart for another."""
    c = Cluster(formed=False)
    c.connect_all()
    c.tick("A")
    timer_fires_within_the_tick(c, "A")

    assert not c.engine("A").overlay.state.is_candidate
    assert c.engine("A").status().term == 0


def test_s10a_a_timer_that_fires_within_a_tick_asks_for_pre_votes_first() -> None:
    """E-13: the next tick asks. A term that nobody had wanted would depose the leader."""
    c = Cluster()
    c.elect("A")
    term = c.engine("B").status().term
    c.clock.advance(SETTINGS.election_max)
    timer_fires_within_the_tick(c, "B")
    assert c.engine("B").status().term == term

    c.tick("B")
    assert c.engine("B").status().term == term
    assert c.engine("B").overlay.state.election_deadline > c.nodes["B"].clock()


def test_s10b_a_node_without_peers_leads_without_waiting() -> None:
    """At its first start, and at later ones: nobody else can lead, or was promised anything."""
    c = Cluster("A", formed=False)
    c.tick("A")
    c.clock.advance(0.001)
    c.tick("A")
    assert c.engine("A").status().role == "leader"

    c.restart("A")
    c.clock.advance(0.001)
    c.tick("A")
    assert c.engine("A").status().role == "leader"


def test_s10b_a_node_that_lost_its_peers_from_its_configuration_keeps_its_promise() -> None:
    """The disks that it formed a cluster with may still have a leader, which counts on it."""
    c = Cluster()
    c.elect("A")
    c.crash("B")
    c.ids = "B"
    c.start("B")
    c.clock.advance(SETTINGS.election_min - 0.01)
    c.tick("B")
    assert not c.engine("B").overlay.state.is_candidate
    assert c.engine("B").status().role == "follower"
