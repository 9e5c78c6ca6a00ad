"""S19: only the nodes that a file names form a cluster with it, whoever else is connected.

Another node of the cluster may connect before anything is formed (ADR 41): its own file names them.
"""

from __future__ import annotations

from harness.cluster import HEARTBEAT, SETTINGS, Cluster
from harness.journal import SimDisk


def outsider(c: Cluster, name: str, *, bootstrap: bool = True) -> None:
    """Start a new node whose file names the others too; no other file names it."""
    c.ids += name
    c.files[name], c.disks[name] = c.ids, SimDisk()
    c.start(name, bootstrap=bootstrap)


def stages(c: Cluster, among: str) -> str:
    return " ".join(c.engine(node).status().stage for node in among)


def test_s19_a_node_that_no_file_names_does_not_stand_in_for_a_peer() -> None:
    """C alone holds X, and is away; A and B have new disks, and the flag was left on."""
    c = Cluster()
    c.elect("C")
    x = c.put("C", "X")
    c.pump(rounds=6, seconds=HEARTBEAT)
    assert x in c.consumer("C").acknowledged
    c.crash("C")
    for node in "AB":
        c.restart(node, wiped=True, bootstrap=True)
    outsider(c, "D")
    c.connect_all("ABD")
    c.pump("ABD", rounds=10, seconds=HEARTBEAT)
    c.clock.advance(3 * SETTINGS.election_max)

    assert not c.campaign("A", "AB"), "an empty cluster in the place of the one that C holds"
    assert stages(c, "AB") == "forming forming"


def test_s19_a_node_that_no_file_names_does_not_keep_the_peers_from_forming() -> None:
    c = Cluster(formed=False)
    outsider(c, "D")
    c.connect_all()
    c.pump(rounds=10, seconds=HEARTBEAT)

    assert stages(c, "ABC") == "member member member"
    for node in "ABC":
        assert sorted(c.engine(node).overlay.identity.formed) == ["A", "B", "C"]
    assert stages(c, "D") == "rebuilding", "a cluster is there"


def test_s19_a_member_that_no_file_names_says_that_a_cluster_is_there() -> None:
    """Nodes change, and files lag behind: a new disk does not found what another node holds."""
    c = Cluster(formed=False)
    c.crash("C")
    c.files["D"] = "D"
    c.disks["D"] = SimDisk()
    c.ids += "D"
    c.start("D", bootstrap=True)
    c.pump("D", rounds=2)
    assert stages(c, "D") == "member"
    c.connect_all("ABD")
    c.engine("D").overlay.forming.ask_one("A")
    c.pump("ABD", rounds=4, seconds=HEARTBEAT)

    assert stages(c, "A") == "rebuilding"
