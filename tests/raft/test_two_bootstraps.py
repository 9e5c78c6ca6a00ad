"""S25 f: a voter's disk of another bootstrap of the same cluster id is heard by nobody.

The nodes are those of the beginning, so no entry of membership says which disks founded: the disks
know it themselves. Entries of two clusters have the same indexes and terms (docs/adr/0047).
"""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from harness.cluster import HEARTBEAT, SETTINGS, Cluster
from harness.journal import SimDisk
from harness.node_changes import settle
from harness.teeth import Switches, first_harm, guards
from holdfast.raft.core.context import ALL, Switch
from holdfast.raft.messages import Hello, Recalled
from holdfast.storage.journal.journal import JournalBatch

OLD = ["old-1", "old-2", "old-3", "old-4"]


def begun_again(switches: Switches = ALL, terms: int = 1) -> tuple[Cluster, dict[str, SimDisk]]:
    """A, B and C begin anew on empty disks; return the disks of the first cluster as well.

    That one held the entries OLD and was led so often by A; the second holds X, and B leads it.
    """
    c = Cluster(switches=switches)
    for leader in "ABA"[:terms]:
        c.elect(leader)
    for value in OLD:
        c.put("A", value)
    settle(c)
    assert c.consumer("C").values == OLD
    disks = c.disks
    for node in "ABC":
        c.crash(node)
    c.disks = {node: SimDisk() for node in "ABC"}
    for node in "ABC":
        c.start(node, bootstrap=True)
    c.connect_all()
    settle(c)
    c.elect("B")
    c.put("B", "X")
    settle(c)
    assert c.consumer("C").values == ["X"]
    return c, disks


def with_the_disk(c: Cluster, node: str, disk: SimDisk) -> None:
    """Put another disk in a node's place, and start the node on it."""
    if node in c.nodes:
        c.crash(node)
    c.disks[node] = disk
    c.start(node)


def disagree(c: Cluster, nodes: str) -> bool:
    """Whether two nodes have evolved other values at one index."""
    one, other = (c.consumer(node).values for node in nodes)
    return any(a != b for a, b in zip(one, other, strict=False))


def foreign(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [said for said in caplog.messages if "are of two clusters" in said]


@guards(Switch.S25_FOREIGN, harm="x_is_lost")
def test_s25f_a_voter_of_another_bootstrap_is_not_elected(switches: Switches) -> str:
    """Its log has the higher term, so it would win, and append its entries behind X's index."""
    c, disks = begun_again(switches, terms=3)
    with_the_disk(c, "A", disks["A"])
    c.connect_all()
    settle(c)
    led = False
    for _ in range(3):
        c.clock.advance(3 * SETTINGS.election_max)
        led = led or c.campaign("A", "ABC")
    settle(c)
    return first_harm(x_is_lost=led and disagree(c, "AC"))


def led_by_c(switches: Switches = ALL) -> Cluster:
    """C leads with B, both have been restarted; A comes back with its disk of the first time."""
    c, disks = begun_again(switches)
    c.crash("A")
    for node in "BC":
        c.restart(node)
    c.connect_all("BC")
    c.elect("C", "BC")
    with_the_disk(c, "A", disks["A"])
    c.connect_all()
    c.engine("A").overlay.completion.run()
    return c


@guards(Switch.S25_FOREIGN, harm="majority_without_votes")
def test_s25f_what_it_remembers_makes_nobody_give_up_its_vote(switches: Switches) -> str:
    """S21: it remembers more of the others than they ever held, of disks that are not theirs."""
    c = led_by_c(switches)
    for node in "BC":
        c.exchange("A", node)
    stages = [c.engine(node).status().stage for node in "BC"]
    return first_harm(majority_without_votes=stages == ["rebuilding"] * 2)


def test_s25f_before_it_has_said_whose_it_is_nothing_of_it_counts() -> None:
    """Its first message is lost, or it is of a version that says it only when it is asked."""
    c = led_by_c()
    for node in "BC":
        assert [type(m) for m in c.network.waiting("A", node)][:2] == [Hello, Recalled]
        c.network.lose("A", node, 1)
        c.exchange("A", node)
        assert c.engine(node).status().stage == "member"
    settle(c)

    assert c.engine("C").status().role == "leader"
    assert c.engine("C").overlay.foreign.is_foreign("A"), "it was asked"


def test_s25f_its_vote_elects_nobody() -> None:
    """C lacks what A and B have acknowledged; B is down, and A has an older disk of A."""
    c, disks = begun_again()
    c.isolate("C")
    y = c.put("B", "Y")
    settle(c, "AB")
    assert y in c.consumer("B").acknowledged
    c.crash("B")
    with_the_disk(c, "A", disks["A"])
    c.network.connect("A", "C")
    for _ in range(4):
        c.clock.advance(3 * SETTINGS.election_max)
        c.exchange("A", "C")
        assert not c.campaign("C", "AC")
        assert not c.campaign("A", "AC")


def test_the_majority_serves_on_and_both_sides_say_why(caplog: pytest.LogCaptureFixture) -> None:
    """One sentence, once a connection, with what to do."""
    c, disks = begun_again()
    with caplog.at_level(logging.ERROR):
        with_the_disk(c, "A", disks["A"])
        c.connect_all()
        settle(c, rounds=20)
    c.put("B", "Y")
    settle(c)

    assert c.engine("B").status().role == "leader"
    assert c.consumer("B").values == c.consumer("C").values == ["X", "Y"]
    assert c.consumer("A").values[: len(OLD)] in (OLD, [])
    said = foreign(caplog)
    assert len(said) == 4, "A and B, A and C: one by each"
    assert all("--rebuild" in text and "keep its data directory" in text for text in said)


def test_what_the_sentence_advises_helps() -> None:
    """An empty directory is rebuilt; so is the right one taken back."""
    c, disks = begun_again()
    own = c.disks["A"]
    with_the_disk(c, "A", disks["A"])
    c.connect_all()
    settle(c)
    with_the_disk(c, "A", own)
    c.connect_all()
    settle(c, rounds=20)
    assert c.consumer("A").values == ["X"]

    c.restart("A", wiped=True)
    c.connect_all()
    settle(c, rounds=20)
    assert c.consumer("A").values == ["X"]
    assert c.engine("A").status().stage == "member"


def test_s19_a_rebuilt_disk_knows_who_founded_the_cluster_that_it_came_to() -> None:
    """It formed with nobody: the leader that admits it tells. Else it would vote for the other."""
    c, disks = begun_again(terms=3)
    c.restart("C", wiped=True)
    c.connect_all()
    settle(c, rounds=20)
    assert c.engine("C").status().stage == "member"
    told = c.engine("B").overlay.identity.formed
    assert c.engine("C").overlay.identity.formed == told
    c.restart("C")
    c.crash("B")
    with_the_disk(c, "A", disks["A"])
    c.network.connect("A", "C")
    for _ in range(4):
        c.clock.advance(3 * SETTINGS.election_max)
        c.exchange("A", "C")
        assert not c.campaign("A", "AC")


def test_a_rebuilt_disk_of_another_bootstrap_is_foreign_as_well() -> None:
    c, disks = begun_again()
    mine = c.disks
    for node in "ABC":
        c.crash(node)
    c.disks = disks
    for node in "AC":
        c.start(node)
    c.restart("B", wiped=True)
    c.connect_all()
    c.elect("A", "AC")
    settle(c, rounds=20)
    assert c.engine("B").status().stage == "member"
    rebuilt = c.disks["B"]
    for node in "ABC":
        c.crash(node)
    c.disks = mine | {"B": rebuilt}
    for node in "ABC":
        c.start(node)
    c.connect_all()
    c.elect("A", "AC")
    settle(c)

    assert c.consumer("A").values == c.consumer("C").values == ["X"]
    assert c.engine("A").overlay.foreign.is_foreign("B")


def test_disks_that_tell_no_founders_go_on_as_before() -> None:
    """A disk that was rebuilt before knows none; what is unknown is not foreign."""
    c = Cluster()
    c.elect("A")
    c.put("A", "X")
    settle(c)
    for node in "ABC":
        c.crash(node)
        identity = c.disks[node].journal.load().identity
        assert identity is not None
        c.disks[node].journal.commit(JournalBatch(identity=replace(identity, formed=())))
        c.start(node)
    c.connect_all()
    c.elect("B")
    c.restart("C", wiped=True)
    c.connect_all()
    settle(c, rounds=20)

    assert {tuple(c.consumer(node).values) for node in "ABC"} == {("X",)}
    assert c.engine("C").status().stage == "member"


def test_one_founder_among_disks_that_tell_no_founders_goes_on() -> None:
    c = Cluster()
    c.elect("A")
    c.put("A", "X")
    settle(c)
    for node in "BC":
        c.crash(node)
        identity = c.disks[node].journal.load().identity
        assert identity is not None
        c.disks[node].journal.commit(JournalBatch(identity=replace(identity, formed=())))
        c.start(node)
    c.connect_all()
    c.elect("B")
    c.elect("A")

    assert {tuple(c.consumer(node).values) for node in "ABC"} == {("X",)}


def test_each_says_first_whose_disk_it_has() -> None:
    """The first message of each connection: the peer judges by it what comes behind it."""
    c = Cluster()
    for node in "ABC":
        c.restart(node)
    c.connect_all()
    for a, b in ("AB", "BA", "AC", "CA", "BC", "CB"):
        c.engine(a).overlay.completion.run()
        assert isinstance(c.network.waiting(a, b)[0], Hello)


def attempts_after_a_restart(switches: Switches) -> int:
    """Return how often B has to try until it is elected, all nodes having been restarted."""
    c = Cluster(switches=switches)
    c.elect("A")
    settle(c)
    for node in "ABC":
        c.restart(node)
    c.clock.advance(2 * SETTINGS.election_max)
    c.connect_all()
    for attempt in range(1, 5):
        if c.campaign("B", "ABC"):
            return attempt
        c.clock.advance(2 * SETTINGS.election_max)
    return 0


def test_an_election_after_a_restart_waits_for_no_answer() -> None:
    """It takes what it takes without the question."""
    without = attempts_after_a_restart(ALL - {Switch.S25_FOREIGN})
    assert attempts_after_a_restart(ALL) == without > 0


def test_a_peer_that_was_not_heard_is_asked_again() -> None:
    """The first words are lost, and so is the first answer; a leader's heartbeats ask."""
    c = Cluster()
    c.elect("A")
    settle(c)
    c.restart("C")
    c.connect_all()
    for link in ("AC", "CA", "AC", "CA"):
        c.network.lose(*link)
        c.pump(rounds=1, seconds=HEARTBEAT)
    settle(c)
    c.put("A", "X")
    settle(c)

    assert c.consumer("C").values == ["X"]


def test_a_peer_that_only_answers_is_heard_after_its_answer() -> None:
    """An older version does not say first who it is, but answers."""
    c = Cluster()
    c.elect("A")
    settle(c)
    c.restart("C")
    c.connect_all()
    for peer in "AB":
        c.network.lose("C", peer, 1)
    settle(c)
    c.put("A", "X")
    settle(c)

    assert c.consumer("C").values == ["X"]


def test_once_the_disks_are_known_nobody_is_asked_again() -> None:
    """One question and one answer a connection, each way."""
    c = Cluster()
    c.elect("A")
    settle(c)
    c.restart("C")
    c.connect_all()
    settle(c)
    asked = []
    for _ in range(20):
        c.pump(rounds=1, seconds=HEARTBEAT)
        asked += [m for a in "ABC" for b in "ABC" for m in c.network.waiting(a, b)]

    assert asked
    assert not any(isinstance(message, Hello) for message in asked)
