"""ADR 18: a node whose sync hangs is dropped by its peers after three seconds, and dialled again.

Its engine's thread reads and answers nothing meanwhile, but its port goes on accepting. So when it
goes on, what it was sent at first is lost, and what came on the new connections waits. Nobody else
may pay for that: no election, and nothing is missing in the end.
"""

from __future__ import annotations

import pytest

from harness.cluster import HEARTBEAT, Cluster
from harness.teeth import Switches, first_harm, guards
from holdfast.raft.core.context import Switch

DROPPED_S, HANGS_S = 3.0, 5.0
COMMITTED = ["while it hangs", "while it is away"]
SEEDS = range(5)


def hangs(c: Cluster, node: str, others: str, *, again: bool) -> None:
    """A node's engine stands still; the others go on, commit, and drop it.

    `again`: they have dialled it again before it goes on.
    """
    c.pump(rounds=3, seconds=HEARTBEAT, calm=False)
    propose(c, COMMITTED[0])
    passes(c, others, DROPPED_S)
    for peer in others:
        c.network.cut(peer, node)
    if again:
        for peer in others:
            c.network.connect(peer, node)
    propose(c, COMMITTED[1])
    passes(c, others, HANGS_S - DROPPED_S)
    assert c.consumer("A").values == COMMITTED


def propose(c: Cluster, value: str) -> None:
    """Propose at A, and leave all election timers alone."""
    c.engine("A").propose(value.encode(), c.engine("A").status().term)


def passes(c: Cluster, nodes: str, seconds: float) -> None:
    """Let time pass for these nodes, whose timers run."""
    c.pump(nodes, rounds=int(seconds / HEARTBEAT), seconds=HEARTBEAT, calm=False)


def timer_fires(c: Cluster, node: str) -> None:
    """The sync returns, and the tick looks at the timer before anything is read."""
    assert c.engine(node).overlay.state.election_deadline < c.nodes[node].clock()
    c.tick(node)


def terms(c: Cluster) -> set[int]:
    return {c.engine(node).status().term for node in c.ids}


@guards(Switch.PRE_VOTE, harm="an_election")
def test_e13_a_follower_that_was_dialled_again_costs_no_election(switches: Switches) -> str:
    """Its timer fires before it hears the leader; the others hear that one and grant nothing."""
    elections = 0
    for seed in SEEDS:
        c = Cluster(switches=switches, seed=seed)
        c.elect("A")
        before = terms(c)
        hangs(c, "B", "AC", again=True)
        timer_fires(c, "B")
        passes(c, "ABC", 2.0)
        elections += terms(c) != before
    return first_harm(an_election=elections)


@pytest.mark.parametrize("timer_first", [True, False])
@pytest.mark.parametrize("again", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_what_a_dropped_follower_was_sent_is_sent_again(
    seed: int, *, again: bool, timer_first: bool
) -> None:
    """Whether it is dialled before it goes on or after: the leader stays, nothing is missing."""
    c = Cluster(seed=seed)
    c.elect("A")
    before = terms(c)
    hangs(c, "B", "AC", again=again)
    if timer_first:
        timer_fires(c, "B")
    c.connect_all()
    passes(c, "ABC", 2.0)

    assert (terms(c), c.engine("A").status().role) == (before, "leader")
    assert c.consumer("B").values == COMMITTED


def test_a_leader_that_was_dropped_follows_its_heir() -> None:
    """The others elect one of them once, as for any dead leader; its return begins no other term.

    What it alone had logged is not acknowledged, and gives way.
    """
    c = Cluster()
    c.elect("A")
    alone = c.put("A", "on A alone")
    for peer in "BC":
        c.network.cut("A", peer)
    c.elect("B", "BC")
    c.put("B", "from the heir")
    passes(c, "BC", HANGS_S)
    elected = c.engine("B").status().term
    c.connect_all()
    c.tick("A")
    passes(c, "ABC", 2.0)

    assert (terms(c), c.engine("B").status().role) == ({elected}, "leader")
    assert {tuple(c.consumer(node).values) for node in c.ids} == {("from the heir",)}
    assert alone not in c.consumer("A").acknowledged
