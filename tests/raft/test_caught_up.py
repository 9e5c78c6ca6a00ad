"""S4: what a follower knows of the newest state, and what it must have before its word counts."""

from __future__ import annotations

from harness.cluster import HEARTBEAT, Cluster


def a_told_entry() -> tuple[Cluster, int]:
    """B has applied an entry and told of it, C does not know that it is committed; A is dead.

    Then B is killed and started: the entry is in its log, and it does not know how far it was.
    """
    c = Cluster()
    c.elect("A")
    c.put("A", "x")
    c.exchange("A", "C")
    c.network.cut("A", "C")
    c.pump("AB", rounds=3, seconds=HEARTBEAT)
    told = c.consumer("B").index
    assert c.consumer("B").values == ["x"]
    assert c.engine("C").status().commit_index < told
    c.crash("A")
    c.restart("B")
    c.connect_all("BC")
    return c, told


def test_s4_a_new_leaders_word_counts_from_its_own_first_entry_on() -> None:
    """Before, its commit index may lie behind what its predecessor had committed."""
    c, told = a_told_entry()
    c.clock.advance(2)
    assert c.campaign("C", "B")
    assert c.engine("C").status().commit_index < told
    for _ in range(6):
        status = c.engine("B").status()
        assert status.catch_up_index is None or status.catch_up_index >= told
        assert status.current_index == 0 or status.current_index >= told
        c.pump("BC", seconds=HEARTBEAT)

    status = c.engine("B").status()
    assert status.catch_up_index is not None
    assert c.consumer("B").index >= status.catch_up_index


def test_s4_without_a_leader_a_node_that_was_started_does_not_know_how_far_it_was() -> None:
    c, _ = a_told_entry()
    c.pump("BC", rounds=3, seconds=HEARTBEAT)

    assert c.engine("B").status().catch_up_index is None


def test_s4_what_was_to_be_caught_up_with_moves_no_more() -> None:
    """A follower under load never has the very last entry, and has caught up all the same."""
    c = Cluster()
    c.elect("A")
    first = c.engine("B").status().catch_up_index
    c.put("A", "x")
    c.pump(rounds=3, seconds=HEARTBEAT)

    assert first is not None
    assert c.engine("B").status().catch_up_index == first
    assert c.engine("B").status().current_index > first
