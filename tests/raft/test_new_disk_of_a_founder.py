"""S19, S25 f: a founder's new disk that has formed a cluster alone is none of the one that grew.

A cluster began with A alone, so A's file names no peer. B and C were added. A's disk is replaced,
and --bootstrap was left on: nobody is named whom A could ask. Those that came later have formed
with nobody; the log tells them which disks founded their cluster (docs/adr/0043).
"""

from __future__ import annotations

import logging

import pytest

from harness.cluster import HEARTBEAT, SETTINGS, Cluster
from harness.journal import SimDisk
from harness.node_changes import led_by, nodes, settle, voter, voters
from harness.recovered import recovered
from harness.teeth import Switches, first_harm, guards
from holdfast.raft.api import EngineStopped
from holdfast.raft.core.context import ALL, Switch
from holdfast.raft.membership import Remove


def grown(switches: Switches = ALL) -> Cluster:
    """A, B and C are voters; A founded the cluster, leads it, and holds X with B. C lags."""
    c = Cluster("A", switches=switches)
    c.elect("A")
    voter(c, "A", "B")
    voter(c, "A", "C")
    for peer in "AB":
        c.network.cut("C", peer)
    x = c.put("A", "X")
    settle(c, "AB")
    assert voters(c, "C") == "ABC"
    assert x in c.consumer("A").acknowledged
    assert "X" not in c.consumer("C").values
    return c


def with_another_disk(c: Cluster) -> None:
    """Replace A's disk, and start it as its unit says: it forms a cluster of one again."""
    assert c.files["A"] == "A"
    c.restart("A", wiped=True, bootstrap=True)
    c.pump("A", rounds=4, seconds=HEARTBEAT)
    assert c.engine("A").status().stage == "member"


def stops(c: Cluster, node: str) -> str:
    """Return what a node says when it stops."""
    with pytest.raises(EngineStopped) as stopped:
        c.pump(node, rounds=4, seconds=HEARTBEAT)
    return str(stopped.value)


def ask_for_votes(c: Cluster, node: str, peer: str) -> None:
    """Let a node ask a peer for its vote, a few times."""
    for _ in range(4):
        c.campaign(node, peer)
        c.tick(node)


@guards(Switch.S25_FOREIGN, harm="x_is_lost")
def test_s19_a_founders_new_disk_elects_nobody(switches: Switches) -> str:
    """A and B have X, C lags; A's disk is replaced; B dies; A must not vote for C."""
    c = grown(switches)
    c.crash("B")
    with_another_disk(c)
    c.network.connect("A", "C")
    led = False
    for _ in range(4):
        c.clock.advance(3 * SETTINGS.election_max)
        c.exchange("C", "A")
        led = led or c.campaign("C", "A")
    return first_harm(x_is_lost=led)


def test_s25f_those_that_came_later_know_the_founders_from_the_log() -> None:
    """Also after a restart behind a snapshot, and whoever made the last change."""
    c = Cluster("A")
    c.elect("A")
    voter(c, "A", "B")
    voter(c, "A", "C")
    founders = (("A", c.engine("A").overlay.identity.incarnation),)
    c.elect("B")
    c.add("B", "D")
    settle(c)
    c.consumer("C").snapshot()
    settle(c)
    c.restart("C")

    for node in "ABC":
        assert nodes(c, node).founders == founders


def test_s25f_it_is_neither_heard_nor_fed_by_those_that_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """B and C are a majority; A's new disk leads a cluster of its own."""
    c = grown()
    c.crash("A")
    c.network.connect("B", "C")
    c.elect("B", "BC")
    c.put("B", "Y")
    settle(c, "BC")
    with_another_disk(c)
    c.elect("A", "A")
    with caplog.at_level(logging.ERROR):
        c.connect_all()
        settle(c, "BC")
        c.exchange("B", "A")

    assert c.engine("B").status().role == "leader"
    assert c.consumer("B").values == c.consumer("C").values == ["X", "Y"]
    assert any("node 'A' and this node, 'B', are of two clusters" in m for m in caplog.messages)


def test_s19_it_stops_as_soon_as_a_member_speaks_to_it(caplog: pytest.LogCaptureFixture) -> None:
    """Its clients would be served an empty cluster under the name of the one that they know."""
    c = grown()
    c.crash("B")
    with_another_disk(c)
    c.elect("A", "A")
    c.network.connect("A", "C")
    c.pump("C", rounds=1, seconds=HEARTBEAT)
    c.exchange("C", "A")

    said = stops(c, "A")

    assert "node 'C' is a member of a cluster of the same name" in said
    assert "with --rebuild on an empty directory, without --bootstrap" in said
    assert "alarm" in caplog.text
    assert "Traceback" not in caplog.text, "it is no defect, but a wrong disk"


def test_s19_it_stops_too_when_the_cluster_was_restored_since() -> None:
    """S13: the two greet each other with unlike recovery numbers, and get no further."""
    c = grown()
    c.crash("B")
    with_another_disk(c)
    c.elect("A", "A")
    c.engine("A").on_later_restore("C")

    said = stops(c, "A")

    assert "node 'C' is of a cluster of the same name that was restored" in said
    assert "with --rebuild on an empty directory, without --bootstrap" in said


def test_a_member_of_more_than_itself_is_not_stopped_by_a_restore() -> None:
    """S13: nodes of before and after do not speak, and the operator decides which go on."""
    c = grown()
    c.engine("A").on_later_restore("C")
    c.pump("AB", rounds=4, seconds=HEARTBEAT)

    assert c.engine("A").status().role == "leader"


def test_what_it_says_helps() -> None:
    """The disk is emptied, and the file names the others."""
    c = grown()
    c.crash("A")
    c.network.connect("B", "C")
    c.elect("B", "BC")
    c.files["A"] = "ABC"
    c.restart("A", wiped=True)
    c.connect_all()
    settle(c, rounds=20)

    assert c.engine("A").status().stage == "member"
    c.crash("B")
    c.clock.advance(3 * SETTINGS.election_max)
    assert c.campaign("C", "A")


def test_a_founder_that_comes_back_with_its_disk_is_heard() -> None:
    """Each connection asks it anew; it leads again."""
    c = grown()
    c.restart("A")
    c.connect_all()
    c.pump(rounds=4, seconds=HEARTBEAT)
    c.elect("A")
    c.put("A", "Y")
    settle(c)

    assert {tuple(c.consumer(node).values) for node in "ABC"} == {("X", "Y")}


def test_a_founder_alone_is_stopped_by_no_disk_that_has_founded_apart() -> None:
    """Nobody can tell which of the two is the mistake (ADR 36)."""
    c = Cluster("A")
    c.elect("A")
    c.ids += "D"
    c.files["D"], c.disks["D"] = "D", SimDisk()
    c.start("D", bootstrap=True)
    c.elect("D", "D")
    c.connect_all()
    settle(c)

    assert {c.engine(node).status().role for node in "AD"} == {"leader"}


def test_a_founder_alone_that_was_made_larger_by_files_goes_on() -> None:
    """So clusters grew before nodes stood on the log: B and C rebuilt from A, by their files."""
    c = Cluster("A")
    c.elect("A")
    c.put("A", "X")
    c.pump(rounds=3, seconds=HEARTBEAT)
    c.files = dict.fromkeys("ABC", "ABC")
    c.crash("A")
    c.ids = "ABC"
    c.disks |= {node: SimDisk() for node in "BC"}
    for node in "ABC":
        c.start(node)
    c.connect_all()
    c.engine("A").overlay.forming.ask()
    settle(c)

    assert c.engine("A").status().stage == "member"


def test_s25f_after_a_recovery_the_new_disks_are_the_founders() -> None:
    """Else a disk that rebuilt through the old log would take the survivor for foreign."""
    c = recovered()
    c.elect("A", "AB")
    settle(c, "AB")
    c.start("C")
    c.connect_all("ABC")
    settle(c, "ABC", rounds=20)
    c.restart("C")
    c.connect_all("ABC")
    c.elect("B", "ABC")
    c.put("B", "X")
    settle(c, "ABC")

    assert nodes(c, "C").founders == (("A", "new-a"), ("B", "new-b"))
    assert c.consumer("C").values == ["X"]


def test_s25e_a_removed_voter_that_asks_whose_disk_it_is_gets_both_answers() -> None:
    """It believes no removal by a disk that it does not know."""
    c = led_by("A")
    voter(c, "A", "D")
    c.isolate("B")
    c.change("A", Remove("B"))
    settle(c, "ACD")
    c.network.connect("A", "B")
    c.clock.advance(2 * SETTINGS.election_max)

    with pytest.raises(EngineStopped, match="this node was removed from the cluster"):
        ask_for_votes(c, "B", "A")


def test_the_founders_outlive_their_removal() -> None:
    """They say which cluster it is, not who is in it."""
    c = led_by("A")
    before = tuple(sorted(c.engine("A").overlay.identity.formed.items()))
    voter(c, "A", "D")
    c.change("A", Remove("C"))
    settle(c)

    assert nodes(c, "D").founders == before
    assert [node for node, _ in before] == ["A", "B", "C"]
