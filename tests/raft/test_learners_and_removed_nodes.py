"""S25 c to e: learners count for nothing, a leader hands over, removed nodes are heard by nobody.

Each scenario is what a rule prevents; the rules are in docs/adr/0034. A guarded one runs with the
rule and without it, and must name the harm in the second case.
"""

from __future__ import annotations

import pytest

from harness.cluster import HEARTBEAT, SETTINGS, Cluster
from harness.node_changes import caught_up, learner, led_by, nodes, refusal, settle, voters
from harness.teeth import Switches, first_harm, guards
from holdfast.raft.api import EngineStopped, NodeRemoved
from holdfast.raft.core.context import Switch
from holdfast.raft.membership import AddLearner, ClusterNode, Promote, Remove

# --- S25 c: learners ---


def test_a_learner_gets_the_log_and_counts_for_nothing() -> None:
    """No commit, no lease, no leadership by it."""
    c = led_by("A")
    learner(c, "A", "D")
    for peer in "BC":
        c.isolate(peer)
    c.network.connect("A", "D")

    proposal = c.put("A", "by A and D")
    settle(c, "AD", rounds=4)

    assert c.engine("D").status().last_index == c.engine("A").status().last_index
    assert proposal not in c.consumer("A").acknowledged
    assert not c.lease("A")
    c.clock.advance(2 * SETTINGS.election_max)
    c.pump("AD", rounds=2, calm=False)
    assert c.engine("A").status().role == "follower", "check-quorum counts voters"
    assert not c.campaign("A", "AD")


def test_a_learner_never_stands() -> None:
    c = led_by("A")
    learner(c, "A", "D")
    c.crash("A")
    c.clock.advance(3 * SETTINGS.election_max)

    assert not c.campaign("D", "BCD")
    assert not c.campaign("D", "BCD")
    assert c.engine("B").status().term == 1
    assert c.campaign("B", "BC")


def test_a_learner_that_is_asked_votes_as_it_may_be_a_voter() -> None:
    """Raft thesis 4.1: of four, C has the entry that makes D a voter, A and B are away or lag."""
    c = led_by("A")
    learner(c, "A", "D")
    c.network.deaf.add(("A", "D"))
    c.change("A", Promote("D"))
    settle(c, "ABC", rounds=4)
    c.isolate("D")
    assert (voters(c, "C"), voters(c, "D")) == ("ABCD", "ABC")
    c.crash("A")
    c.network.connect("C", "D")
    c.network.connect("B", "D")
    c.clock.advance(3 * SETTINGS.election_max)

    assert c.campaign("C", "BCD")


@guards(Switch.S25_CAUGHT_UP, harm="the_majority_is_lost")
def test_s25c_a_wrong_address_does_not_cost_the_majority(switches: Switches) -> str:
    """Etcd 6420: D is never there. As a voter it would be the second of four that is away."""
    c = led_by("A", switches=switches)
    c.add("A", "D")
    settle(c)
    c.change("A", Promote("D"))
    settle(c)
    c.isolate("C")
    proposal = c.put("A", "still")
    settle(c, "AB", rounds=4)
    return first_harm(the_majority_is_lost=proposal not in c.consumer("A").acknowledged)


def test_a_node_that_was_never_there_is_told_of_its_address() -> None:
    c = led_by("A")
    c.add("A", "D")
    settle(c)

    c.change("A", Promote("D"))

    assert "is not connected to the leader" in refusal(c, "A")
    assert f"nobody of that name answers at {nodes(c, 'A').learners[0].peer_address}" in refusal(
        c, "A"
    )
    assert "its peer address right" in refusal(c, "A")
    assert c.consumer("A").refused[-1].by_rule


def test_s25c_a_learner_that_was_reached_a_moment_ago_is_not_promoted() -> None:
    """Its last answers are fresh; they came on a connection that has ended, perhaps for good."""
    c = led_by("A")
    learner(c, "A", "D")
    c.network.cut("A", "D")

    c.change("A", Promote("D"))

    assert "is not connected to the leader" in refusal(c, "A")
    assert voters(c, "A") == "ABC"


def test_s25c_a_learner_whose_address_was_wrong_becomes_a_voter_once_it_is_corrected() -> None:
    """It keeps its name and its disk; on the log is where it is reached now."""
    c = led_by("A")
    learner(c, "A", "D")

    c.change("A", AddLearner(ClusterNode("D", "elsewhere:1", "elsewhere:2")))
    settle(c)
    assert nodes(c, "B").learners == (ClusterNode("D", "elsewhere:1", "elsewhere:2"),)
    c.change("A", Promote("D"))
    settle(c)

    assert voters(c, "A") == voters(c, "B") == voters(c, "D") == "ABCD"


def test_a_learner_that_is_far_behind_is_not_promoted() -> None:
    """Raft thesis 4.2.1: commits of four would wait until it has the log."""
    c = led_by("A")
    learner(c, "A", "D")
    c.isolate("D")
    for value in range(40):
        c.put("A", f"{value}" * 50)
    settle(c, "ABC")
    c.network.connect("A", "D")
    progress = c.engine("A").overlay.replication.progress["D"]
    while progress.heard_at < c.nodes["A"].clock() - SETTINGS.election_min:
        c.pump(rounds=1, seconds=0.01)

    c.change("A", Promote("D"))

    assert "entries behind, and took longer than an election" in refusal(c, "A")
    assert voters(c, "A") == "ABC"
    assert not caught_up(c, "A", "D")


def test_people_are_told_when_a_learner_may_become_a_voter() -> None:
    """The status says what a promotion would be judged by; of voters there is nothing to say."""
    c = led_by("A")
    c.add("A", "D")
    settle(c)
    assert not caught_up(c, "A", "D")

    c.join("D")
    c.connect_all()
    settle(c, rounds=20)

    assert caught_up(c, "A", "D")
    assert not caught_up(c, "A", "B")
    assert not caught_up(c, "B", "D"), "a follower does not know"


def test_a_disk_that_rebuilds_is_not_promoted() -> None:
    """S19: it may lack what it has acknowledged on an earlier disk."""
    c = led_by("A")
    c.add("A", "D")
    settle(c)
    c.join("D")
    c.connect_all()
    settle(c, rounds=1)
    c.isolate("B")
    c.isolate("C")
    c.network.connect("A", "D")
    c.pump("AD", rounds=4, seconds=HEARTBEAT)
    assert c.engine("D").status().stage == "rebuilding"

    c.change("A", Promote("D"))

    assert "the disk of node 'D'" in refusal(c, "A")
    assert voters(c, "A") == "ABC"


@guards(Switch.S25_CONNECTED, harm="the_majority_is_lost")
def test_a_node_is_not_removed_if_the_rest_is_away(switches: Switches) -> str:
    """C is down; without B the other two of A, C could commit nothing."""
    c = led_by("A", switches=switches)
    c.crash("C")
    settle(c, "AB")
    c.change("A", Remove("B"))
    settle(c, "AB")
    proposal = c.put("A", "still")
    settle(c, "AB", rounds=4)
    return first_harm(the_majority_is_lost=proposal not in c.consumer("A").acknowledged)


# --- S25 d: a leader that goes ---


@guards(Switch.S25_HAND_OVER, harm="committed_by_one_of_two")
def test_s25d_a_leader_hands_over_before_it_is_removed(switches: Switches) -> str:
    """It would count itself among the two that are left, of whom C is away."""
    c = led_by("A", switches=switches)
    c.isolate("C")
    removal = c.change("A", Remove("A"))
    settle(c, "AB", rounds=4)
    return first_harm(committed_by_one_of_two=removal in c.consumer("A").acknowledged)


def test_the_next_leader_removes_the_one_that_has_handed_over() -> None:
    c = led_by("A")

    c.change("A", Remove("A"))
    assert "hands the leadership over to" in refusal(c, "A")
    (refused,) = c.consumer("A").refused
    settle(c, rounds=6)

    (heir,) = (n for n in "BC" if c.engine(n).status().role == "leader")
    assert (refused.leader, refused.by_rule) == (heir, False), "the caller is sent to the heir"
    settle(c)
    c.change(heir, Remove("A"))
    settle(c, "BC")
    assert voters(c, heir) == "BC"
    c.put(heir, "without A")
    settle(c, "BC")
    assert c.consumer("B").values == c.consumer("C").values == ["without A"]


# --- S25 e: removed nodes ---


@guards(Switch.S25_REMOVED, harm="never_told")
def test_s25e_a_removed_node_is_told_when_it_asks(switches: Switches) -> str:
    """It is sent no entry any more, and would ask for votes for ever."""
    c = led_by("A", switches=switches)
    c.change("A", Remove("C"))
    settle(c, "AB")
    c.clock.advance(2 * SETTINGS.election_max)
    c.engine("C").overlay.state.election_deadline = 0.0
    told = False
    try:
        _ask(c, "C")
    except EngineStopped as stopped:
        told = isinstance(stopped.__cause__, NodeRemoved)
    return first_harm(never_told=not told)


def _ask(c: Cluster, node: str) -> None:
    """Let a node do what is due, and hear what A and B say to it, a few times."""
    for _ in range(4):
        c.tick(node)
        c.exchange(node, "A")
        c.exchange(node, "B")


def test_a_removed_node_ends_in_a_way_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    """Its process has an exit code for it, so that no supervisor starts it again: no alarm."""
    c = led_by("A")
    c.change("A", Remove("C"))
    settle(c, "AB")
    c.clock.advance(2 * SETTINGS.election_max)
    c.engine("C").overlay.state.election_deadline = 0.0
    assert not c.engine("C").was_removed

    with pytest.raises(EngineStopped, match="this node was removed from the cluster"):
        _ask(c, "C")

    assert c.engine("C").was_removed
    assert "alarm" not in caplog.text
    assert "NodeRemoved" not in caplog.text, "it is no defect, but what was asked for"


def test_a_removed_node_disturbs_nobody() -> None:
    """It stands with a higher term: no vote, no term of it is taken over."""
    c = led_by("A")
    c.change("A", Remove("C"))
    settle(c, "AB")
    state = c.engine("C").overlay.state
    state.set_term(7, "C")
    term = c.engine("A").status().term

    for _ in range(3):
        c.clock.advance(2 * SETTINGS.election_max)
        c.calm()
        state.election_deadline = 0.0
        c.engine("C").overlay.elections._ask_pre_votes()
        c.exchange("C", "B")
        c.pump("AB", rounds=1)

    assert c.engine("A").status().term == c.engine("B").status().term == term


def test_an_undone_removal_is_told_to_nobody() -> None:
    """Only what is committed is for good."""
    c = led_by("A")
    c.isolate("A")
    c.change("A", Remove("C"))
    assert voters(c, "A") == "AB"

    c.network.connect("A", "C")
    c.engine("C").overlay.elections._ask_pre_votes()
    c.exchange("C", "A")
    c.pump("C", rounds=1)

    assert c.engine("C").status().stage == "member"


def test_the_name_of_a_removed_node_is_never_given_again() -> None:
    c = led_by("A")
    c.change("A", Remove("C"))
    settle(c, "AB")

    c.add("A", "C")

    assert "its name is never used again" in refusal(c, "A")


def test_a_node_whose_removal_is_not_committed_may_lead_and_undo_it() -> None:
    """Of five, A and B have the removal of E when A dies; C, D and E elect E, and B follows it."""
    c = led_by("A", "ABCDE")
    for peer in "CD":
        c.network.cut("A", peer)
    c.change("A", Remove("E"))
    c.pump("AB", rounds=3)
    assert voters(c, "B") == "ABCD"
    c.crash("A")
    c.clock.advance(3 * SETTINGS.election_max)
    assert c.campaign("E", "CDE")
    settle(c, "BCDE")

    assert voters(c, "B") == "ABCDE"
    c.put("E", "undone")
    settle(c, "BCDE")
    assert c.consumer("B").values == ["undone"]


def test_a_removed_node_counts_no_more() -> None:
    """Of four, D is removed: two of the others commit, D with one of them does not."""
    c = led_by("A", "ABCD")
    c.change("A", Remove("D"))
    settle(c, "ABC")
    c.isolate("C")
    committed = c.put("A", "by A and B")
    settle(c, "AB", rounds=4)
    assert committed in c.consumer("A").acknowledged

    c.isolate("B")
    c.network.connect("A", "D")
    proposal = c.put("A", "by A and D")
    c.pump("AD", rounds=6, seconds=HEARTBEAT)

    assert proposal not in c.consumer("A").acknowledged
    assert c.engine("D").status().last_index < c.engine("A").status().last_index - 1


def test_an_acknowledgement_of_a_learner_commits_nothing() -> None:
    """Of two voters both are needed, however many learners have the entry."""
    c = led_by("A", "AB")
    learner(c, "A", "D")
    c.isolate("B")
    c.network.connect("A", "D")

    proposal = c.put("A", "by A and D")
    settle(c, "AD", rounds=4)

    assert c.engine("D").status().last_index == c.engine("A").status().last_index
    assert proposal not in c.consumer("A").acknowledged
