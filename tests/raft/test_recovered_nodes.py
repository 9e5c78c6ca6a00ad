"""S25 a, e after a recovery: the lost nodes of a survivor's log come back by no other node's log.

The survivor and those that it seeds have a note beside their logs, by which the files count again.
A node that rebuilds from them is fed the old entries of membership without it (docs/adr/0043).
"""

from __future__ import annotations

import pytest

from harness.cluster import SETTINGS, Cluster
from harness.node_changes import learners, led_by, nodes, settle, voters
from harness.recovered import recovered
from holdfast.raft.api import EngineStopped
from holdfast.raft.membership import Remove
from holdfast.raft.messages import Removed


def with_a_third(leader: str = "A") -> Cluster:
    """A recovered cluster that C, on an empty disk, has joined: as the command says."""
    c = recovered()
    c.elect(leader, "AB")
    settle(c, "AB")
    c.start("C")
    c.connect_all("ABC")
    settle(c, "ABC", rounds=20)
    return c


@pytest.mark.parametrize("leader", ["A", "B"])
def test_s25a_a_node_that_rebuilds_after_a_recovery_counts_as_the_others(leader: str) -> None:
    """B leads, too: a disk on its way through the old log takes it for one that was removed."""
    c = with_a_third(leader)

    assert c.engine("C").status().stage == "member"
    for node in "ABC":
        assert voters(c, node) == "ABC"
        assert (learners(c, node), nodes(c, node).removed) == ("", ())
    assert c.engine("C").status().membership_index == c.engine("A").status().membership_index


def test_s25a_a_disk_that_may_vote_has_the_nodes_that_go_on() -> None:
    """C asks to be admitted before the first entry of the new leader is committed (S19)."""
    c = recovered()
    c.start("C")
    c.connect_all("ABC")
    c.pump("ABC", rounds=2)
    c.clock.advance(3 * SETTINGS.election_max)
    assert c.campaign("A", "BC")
    for _ in range(60):
        settle(c, "ABC", rounds=1)
        stage = c.engine("C").status().stage
        assert stage == "rebuilding" or voters(c, "C") == "ABC"
    assert c.engine("C").status().stage == "member"


def test_s25e_a_node_of_a_removed_name_is_not_told_that_it_is_out() -> None:
    """Any restart asks the peers what they remember, and B would end for good."""
    c = with_a_third()
    c.restart("B")
    c.connect_all("ABC")
    settle(c, "ABC", rounds=20)

    assert not c.engine("B").was_removed
    assert c.engine("B").status().stage == "member"


def test_s25e_the_word_of_a_node_that_is_behind_ends_nobody() -> None:
    """An earlier version's node may still count by the old log, and answers by an entry of it."""
    c = recovered()
    old = c.engine("B").status().membership_index
    c.elect("A", "AB")
    settle(c, "AB")
    assert c.engine("B").status().membership_index > old

    c.engine("B").on_message("A", Removed(old))
    settle(c, "AB")

    assert c.engine("B").status().stage == "member"


def test_s25e_a_removed_node_ends_whatever_it_has_appended_alone() -> None:
    """What nobody has committed is no later word than the removal."""
    c = led_by("A")
    c.isolate("A")
    for value in "wxyz":
        c.put("A", value)
    c.add("A", "D")
    c.clock.advance(2 * SETTINGS.election_max)
    assert c.campaign("B", "BC")
    settle(c, "BC")
    c.change("B", Remove("A"))
    settle(c, "BC")
    removal = c.engine("B").status().membership_index
    assert c.engine("A").status().membership_index > removal

    c.engine("A").on_message("B", Removed(removal))

    with pytest.raises(EngineStopped, match="this node was removed from the cluster"):
        c.tick("A")


def test_a_cluster_that_was_recovered_changes_its_nodes_by_what_goes_on() -> None:
    """C leads, and takes a node in: nobody of the lost ones comes back with that."""
    c = with_a_third()
    c.elect("C", "ABC")
    c.put("C", "by C")
    c.add("C", "E")
    settle(c, "ABC", rounds=20)

    for node in "ABC":
        assert (voters(c, node), learners(c, node)) == ("ABC", "E")
        assert c.consumer(node).values[-1] == "by C"


def test_a_snapshot_after_a_recovery_brings_the_nodes_that_go_on() -> None:
    c = recovered()
    c.elect("A", "AB")
    settle(c, "AB")
    c.put("A", "X")
    settle(c, "AB")
    c.consumer("A").snapshot()
    settle(c, "AB")
    c.start("C")
    c.connect_all("ABC")
    settle(c, "ABC", rounds=30)

    assert c.disks["A"].opened, "the scenario needs a snapshot"
    assert voters(c, "C") == "ABC"
    c.restart("C")
    assert voters(c, "C") == "ABC"


def test_it_is_said_once() -> None:
    """Leaders after that find it on the log."""
    c = with_a_third()
    index = c.engine("A").status().membership_index
    c.elect("B", "ABC")
    settle(c, "ABC")

    assert c.engine("A").status().membership_index == index
