"""S25 f, S19: a disk that came after the founding knows the founders from others, and tells them.

It formed with nobody: the log tells it who founded, or the leader that admits it (docs/adr/0047).
Of a disk that says nothing everything is believed, also what it remembers (S21). So one of these
that is left of an earlier bootstrap could do what a founder's disk of then cannot do any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.cluster import HEARTBEAT, Cluster
from harness.journal import SimDisk
from harness.node_changes import led_by, nodes, settle, voter
from harness.teeth import Switches, first_harm, guards
from holdfast.raft.core.context import ALL, Switch
from holdfast.raft.core.membership.changes import MembershipChanges
from holdfast.raft.membership import ENTRY_KIND, Promote
from holdfast.raft.messages import Append, Hello

if TYPE_CHECKING:
    import pytest

    from holdfast.raft.membership import Membership


def grown(switches: Switches = ALL) -> Cluster:
    """A, B and C founded, D came later; A led twice, with a few entries that all of them hold."""
    c = led_by("A", switches=switches)
    voter(c, "A", "D")
    c.elect("B")
    c.elect("A")
    for value in "abcdefgh":
        c.put("A", value)
    settle(c)
    return c


def begun_again(c: Cluster) -> dict[str, SimDisk]:
    """Let A, B and C begin anew on empty disks, led by B, with X; return those of before."""
    old = c.disks
    for node in list(c.nodes):
        c.crash(node)
    c.ids, c.files = "ABC", dict.fromkeys("ABC", "ABC")
    c.disks = {node: SimDisk() for node in "ABC"}
    for node in "ABC":
        c.start(node, bootstrap=True)
    c.connect_all()
    settle(c)
    c.elect("B")
    c.put("B", "X")
    settle(c)
    return old


def come_back(c: Cluster, node: str, disk: SimDisk) -> None:
    """Start a node on a disk of before, while the other ones have just been started, too."""
    if node in c.nodes:
        c.crash(node)
    for other in "ABC".replace(node, ""):
        c.restart(other)
    c.ids = "".join(sorted({*c.ids, node}))
    c.files.setdefault(node, "ABC" + node)
    c.disks[node] = disk
    c.start(node)
    c.connect_all()
    settle(c)


def stages(c: Cluster, among: str) -> str:
    return " ".join(c.engine(node).status().stage for node in among)


@guards(Switch.S25_FOREIGN, harm="majority_without_votes")
def test_s25f_a_node_that_had_joined_makes_nobody_give_up_its_vote(switches: Switches) -> str:
    """Nobody took D's unit away when the cluster was begun again, where it is no node.

    It remembers more of A, B and C than their new disks ever held.
    """
    c = grown(switches)
    old = begun_again(c)
    come_back(c, "D", old["D"])

    return first_harm(majority_without_votes=stages(c, "ABC").count("rebuilding") > 1)


def test_s25f_a_voters_disk_that_was_rebuilt_is_heard_by_nobody_of_another_founding() -> None:
    """C's disk was replaced in the first cluster after it had changed its nodes."""
    c = grown()
    c.restart("C", wiped=True)
    c.connect_all()
    settle(c, rounds=20)
    c.elect("B")
    c.elect("C")
    old = begun_again(c)
    come_back(c, "C", old["C"])
    c.elect("A", "AB")
    settle(c)

    assert stages(c, "AB") == "member member"
    assert c.consumer("A").values == c.consumer("B").values == ["X"]
    assert c.engine("A").overlay.foreign.is_foreign("C")


def test_s25f_a_disk_that_came_later_says_on_each_connection_who_founded() -> None:
    """What it knows from the log; in the first message, as everybody else."""
    c = grown()
    founders = dict(nodes(c, "A").founders)
    c.restart("D")
    c.connect_all()
    c.engine("D").overlay.completion.run()

    for peer in "ABC":
        said = c.network.waiting("D", peer)[0]
        assert isinstance(said, Hello)
        assert {each.node: each.incarnation for each in said.formed} == founders


def test_a_node_that_lags_hears_one_that_came_later_and_is_no_voter_by_its_log() -> None:
    """Raft thesis 4.1: C's log has an entry of membership, and none that tells of E, who leads."""
    c = grown()
    c.isolate("C")
    c.add("A", "E")
    settle(c, "ABD")
    c.join("E")
    c.connect_all("ABDE")
    settle(c, "ABDE", rounds=20)
    c.change("A", Promote("E"))
    settle(c, "ABDE")
    c.elect("E", "ABDE")
    c.put("E", "by E")
    settle(c, "ABDE")
    c.network.connect("C", "E")
    settle(c, rounds=20)

    assert c.consumer("C").values[-1] == "by E"


def changed_by_an_earlier_version(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A, B and C; D came later, by entries that do not say who founded."""

    def entry(_: MembershipChanges, then: Membership) -> bytes:
        return ENTRY_KIND + then.encode().encode()

    with monkeypatch.context() as earlier:
        earlier.setattr(MembershipChanges, "_entry", entry)
        c = led_by("A")
        voter(c, "A", "D")
    assert nodes(c, "A").founders == ()
    return c


def test_s19_a_rebuilt_disk_knows_the_founders_though_the_log_does_not_say_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The last change of nodes was an earlier version's; the leader's disk knows them."""
    c = changed_by_an_earlier_version(monkeypatch)
    formed = c.engine("A").overlay.identity.formed
    c.restart("C", wiped=True)
    c.connect_all()
    settle(c, rounds=20)

    assert stages(c, "C") == "member"
    assert c.engine("C").overlay.identity.formed == formed


def test_s19_a_disk_is_admitted_when_its_leader_has_said_who_founded() -> None:
    """C's connection to A is made anew a moment before A admits it: what A had said went with it.

    Else C would have a vote, and never learn for which cluster.
    """
    c = led_by("A")
    formed = c.engine("A").overlay.identity.formed
    c.restart("C", wiped=True)
    c.connect_all()
    until_admitted(c, "A", "C")
    c.engine("C").on_connected("A")
    c.network.deliver("A", "C")
    assert stages(c, "C") == "rebuilding"
    settle(c)

    assert stages(c, "C") == "member"
    assert c.engine("C").overlay.identity.formed == formed


def until_admitted(c: Cluster, leader: str, node: str) -> None:
    """Let time pass until the leader's word that admits a rebuilt disk is under way."""
    for _ in range(50):
        if any(isinstance(m, Append) and m.admit for m in c.network.waiting(leader, node)):
            return
        c.pump(rounds=1, seconds=HEARTBEAT)
    raise AssertionError(f"{leader} does not admit {node}")
