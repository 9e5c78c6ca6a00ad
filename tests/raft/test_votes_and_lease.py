"""S10 a to e: sticky votes, the silence of a start, the lease, transfer, the told term."""

from __future__ import annotations

from dataclasses import replace

from harness.cluster import HEARTBEAT, SETTINGS, Cluster
from harness.teeth import Switches, first_harm, guards
from holdfast.raft.api import BarrierPassed, ProbeFailed, ProbePassed
from holdfast.raft.core.context import Switch
from holdfast.raft.messages import Ack, RequestVote, TermNotice, VoteGranted

MIN, MAX = SETTINGS.election_min, SETTINGS.election_max


def two_owners(c: Cluster, old: str, new: str) -> str:
    """Return the harm that a lease beside another leader is."""
    return first_harm(two_owners=c.lease(old) and c.engine(new).status().role == "leader")


def pre_vote_of_c_then_the_link_heals(c: Cluster) -> None:
    """C holds B's pre-vote; the link A-B heals; B hears A, whose lease runs on."""
    c.elect("A")
    c.isolate("A")
    c.clock.advance(MIN + 0.2)
    c.calm()
    c.engine("C").overlay.state.election_deadline = 0
    c.tick("C")
    c.exchange("C", "B")
    assert c.engine("C").overlay.state.election_deadline == 0, "no pre-vote was given"
    c.network.connect("A", "B")
    c.exchange("A", "B")  # whose disks they have (S25 f)
    c.tick("A")
    c.exchange("A", "B")
    assert c.lease("A")


@guards(Switch.S10_STICKY, harm="two_owners")
def test_s10a_a_real_vote_is_refused_while_a_leader_is_heard(switches: Switches) -> str:
    """C's RequestVote reaches B a moment after B acked A: two leaders would answer reads."""
    c = Cluster(switches=switches)
    pre_vote_of_c_then_the_link_heals(c)
    c.tick("C")
    c.exchange("C", "B")
    return two_owners(c, "A", "C")


@guards(Switch.S10_STICKY, harm="two_owners")
def test_s10a_the_refusal_does_not_depend_on_the_term(switches: Switches) -> str:
    """The same, but B's term was raised before by something else."""
    c = Cluster(switches=switches)
    pre_vote_of_c_then_the_link_heals(c)
    state = c.engine("B").overlay.state
    state.set_term(state.term + 1, None)
    c.tick("C")
    c.exchange("C", "B")
    return two_owners(c, "A", "C")


@guards(Switch.S10_STICKY, harm="deposed")
def test_s10a_a_leader_that_a_quorum_hears_is_not_deposed_by_a_request(switches: Switches) -> str:
    """The refusal covers the leader itself, and leaves its term as it is."""
    c = Cluster(switches=switches)
    c.elect("A")
    status = c.engine("A").status()
    c.engine("A").on_message("C", RequestVote(status.term + 5, 99, status.term + 1, 0))
    c.tick("A")
    after = c.engine("A").status()
    return first_harm(deposed=(after.role, after.term) != ("leader", status.term))


def restarted_voter_asked_by(c: Cluster, who: str, asks: str) -> str:
    c.elect("A")
    c.network.cut("A", "C")
    c.clock.advance(MIN + 0.2)
    c.calm()
    c.tick("A")
    c.exchange("A", "B")
    assert c.lease("A")
    c.restart("B")
    c.network.connect("B", "C")
    c.network.connect("A", "B")
    c.exchange("A", "B")  # what is remembered of B (S21), and no heartbeat
    c.exchange("C", "B")
    c.network.cut("A", "B")
    c.campaign(who, asks)
    harm = two_owners(c, "A", who)
    c.clock.advance(MAX + 0.01)
    return harm or first_harm(no_leader_for_ever=not c.campaign(who, asks))


@guards(Switch.S10_SILENCE, harm="two_owners")
def test_s10b_a_restarted_voter_is_silent(switches: Switches) -> str:
    """It has forgotten that it heard the leader: it may not vote, and it is only a pause."""
    return restarted_voter_asked_by(Cluster(switches=switches), "C", "B")


@guards(Switch.S10_SILENCE, harm="two_owners")
def test_s10b_a_restarted_voter_does_not_stand(switches: Switches) -> str:
    """Its own candidacy is a vote as well."""
    return restarted_voter_asked_by(Cluster(switches=switches), "B", "C")


@guards(Switch.S10_PROMISE, harm="two_owners")
def test_s10b_the_promise_of_an_earlier_start_binds(switches: Switches) -> str:
    """The voter restarts with ten times shorter elections; A's lease still rests on the old."""
    slow = replace(SETTINGS, election_min=4.0, election_max=10.0)
    c = Cluster(switches=switches, settings=slow)
    c.elect("A")
    c.network.cut("A", "C")
    c.clock.advance(5)
    c.calm()
    c.tick("A")
    c.exchange("A", "B")
    assert c.lease("A")
    c.restart("B", settings=SETTINGS)
    c.network.connect("B", "C")
    c.clock.advance(MAX + 0.1)
    c.tick("B")
    c.campaign("C", "B")
    return two_owners(c, "A", "C")


def test_s10b_the_promise_is_lowered_only_after_its_silence() -> None:
    """A crash during the silence must find the longer promise again."""
    c = Cluster(settings=replace(SETTINGS, election_min=4.0, election_max=10.0))
    c.restart("A", settings=SETTINGS)
    c.tick("A")
    stored = c.disks["A"].journal.load().identity
    assert stored is not None
    assert stored.promise_ms == 4000
    c.clock.advance(4.01)
    c.tick("A")
    stored = c.disks["A"].journal.load().identity
    assert stored is not None
    assert stored.promise_ms == 400


@guards(Switch.S10_SENT, harm="two_owners")
def test_s10c_the_lease_runs_from_the_send_time(switches: Switches) -> str:
    """An echo that travels for long must not extend the lease beyond the voter's patience."""
    c = Cluster(switches=switches)
    c.elect("A")
    c.network.cut("A", "C")
    c.clock.advance(MIN + 0.2)
    c.calm()
    c.tick("A")
    c.network.deliver("A", "B")
    c.engine("B").overlay.completion.run()
    c.clock.advance(MIN - 0.05)
    c.network.deliver("B", "A")
    c.clock.advance(0.06)
    assert c.campaign("C", "B")
    return two_owners(c, "A", "C")


@guards(Switch.S10_REVOKE, harm="read_after_the_term_is_stored")
def test_s10c_the_lease_is_revoked_before_a_new_term_is_stored(switches: Switches) -> str:
    """What any thread sees at the moment when the term becomes durable."""
    c = Cluster(switches=switches)
    c.elect("A")
    assert c.lease("A")
    seen: list[int] = []
    c.disks["A"].journal.before_commit = lambda _batch: seen.append(c.lease("A"))
    term = c.engine("A").status().term
    c.engine("A").overlay.state.set_term(term + 1, None)
    c.engine("A").overlay.completion.run()
    return first_harm(read_after_the_term_is_stored=seen != [0])


def test_s10c_the_lease_ends_by_itself_at_its_share_of_the_promise() -> None:
    """0.8 of the promise from the send time, and not a moment longer, without any message."""
    c = Cluster()
    c.elect("A")
    c.pump(rounds=3, seconds=HEARTBEAT)
    c.isolate("A")
    sent = c.engine("A").overlay.lease.heard_at()
    c.clock.advance(sent + 0.8 * MIN - 0.001 - c.nodes["A"].clock())
    assert c.lease("A")
    c.clock.advance(0.002)
    assert not c.lease("A")


def test_s10c_a_lease_needs_the_own_no_op_evolved() -> None:
    """S10 d, S4: nothing is served before it."""
    c = Cluster()
    c.pump(rounds=2)
    c.clock.advance(2)
    assert c.campaign("A", "BC")
    for _ in range(5):
        c.pump(seconds=HEARTBEAT, evolve=False)
    assert c.engine("A").status().role == "leader"
    assert not c.lease("A")
    c.pump(rounds=2)
    assert c.lease("A")


@guards(Switch.S10_TRANSFER, harm="two_owners")
def test_s10d_a_transfer_gives_up_the_lease_of_its_term_for_good(switches: Switches) -> str:
    """C was told to take over; its request to B is slow; A goes on leading, without a lease."""
    c = Cluster(switches=switches)
    c.elect("A")
    c.engine("A").transfer("C")
    c.calm()
    c.tick("A")
    refused = c.put("A", "while handing over")
    c.calm()
    c.network.deliver("A", "C")
    assert c.engine("C").overlay.state.transfer_pending
    c.tick("C")
    c.network.cut("A", "C")
    for _ in range(12):
        c.clock.advance(HEARTBEAT)
        c.calm()
        c.tick("A")
        c.exchange("A", "B")
        c.consumer("A").evolve()
    c.exchange("C", "B")
    assert c.engine("C").status().role == "leader"
    return two_owners(c, "A", "C") or first_harm(
        proposed=[r.proposal for r in c.consumer("A").refused] != [refused]
    )


@guards(Switch.S10_TRANSFER_TERM, harm="two_owners")
def test_s10d_a_transfer_is_valid_for_the_next_term_only(switches: Switches) -> str:
    """C stalls on TimeoutNow of term T, votes for B in T+1: it must not disturb B's term."""
    c = Cluster(switches=switches)
    c.elect("A")
    c.engine("A").transfer("C")
    c.calm()
    c.tick("A")
    c.exchange("A", "B")
    c.network.deliver("A", "C")
    c.network.cut("A", "C")
    c.clock.advance(MIN + 0.2)
    assert c.campaign("B", "AC")
    for _ in range(4):
        c.clock.advance(HEARTBEAT)
        c.calm()
        for node in "AB":
            c.tick(node)
        c.exchange("B", "A")
        c.exchange("B", "C")
        c.consumer("B").evolve()
    assert c.lease("B")
    assert c.engine("C").overlay.state.transfer_pending
    c.network.cut("B", "C")
    c.network.connect("A", "C")
    c.calm()
    c.engine("C").overlay.state.election_deadline = 0
    c.tick("C")
    c.exchange("C", "A")
    return two_owners(c, "B", "C")


def test_s10d_a_transfer_moves_the_leadership_and_loses_nothing() -> None:
    """What was proposed before is there after; the new leader serves."""
    c = Cluster()
    c.elect("A")
    c.put("A", "x")
    c.engine("A").transfer("B")
    c.pump(rounds=8, seconds=HEARTBEAT)
    assert [c.engine(n).status().role for n in "ABC"] == ["follower", "leader", "follower"]
    assert c.consumer("B").values == ["x"]
    assert c.lease("B")
    c.put("B", "y")
    c.pump(rounds=3, seconds=HEARTBEAT)
    assert c.consumer("A").values == ["x", "y"]


def test_s10d_proposals_open_again_after_a_transfer_that_came_to_nothing() -> None:
    """The target dies at the moment of the hand-over: the cluster must not stand still."""
    c = Cluster()
    c.elect("A")
    c.crash("C")
    c.engine("A").transfer("C")
    c.pump("AB", rounds=12, seconds=HEARTBEAT)
    c.put("A", "x")
    c.pump("AB", rounds=3, seconds=HEARTBEAT)
    assert c.consumer("B").values == ["x"]


@guards(Switch.S10_TERM_NOTICE, harm="no_leader_for_ever")
def test_s10e_a_refused_pre_vote_tells_the_term(switches: Switches) -> str:
    """A has the higher term and the shorter log, C the longer log and the lower term; B is away."""
    c = Cluster(switches=switches)
    c.elect("C")
    c.isolate("B")
    c.network.cut("A", "C")
    c.put("C", "x")
    state = c.engine("A").overlay.state
    state.set_term(state.term + 1, "A")
    c.engine("A").overlay.completion.run()
    c.restart("C")
    c.network.connect("A", "C")
    for _ in range(20):
        c.clock.advance(1.1)
        if c.campaign("C", "A"):
            return ""
        c.clock.advance(1.1)
        c.campaign("A", "C")
    return "no_leader_for_ever"


@guards(Switch.VOTER_ONCE, harm="elected_by_one_voter")
def test_a_vote_that_arrives_twice_counts_once(switches: Switches) -> str:
    """E-11: the stock engine counts messages; five nodes, one voter, its vote arrives twice."""
    c = Cluster("ABCDE", switches=switches)
    c.clock.advance(2)
    c.calm()
    overlay = c.engine("A").overlay
    overlay.state.election_deadline = 0
    overlay.elections._pre_won = True
    c.tick("A")
    for _ in range(2):
        c.engine("A").on_message("B", VoteGranted(overlay.state.term))
    return first_harm(elected_by_one_voter=overlay.state.is_leader)


@guards(Switch.PRE_VOTE, harm="leader_deposed")
def test_a_follower_that_was_away_does_not_depose_the_leader(switches: Switches) -> str:
    """E-13: stopped for 3 s and resumed, the stock engine's follower raises the term at once.

    The sticky vote protects the leader as well, but leaves the follower in a term of its own.
    """
    c = Cluster(switches=switches)
    c.elect("A")
    term = c.engine("A").status().term
    for _ in range(3):
        c.clock.advance(1.0)
        c.calm()
        for node in "AB":
            c.tick(node)
        c.exchange("A", "B")
    c.engine("C").overlay.state.election_deadline = 0
    c.tick("C")
    c.pump(rounds=4, seconds=HEARTBEAT)
    return first_harm(leader_deposed=[c.engine(n).status().term for n in "ABC"] != [term] * 3)


def test_check_quorum_a_leader_that_nobody_answers_steps_down() -> None:
    """The stock default waits for 30 s; here an election maximum."""
    c = Cluster()
    c.elect("A")
    c.isolate("A")
    c.pump("A", rounds=12, seconds=HEARTBEAT)
    assert c.engine("A").status().role == "follower"
    assert c.consumer("A").roles[-1].role == "follower"


@guards(Switch.ACK_TERM, harm="counted")
def test_an_ack_of_another_term_does_not_count(switches: Switches) -> str:
    """E-12: an ack of an older leadership, delayed, would commit what nobody holds."""
    c = Cluster(switches=switches)
    c.elect("A")
    term = c.engine("A").status().term
    c.isolate("A")
    c.put("A", "x")
    last = c.engine("A").status().last_index
    disk = c.engine("B").overlay.identity
    stale = Ack(term - 1, last + 1, True, False, 0, 400, "member", disk.incarnation)  # noqa: FBT003 - fields
    c.engine("A").on_message("B", stale)
    c.tick("A")
    return first_harm(counted=c.engine("A").status().commit_index >= last)


def test_barrier_and_probe_pass_only_by_a_majority_that_heard_them() -> None:
    """S9 b: what was heard before the probe was begun does not help."""
    c = Cluster()
    c.elect("A")
    c.put("A", "x")
    c.pump(rounds=3, seconds=HEARTBEAT)
    c.network.deaf |= {("B", "A"), ("C", "A")}
    barrier, probe = c.engine("A").read_barrier(), c.engine("A").begin_probe()
    c.pump(rounds=4, seconds=HEARTBEAT)
    assert c.consumer("A").probes == []
    c.network.deaf.clear()
    c.pump(rounds=3)
    term, commit = c.engine("A").status().term, c.engine("A").status().commit_index
    passed = [BarrierPassed(barrier, commit), ProbePassed(probe, term)]
    assert c.consumer("A").probes == passed


def test_barrier_fails_on_a_follower_and_at_a_step_down() -> None:
    """Whoever asked must not wait for ever."""
    c = Cluster()
    c.elect("A")
    on_b = c.engine("B").read_barrier()
    c.pump(rounds=2)
    assert c.consumer("B").probes == [ProbeFailed(on_b, "A")]
    c.isolate("A")
    on_a = c.engine("A").read_barrier()
    c.pump("A", rounds=12, seconds=HEARTBEAT)
    assert c.consumer("A").probes == [ProbeFailed(on_a, None)]


def test_barrier_on_a_cluster_of_one() -> None:
    """Its own echo is a majority."""
    c = Cluster("A")
    c.elect("A")
    barrier = c.engine("A").read_barrier()
    c.pump(rounds=3)
    assert c.consumer("A").probes == [BarrierPassed(barrier, c.engine("A").status().commit_index)]


def test_a_term_notice_never_deposes_a_leader() -> None:
    """S10 e speaks of nodes that are not leader."""
    c = Cluster()
    c.elect("A")
    c.engine("A").on_message("B", TermNotice(99))
    assert c.engine("A").status().role == "leader"
