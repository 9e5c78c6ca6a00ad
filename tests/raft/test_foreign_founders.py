"""S25 f: a disk that has founded another cluster gets nothing of this one's log, and has no word.

Two clusters number their entries and terms alike, so a log that another cluster wrote may look like
a part of this one's. The disks are told apart by who formed the cluster with them (docs/adr/0036).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from harness.cluster import SETTINGS, Cluster
from harness.journal import SimDisk
from harness.node_changes import learner, learners, led_by, refusal, settle, voters
from harness.teeth import Switches, first_harm, guards
from holdfast.raft.core.context import ALL, Switch
from holdfast.raft.membership import Promote, Remove

if TYPE_CHECKING:
    from collections.abc import Iterable


ALONE = "of a cluster of one"


def two_clusters(switches: Switches = ALL, terms: int = 1) -> Cluster:
    """A leads A, B and C in term 1, with the entry X; D has founded a cluster of one.

    D was elected in it so often. Its file named D alone, and names all four from now on.
    """
    c = Cluster(switches=switches)
    found_apart(c, "D", terms)
    c.elect("A", "ABC")
    x = c.put("A", "X")
    settle(c, "ABC")
    assert x in c.consumer("A").acknowledged
    return c


def found_apart(c: Cluster, name: str, terms: int = 1) -> None:
    """Start a node alone with --bootstrap, on an empty disk, and let it commit an entry."""
    c.ids = c.ids.replace(name, "") + name
    c.files[name], c.disks[name] = name, SimDisk()
    c.start(name, bootstrap=True)
    c.pump(name, rounds=2)
    for _ in range(terms):
        c.restart(name)
        c.elect(name, name)
    c.put(name, ALONE)
    c.pump(name, rounds=3)
    assert c.consumer(name).values == [ALONE]
    c.files[name] = c.files["A"] + name


def holds(c: Cluster, node: str, value: str) -> bool:
    """Whether the entry is in a node's log, committed or not."""
    return any(
        entry.payload.endswith(value.encode()) for entry in c.disks[node].journal.load().entries
    )


def heard_of_another_cluster(messages: Iterable[str]) -> list[str]:
    return [said for said in messages if "are of two clusters" in said]


@guards(Switch.S25_FOREIGN, harm="two_histories")
def test_s25f_a_log_of_another_cluster_is_not_taken_for_this_one(switches: Switches) -> str:
    """Entry 2 of term 1 is another one on D; it looks held, so D is a voter that never had X."""
    c = two_clusters(switches)
    c.restart("D")
    c.add("A", "D")
    settle(c)
    c.connect_all()
    settle(c, rounds=20)
    c.change("A", Promote("D"))
    settle(c)

    return first_harm(two_histories="D" in voters(c, "A") and holds(c, "D", ALONE))


@guards(Switch.S25_FOREIGN, harm="overwritten")
def test_s25f_a_leader_of_another_cluster_is_not_elected(switches: Switches) -> str:
    """D's log has the higher term, so it would win, and overwrite what A has acknowledged."""
    c = two_clusters(switches, terms=3)
    c.restart("D")
    c.add("A", "D")
    settle(c, "ABC")
    c.crash("A")
    c.connect_all("BCD")
    c.clock.advance(3 * SETTINGS.election_max)
    for node in "BC":
        c.exchange(node, "D")
    return first_harm(overwritten=c.campaign("D", "BC") or c.campaign("D", "BC"))


def test_its_term_deposes_nobody() -> None:
    """It leads a cluster of its own, in a higher term, while the other one's leader asks it."""
    c = two_clusters(terms=5)
    term = c.engine("A").status().term
    assert c.engine("D").status().term > term

    c.add("A", "D")
    settle(c)
    c.connect_all()
    settle(c, rounds=20)

    status = c.engine("A").status()
    assert (status.role, status.term) == ("leader", term)
    assert c.engine("D").status().role == "leader", "nor does it lose what it is by itself"


def test_it_is_not_promoted_and_the_refusal_says_why() -> None:
    c = two_clusters()
    c.restart("D")
    c.add("A", "D")
    c.connect_all()
    settle(c, rounds=20)

    c.change("A", Promote("D"))

    said = refusal(c, "A")
    assert "'D'" in said
    assert "has founded another cluster" in said
    assert "without --bootstrap" in said
    assert learners(c, "A") == "D"


def test_both_say_so_once_a_connection(caplog: pytest.LogCaptureFixture) -> None:
    """Neither can know which of the two is the mistake, so neither is told to be thrown away."""
    c = two_clusters()
    c.restart("D")
    c.add("A", "D")
    with caplog.at_level(logging.ERROR):
        c.network.connect("A", "D")
        settle(c, rounds=20)

    said = heard_of_another_cluster(caplog.messages)

    assert len(said) == 2, "one by each"
    assert any("node 'D' and this node, 'A'," in text for text in said)
    assert any("node 'A' and this node, 'D'," in text for text in said)


def test_an_empty_disk_in_its_place_is_asked_anew_and_gets_the_log() -> None:
    """What the sentence advises helps; a later connection may be another disk's."""
    c = two_clusters()
    c.restart("D")
    c.add("A", "D")
    c.connect_all()
    settle(c, rounds=20)

    c.restart("D", wiped=True)
    c.connect_all()
    settle(c, rounds=20)

    assert c.consumer("D").values == ["X"]
    c.change("A", Promote("D"))
    settle(c)
    assert voters(c, "A") == "ABCD"


def test_a_good_disk_that_is_replaced_by_a_founders_gets_nothing_more() -> None:
    c = led_by("A")
    learner(c, "A", "D")
    c.crash("D")
    found_apart(c, "D")
    c.restart("D")
    c.elect("B", "ABC")
    c.put("B", "X")
    c.connect_all()
    settle(c, rounds=20)

    assert not holds(c, "D", "X")
    c.change("B", Promote("D"))
    assert "has founded another cluster" in refusal(c, "B")


def test_a_bootstrap_flag_on_a_new_node_that_names_its_peers_does_no_harm() -> None:
    """S19: it has founded nothing yet when a member tells it that the cluster is there."""
    c = led_by("A")
    c.put("A", "X")
    c.add("A", "D")
    settle(c)
    c.files["D"], c.disks["D"] = "ABCD", SimDisk()
    c.ids += "D"
    c.start("D", bootstrap=True)
    c.connect_all()
    settle(c, rounds=20)

    assert c.consumer("D").values == ["X"]


def test_a_founder_is_heard_by_nodes_that_came_later() -> None:
    """D and E are of no founding; A, B and C are of theirs. All of them lead in turn."""
    c = led_by("A")
    for name in "DE":
        learner(c, "A", name)
        c.change("A", Promote(name))
        settle(c)
    for leader in "DBE":
        c.elect(leader)
        c.put(leader, f"by {leader}")
        settle(c, rounds=20)

    assert {tuple(c.consumer(n).values) for n in "ABCDE"} == {("by D", "by B", "by E")}


def test_a_voter_that_a_lagging_node_does_not_know_is_heard() -> None:
    """Raft thesis 4.1: C has not heard of D and E, who are voters by now, and D leads."""
    c = led_by("A")
    c.isolate("C")
    for name in "DE":
        c.add("A", name)
        settle(c, "ABDE")
        c.join(name)
        c.connect_all("ABDE")
        settle(c, "ABDE", rounds=20)
        c.change("A", Promote(name))
        settle(c, "ABDE")
    c.elect("D", "ABDE")
    c.put("D", "by D")
    settle(c, "ABDE")
    c.network.connect("C", "D")
    settle(c, rounds=20)

    assert c.consumer("C").values == ["by D"]
    assert voters(c, "C") == "ABCDE"


def test_a_founder_whose_removal_is_not_committed_is_no_stranger() -> None:
    """S25 e: it may yet lead and undo its removal, also over a new connection."""
    c = led_by("A", "ABCDE")
    for peer in "CD":
        c.network.cut("A", peer)
    c.change("A", Remove("E"))
    c.pump("AB", rounds=3)
    assert voters(c, "B") == "ABCD"
    c.crash("A")
    c.network.cut("B", "E")
    c.network.connect("B", "E")
    c.clock.advance(3 * SETTINGS.election_max)
    assert c.campaign("E", "CDE")
    settle(c, "BCDE")

    assert voters(c, "B") == "ABCDE"
