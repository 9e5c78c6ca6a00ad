"""S1 and S5: a proposal belongs to its term, and its fate is always learned."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.cluster import HEARTBEAT, Cluster
from harness.teeth import Switches, first_harm, guards
from holdfast.raft.api import EntryTooLarge, Fate, Overloaded, Settings
from holdfast.raft.core.context import ALL, Switch


@guards(Switch.S1_DROP, Switch.S1_SKIP, harm="live_member_expired")
def test_s1_decided_in_term_1_and_proposed_in_term_3(switches: Switches) -> str:
    """L1 decides an expiry and stalls; another term passes; its proposal must not be stamped."""
    c = Cluster(switches=switches)
    c.elect("A")
    decided_in = c.engine("A").status().term
    c.isolate("A")
    c.elect("B", "BC")
    c.put("B", "heartbeat of m")
    c.pump("BC", rounds=3, seconds=HEARTBEAT)
    c.connect_all()
    c.pump(rounds=6, seconds=HEARTBEAT)
    c.elect("A")
    stale = c.put("A", "expire m", decided_in)
    c.pump(rounds=4, seconds=HEARTBEAT)
    return first_harm(
        live_member_expired=any("expire m" in c.consumer(n).values for n in c.ids),
        not_told=[r.proposal for r in c.consumer("A").refused] != [stale],
    )


@guards(Switch.S1_SKIP, harm="applied")
def test_s1_every_replica_skips_what_a_broken_leader_let_through(switches: Switches) -> str:
    """The second net: the entry is in the log, and every replica skips it alike."""
    c = Cluster(switches=switches - {Switch.S1_DROP})
    c.elect("A")
    term = c.engine("A").status().term
    stale = c.put("A", "expire m", term - 1)
    c.put("A", "fine")
    c.pump(rounds=4, seconds=HEARTBEAT)
    return first_harm(
        applied=any("expire m" in c.consumer(n).values for n in c.ids),
        replicas_differ=[c.consumer(n).values for n in c.ids] != [["fine"]] * 3,
        acknowledged=stale in c.consumer("A").acknowledged,
    )


def test_r9_a_follower_refuses_and_never_forwards() -> None:
    """E-9: the stock engine forwards once and forgets; here the caller is told at once."""
    c = Cluster()
    c.elect("A")
    proposal = c.put("B", "lost in flight")
    c.consumer("B").evolve()
    assert [(r.proposal, r.leader) for r in c.consumer("B").refused] == [(proposal, "A")]
    c.pump(rounds=4, seconds=HEARTBEAT)
    assert c.consumer("A").values == []


@guards(Switch.S5_UNKNOWN, harm="callers_hang")
def test_s5_proposals_that_are_cut_off_learn_their_fate(switches: Switches) -> str:
    """The new leader's log is shorter: nobody waits for ever, nobody is told the wrong thing."""
    c = Cluster(switches=switches)
    c.elect("A")
    c.isolate("A")
    mine = [c.put("A", f"p{i}") for i in range(5)]
    c.elect("B", "BC")
    c.connect_all()
    c.pump(rounds=2, seconds=HEARTBEAT, evolve=False)
    a = c.consumer("A")
    a.evolve(limit=1)
    harm = first_harm(
        callers_hang=not a.roles or list(a.roles[-1].unknown) != mine,
        decides=a.may_decide,
        forgotten=len(a.unsettled) != 5,
    )
    c.pump(rounds=6, seconds=HEARTBEAT)
    return harm or first_harm(
        fate=a.fates != [(p, Fate.NEVER) for p in mine],
        unsettled=len(a.unsettled),
        applied=a.values,
    )


def test_s5_a_proposal_that_survives_its_leader_is_told_as_applied() -> None:
    """The entry reached B before A was deposed: the outcome was unknown, then it is applied."""
    c = Cluster()
    c.elect("A")
    c.network.cut("A", "C")
    proposal = c.put("A", "p")
    c.network.deliver("A", "B")
    c.tick("B")
    c.isolate("A")
    c.elect("B", "BC")
    c.connect_all()
    c.pump(rounds=8, seconds=HEARTBEAT)
    a = c.consumer("A")
    assert a.roles[-1].unknown == (proposal,)
    assert a.fates == [(proposal, Fate.APPLIED)]
    assert [c.consumer(n).values for n in c.ids] == [["p"]] * 3


@guards(Switch.S5_UNKNOWN, harm="caller_hangs")
def test_s5_a_snapshot_that_jumps_over_a_proposal_settles_it(switches: Switches) -> str:
    """The stock engine never answers a proposal whose index a snapshot jumps over."""
    c = Cluster(switches=switches)
    c.elect("A")
    c.isolate("A")
    proposal = c.put("A", "p")
    c.elect("B", "BC")
    for i in range(20):
        c.put("B", f"n{i}")
    c.pump("BC", rounds=3, seconds=HEARTBEAT)
    c.consumer("B").snapshot()
    c.pump("BC", rounds=2, seconds=HEARTBEAT)
    c.network.connect("A", "B")
    c.pump("AB", rounds=10, seconds=HEARTBEAT)
    a = c.consumer("A")
    assert a.values == [f"n{i}" for i in range(20)]
    return first_harm(
        caller_hangs=not a.roles[-1].unknown,
        fate=a.fates != [(proposal, Fate.SEE_STATE)],
        unsettled=len(a.unsettled),
    )


def test_s7_what_could_never_fit_is_refused_before_it_is_queued() -> None:
    """S7: it would loop for ever otherwise."""
    settings = Settings(heartbeat=0.1, election_max=1.0, chunk_bytes=64, entry_bytes_max=256)
    c = Cluster("A", settings=settings)
    c.elect("A")
    with pytest.raises(EntryTooLarge):
        c.put("A", "x" * 257)
    c.put("A", "x" * 200)
    c.pump(rounds=2)
    assert c.consumer("A").values == ["x" * 200]


def test_a_full_queue_is_overloaded_and_loses_nothing() -> None:
    """A refusal by Overloaded is definite: what was accepted is applied, the rest is not."""
    settings = Settings(heartbeat=0.1, election_max=1.0, proposals_max=4)
    c = Cluster("A", settings=settings)
    c.elect("A")
    engine, term = c.engine("A"), c.engine("A").status().term
    for i in range(4):
        engine.propose(f"v{i}".encode(), term)
    with pytest.raises(Overloaded):
        engine.propose(b"too many", term)
    c.pump(rounds=4)
    assert c.consumer("A").values == ["v0", "v1", "v2", "v3"]


def test_rules_are_all_in_force_by_default() -> None:
    """Only the harness leaves a rule out."""
    assert Cluster("A").engine("A").overlay.ctx.switches == ALL == frozenset(Switch)


def test_every_rule_that_can_be_left_out_has_a_scenario_with_teeth() -> None:
    """A switch without a test that needs it would be a hole in the net."""
    texts = [path.read_text() for path in Path(__file__).parent.glob("test_*.py")]
    named = re.findall(
        r"Switch\.([A-Z0-9_]+)", " ".join(re.findall(r"@guards\([^)]*\)", "".join(texts)))
    )
    assert set(named) == {switch.name for switch in Switch}
