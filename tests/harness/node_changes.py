"""What scenarios of changes of nodes have in common (S25)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.cluster import HEARTBEAT, Cluster
from harness.teeth import Switches
from holdfast.raft.core.context import ALL
from holdfast.raft.membership import Promote

if TYPE_CHECKING:
    from holdfast.raft.membership import Membership


def settle(c: Cluster, among: str | None = None, rounds: int = 12) -> None:
    """Let heartbeats, entries and answers pass."""
    c.pump(among, rounds=rounds, seconds=HEARTBEAT)


def led_by(leader: str, ids: str = "ABC", switches: Switches = ALL) -> Cluster:
    c = Cluster(ids, switches=switches)
    c.elect(leader)
    settle(c)
    return c


def nodes(c: Cluster, node: str) -> Membership:
    return c.engine(node).overlay.in_force.now


def voters(c: Cluster, node: str) -> str:
    return "".join(nodes(c, node).voter_names)


def learners(c: Cluster, node: str) -> str:
    return "".join(each.name for each in nodes(c, node).learners)


def learner(c: Cluster, leader: str, name: str) -> None:
    """Add a node, start it, and let it catch up."""
    c.add(leader, name)
    settle(c)
    c.join(name)
    c.connect_all()
    settle(c, rounds=20)
    assert learners(c, name).count(name) == 1
    assert c.engine(name).status().stage == "member"


def voter(c: Cluster, leader: str, name: str) -> None:
    """Add a node and promote it."""
    learner(c, leader, name)
    c.change(leader, Promote(name))
    settle(c)
    assert name in voters(c, leader), c.consumer(leader).refused


def refusal(c: Cluster, node: str) -> str:
    """Return why the last proposal was refused; empty if none was."""
    settle(c, node, rounds=1)
    refused = c.consumer(node).refused
    return refused[-1].reason if refused else ""


def caught_up(c: Cluster, node: str, peer: str) -> bool:
    """Return whether a node's status says that a learner may become a voter."""
    peers = {each.peer: each.caught_up for each in c.engine(node).status().peers}
    return peers[peer]
