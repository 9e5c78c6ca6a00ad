"""S21: a disk that lost its last transaction unseen is found out before it votes.

A flip in the newest of LMDB's two meta pages rolls the journal back by one transaction, and what
is left is sound in itself: `Forgetful` does just that to a model journal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.cluster import HEARTBEAT, SETTINGS, Cluster
from harness.teeth import Switches, first_harm, guards
from holdfast.raft.core.context import Switch
from holdfast.raft.core.log import QUIET_SECONDS
from holdfast.raft.messages import Recall, Recalled, VoteGranted, Witness

if TYPE_CHECKING:
    from holdfast.storage.journal.journal import JournalBatch

MAX = SETTINGS.election_max


class Forgetful:
    """A node's disk whose newest transaction can be undone."""

    def __init__(self, c: Cluster, node: str) -> None:
        self._c, self._node = c, node
        self._journal = c.disks[node].journal
        self._before_last = self._journal.load()
        self._journal.before_commit = self._keep

    def _keep(self, _batch: JournalBatch) -> None:
        self._before_last = self._journal.load()

    def restart_rolled_back(self) -> None:
        self._c.crash(self._node)
        self._journal.repair()
        self._journal.restore(self._before_last)
        self._c.start(self._node)


def x_is_on_a_and_b_only(c: Cluster) -> Forgetful:
    """C is cut off; A committed X with B, whose last transaction is that of X."""
    c.elect("A")
    c.pump(rounds=3, seconds=HEARTBEAT)
    c.network.cut("A", "C")
    disk = Forgetful(c, "B")
    proposal = c.put("A", "X")
    c.pump("AB", rounds=3, seconds=HEARTBEAT)
    assert proposal in c.consumer("A").acknowledged
    return disk


def x_is_lost(c: Cluster) -> str:
    """C, which never saw X, asks B for its vote after all silences."""
    c.clock.advance(3)
    return first_harm(x_is_lost=c.campaign("C", "B"))


@guards(Switch.S21_COMPARE, harm="x_is_lost")
def test_s21_a_node_that_forgot_an_ack_elects_nobody(switches: Switches) -> str:
    """B acked X and forgot it; A, which heard the ack, is met for a moment and dies."""
    c = Cluster(switches=switches)
    disk = x_is_on_a_and_b_only(c)
    disk.restart_rolled_back()
    c.network.connect("B", "C")
    c.network.connect("A", "B")
    c.exchange("A", "B")
    c.crash("A")
    return x_is_lost(c)


@guards(Switch.S21_COMPARE, harm="x_is_lost")
def test_s21_a_leader_that_forgot_what_it_counted_itself_elects_nobody(switches: Switches) -> str:
    """X is on A, which led, and on B; A forgets it, and B is met for a moment and dies."""
    c = Cluster(switches=switches)
    c.elect("A")
    c.pump(rounds=3, seconds=HEARTBEAT)
    c.network.cut("A", "C")
    disk = Forgetful(c, "A")
    c.put("A", "X")
    c.pump("AB", rounds=3, seconds=HEARTBEAT)
    disk.restart_rolled_back()
    c.network.connect("A", "C")
    c.network.connect("A", "B")
    c.exchange("B", "A")
    c.crash("B")
    c.clock.advance(3)
    return first_harm(x_is_lost=c.campaign("C", "A"))


@guards(Switch.S21_COMPARE, harm="x_is_lost")
def test_s21_the_leaders_word_about_others_outlives_the_leader(switches: Switches) -> str:
    """A is dead when B comes back; C, too slow for X itself, was told what B had acked."""
    c = Cluster(switches=switches)
    c.elect("A")
    c.pump(rounds=3, seconds=HEARTBEAT)
    disk = Forgetful(c, "B")
    c.put("A", "X")
    c.network.lose("A", "C")
    c.exchange("A", "B")
    c.clock.advance(HEARTBEAT)
    c.tick("A")
    for message in c.network.waiting("A", "C"):
        if isinstance(message, Witness):
            c.engine("C").on_message("A", message)
    c.crash("A")
    disk.restart_rolled_back()
    c.network.connect("B", "C")
    return x_is_lost(c)


@guards(Switch.S21_COMPARE, harm="two_leaders_of_one_term")
def test_s21_a_node_that_forgot_its_vote_votes_no_second_time(switches: Switches) -> str:
    """A leads by B's vote; B forgets it, meets A for a moment, and C asks in the same term."""
    c = Cluster(switches=switches)
    c.isolate("C")
    c.clock.advance(3)
    disk = Forgetful(c, "B")
    assert c.campaign("A", "B")
    c.network.cut("A", "B")
    disk.restart_rolled_back()
    c.network.connect("A", "B")
    c.exchange("A", "B")
    c.network.cut("A", "B")
    c.network.connect("B", "C")
    c.clock.advance(3)
    c.campaign("C", "B")
    a, other = c.engine("A").status(), c.engine("C").status()
    both = (a.role, other.role) == ("leader", "leader")
    return first_harm(two_leaders_of_one_term=both and a.term == other.term)


@guards(Switch.S21_TWICE, harm="x_is_lost")
def test_s21_what_is_older_than_a_quiet_second_cannot_be_rolled_back(switches: Switches) -> str:
    """Nobody is left who could tell B: its newest transaction must hold nothing alone."""
    c = Cluster(switches=switches)
    disk = x_is_on_a_and_b_only(c)
    c.pump("AB", rounds=int(2 * QUIET_SECONDS / HEARTBEAT), seconds=HEARTBEAT)
    c.crash("A")
    disk.restart_rolled_back()
    c.network.connect("B", "C")
    return x_is_lost(c)


def test_s21_a_forgetful_disk_becomes_a_new_one_and_catches_up() -> None:
    """S19: another incarnation, no vote until a barrier; then it is a member that has X."""
    c = Cluster()
    disk = x_is_on_a_and_b_only(c)
    incarnation = c.engine("B").overlay.identity.incarnation
    disk.restart_rolled_back()
    assert c.engine("B").overlay.identity.incarnation == incarnation
    c.connect_all()
    c.pump(rounds=2)
    assert c.engine("B").status().stage == "rebuilding"
    c.pump(rounds=20, seconds=HEARTBEAT)
    assert c.engine("B").status().stage == "member"
    assert c.engine("B").overlay.identity.incarnation != incarnation
    assert c.consumer("B").values == ["X"]


def forgetful_b_heard_c_only() -> Cluster:
    """B acked X to A and forgot it; C's word, which knows nothing of X, was enough to stand."""
    c = Cluster()
    disk = x_is_on_a_and_b_only(c)
    disk.restart_rolled_back()
    c.network.connect("B", "C")
    c.exchange("C", "B")
    c.clock.advance(3)
    c.calm()
    return c


def test_s21_a_candidate_that_learns_of_a_loss_is_no_candidate_any_more() -> None:
    """C's vote is under way when A's word arrives: without X nobody may lead (S19)."""
    c = forgetful_b_heard_c_only()
    state = c.engine("B").overlay.state
    state.election_deadline = 0
    c.tick("B")
    c.exchange("B", "C")
    c.tick("B")
    c.network.deliver("B", "C")
    c.engine("C").overlay.completion.run()
    assert VoteGranted(state.term) in c.network.waiting("C", "B")
    c.network.connect("A", "B")
    c.exchange("A", "B")
    c.network.deliver("C", "B")
    assert (c.engine("B").status().role, c.engine("B").status().stage) == (
        "follower",
        "rebuilding",
    )


def test_s19_who_stood_in_the_term_that_ends_its_rebuild_keeps_its_vote() -> None:
    """B stood against A in vain, and rebuilds under A: its vote of that term is given already."""
    c = forgetful_b_heard_c_only()
    state = c.engine("B").overlay.state
    state.election_deadline = 0
    c.tick("B")
    c.exchange("B", "C")
    c.tick("B")
    c.network.lose("B", "C")
    c.tick("A")  # it led before, and heard nobody since
    c.network.connect("A", "C")
    assert c.campaign("A", "C")
    assert state.term == c.engine("A").status().term
    c.connect_all()
    c.pump(rounds=20, seconds=HEARTBEAT)
    assert c.engine("B").status().stage == "member"
    assert c.disks["B"].journal.load().hard_state.voted_for == "B"
    assert c.consumer("B").values == ["X"]


def test_s21_a_leader_that_learns_of_a_loss_leads_no_more() -> None:
    """Before its first commit, that saves X; it is never too late for the alarm."""
    c = forgetful_b_heard_c_only()
    assert c.campaign("B", "C")
    c.network.cut("B", "C")
    c.network.connect("A", "B")
    c.exchange("A", "B")
    assert (c.engine("B").status().role, c.lease("B")) == ("follower", 0)
    c.connect_all()
    c.clock.advance(2 * MAX)
    c.campaign("A", "C")  # in vain: it learns the term (S10 e)
    c.elect("A")
    c.pump(rounds=20, seconds=HEARTBEAT)
    assert {tuple(c.consumer(node).values) for node in "ABC"} == {("X",)}
    assert c.engine("B").status().stage == "member"


def test_s21_a_sound_disk_stays_what_it_is_whatever_it_did_since_its_start() -> None:
    """Acks and votes of the present process are no riddle, however late a peer tells of them."""
    c = Cluster()
    c.elect("A")
    c.put("A", "x")
    c.pump(rounds=3, seconds=HEARTBEAT)
    before = {node: c.engine(node).overlay.identity.incarnation for node in "ABC"}
    c.restart("B")
    c.network.connect("A", "B")
    c.network.lose("A", "B")  # A's first word is lost
    c.put("A", "y")
    c.pump("AB", rounds=12, seconds=HEARTBEAT)
    c.isolate("A")
    c.network.connect("B", "C")
    c.clock.advance(2)
    assert c.campaign("B", "C")
    c.connect_all()
    c.pump(rounds=12, seconds=HEARTBEAT)
    assert {node: c.engine(node).overlay.identity.incarnation for node in "ABC"} == before
    assert c.consumer("A").values == ["x", "y"]


def test_s21_a_peer_that_is_away_for_good_holds_up_no_election() -> None:
    """A majority's word is enough after an election maximum, not before."""
    c = Cluster()
    c.elect("A")
    c.pump(rounds=3, seconds=HEARTBEAT)
    c.crash("A")
    c.restart("B")
    c.network.connect("B", "C")
    c.exchange("B", "C")
    c.clock.advance(MAX - 0.01)
    assert not c.campaign("C", "B")
    c.clock.advance(MAX)
    assert c.campaign("C", "B")


def test_s21_without_anybodys_word_a_node_neither_votes_nor_stands_and_asks_again() -> None:
    """Its first word on the connection was lost; the next heartbeat asks for it."""
    c = Cluster()
    c.restart("B")
    c.network.connect("B", "C")
    c.engine("C").overlay.completion.run()
    c.network.lose("C", "B")
    c.clock.advance(3)
    assert not c.campaign("C", "B")
    c.tick("B")
    assert [m for m in c.network.waiting("B", "C") if isinstance(m, Recall)]
    c.exchange("B", "C")
    assert c.campaign("C", "B")


def test_s21_a_peer_tells_what_it_remembers_before_anything_else() -> None:
    """Behind whose disk it has, so that no request for a vote can come before it."""
    c = Cluster()
    c.elect("A")
    c.put("A", "x")
    c.pump(rounds=3, seconds=HEARTBEAT)
    status = c.engine("A").status()
    c.network.cut("A", "B")
    c.network.connect("A", "B")
    c.tick("A")
    incarnation = c.engine("B").overlay.identity.incarnation
    told = Recalled(incarnation, status.term, status.last_index, status.term)
    assert c.network.waiting("A", "B")[1] == told
