"""S25 a and b: a membership is in force on append, and changes come one at a time.

Each scenario is what a rule prevents; the rules are in docs/adr/0034. A guarded one runs with the
rule and without it, and must name the harm in the second case.
"""

from __future__ import annotations

import pytest

from harness.cluster import HEARTBEAT, SETTINGS
from harness.node_changes import learner, learners, led_by, nodes, refusal, settle, voter, voters
from harness.teeth import Switches, first_harm, guards
from holdfast.raft.core.context import Switch
from holdfast.raft.membership import Promote, Remove
from holdfast.storage.journal.journal import JournalBatch, NotedMembership

# --- the whole way ---


@pytest.mark.parametrize(("ids", "more"), [("A", "BC"), ("ABC", "DE")])
def test_a_cluster_grows_through_even_sizes_and_shrinks_again(ids: str, more: str) -> None:
    """One node at a time: 1, 2, 3 or 3, 4, 5 and back; what is written meanwhile stays."""
    c = led_by("A", ids)
    c.put("A", "first")
    for name in more:
        voter(c, "A", name)
        c.put("A", f"with {name}")
        settle(c)
    for node in ids + more:
        assert voters(c, node) == ids + more
    for name in more:
        c.change("A", Remove(name))
        settle(c)
        c.put("A", f"without {name}")
        settle(c)
    for node in ids:
        assert voters(c, node) == ids
        assert nodes(c, node).removed == tuple(sorted(more))
    expected = ["first", *(f"with {n}" for n in more), *(f"without {n}" for n in more)]
    assert c.consumer("A").values == expected
    assert not c.consumer("A").refused


def test_listeners_hear_of_each_membership_that_comes_into_force() -> None:
    """So the transport dials a new node as soon as the entry is appended (S25 a)."""
    c = led_by("A")
    heard: list[str] = []
    c.engine("B").on_membership(lambda each: heard.append("".join(each.names)))

    voter(c, "A", "D")
    c.change("A", Remove("D"))
    settle(c)

    assert heard == ["ABCD", "ABCD", "ABC"]
    assert c.engine("B").membership.names == ("A", "B", "C")


def test_the_proposer_learns_that_a_change_is_committed() -> None:
    """It is an item like any other, with an empty payload."""
    c = led_by("A")

    proposal = c.add("A", "D")
    settle(c)

    assert proposal in c.consumer("A").acknowledged
    assert c.consumer("A").values == []


def test_a_node_that_does_not_lead_refuses() -> None:
    """Another node may well carry it out, so it is no rule that refuses."""
    c = led_by("A")

    c.add("B", "D")

    assert "does not lead" in refusal(c, "B")
    assert [(each.leader, each.by_rule) for each in c.consumer("B").refused] == [("A", False)]
    assert learners(c, "A") == ""


# --- S25 a: in force on append, gone with its entry, kept by snapshots and restarts ---


def test_s25a_a_change_counts_from_its_append_and_is_undone_with_its_entry() -> None:
    """The leader counts by it before it is committed; whoever replaces the entry undoes it."""
    c = led_by("A")
    learner(c, "A", "D")
    for peer in "BC":
        c.network.cut("A", peer)
        c.network.cut("D", peer)
    c.change("A", Promote("D"))
    settle(c, "AD", rounds=2)
    assert voters(c, "A") == voters(c, "D") == "ABCD"
    assert voters(c, "B") == "ABC"

    c.clock.advance(2 * SETTINGS.election_max)
    assert c.campaign("B", "BC")
    settle(c, "BC")
    c.put("B", "of the next term")
    settle(c, "BC")
    c.connect_all()
    settle(c)

    for node in "ABCD":
        assert (voters(c, node), learners(c, node)) == ("ABC", "D")
        assert c.consumer(node).values == ["of the next term"]


def test_s25c_a_leader_whose_promotion_was_undone_leads_again() -> None:
    """What it counted of D, who is a learner again, counts no more: it would stop the node."""
    c = led_by("A")
    learner(c, "A", "D")
    c.put("A", "X")
    settle(c)
    for peer in "BCD":
        c.network.deaf.add(("A", peer))
    c.change("A", Promote("D"))
    c.pump("A", rounds=1)
    assert voters(c, "A") == "ABCD"
    for peer in "BCD":
        c.network.cut("A", peer)
    c.network.deaf.clear()
    c.elect("B", "BC")
    c.put("B", "of the next term")
    settle(c, "BCD")
    c.connect_all("ABCD")
    settle(c, "ABCD")
    assert (voters(c, "A"), learners(c, "A")) == ("ABC", "D")

    c.elect("A", "ABC")
    settle(c, "ABCD")

    assert c.engine("A").status().role == "leader"
    assert c.engine("A").overlay.state.matched("D") == 0


def test_a_commit_waits_for_the_majority_of_the_membership_appended() -> None:
    """Three of four, as soon as the entry stands in the leader's log."""
    c = led_by("A")
    learner(c, "A", "D")
    c.isolate("C")
    c.pump("AB", rounds=1)  # so recently that it still counts as connected
    c.network.deaf.add(("A", "D"))
    c.change("A", Promote("D"))
    proposal = c.put("A", "too early")
    settle(c, "AB", rounds=4)

    assert voters(c, "B") == "ABCD"
    assert proposal not in c.consumer("A").acknowledged
    c.network.cut("A", "D")
    c.network.deaf.clear()
    c.network.connect("A", "D")
    settle(c, "ABD", rounds=6)
    assert c.consumer("A").values == c.consumer("D").values == ["too early"]


def test_a_restart_finds_the_membership_in_its_log() -> None:
    c = led_by("A")
    voter(c, "A", "D")

    c.restart("B")

    assert voters(c, "B") == "ABCD"


def test_a_node_whose_file_disagrees_says_so_and_follows_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    c = led_by("A")
    learner(c, "A", "D")
    caplog.clear()

    c.restart("B")

    assert "the file of this node says that the cluster's nodes are A, B, C" in caplog.text
    assert "voters are A, B, C and the learners D. The log decides" in caplog.text
    assert learners(c, "B") == "D"


def test_what_is_cut_behind_a_snapshot_is_still_in_force_after_a_restart() -> None:
    """The journal notes the membership of the entries that it drops."""
    c = led_by("A")
    voter(c, "A", "D")
    for value in "xyz":
        c.put("A", value)
        settle(c)
    index = c.engine("B").overlay.in_force.index
    c.consumer("B").snapshot()
    settle(c)
    assert c.engine("B").status().first_index > index

    c.restart("B")

    assert voters(c, "B") == "ABCD"


def test_a_node_that_gets_a_snapshot_gets_its_membership() -> None:
    """It never sees the entry, and the state in the snapshot does not tell."""
    c = led_by("A")
    voter(c, "A", "D")
    for value in "xyz":
        c.put("A", value)
        settle(c)
    c.consumer("A").snapshot()
    settle(c)

    c.restart("B", wiped=True)
    assert voters(c, "B") == "ABC"
    c.connect_all()
    settle(c, rounds=30)

    assert c.disks["A"].opened, "the scenario needs a snapshot"
    assert voters(c, "B") == "ABCD"
    assert c.engine("B").status().stage == "member"
    c.restart("B")
    assert voters(c, "B") == "ABCD"


def test_a_crash_between_the_install_of_a_snapshot_and_the_log_keeps_the_membership() -> None:
    """S18, S25 a: it is in the journal before the snapshot is the one that a start loads."""
    c = led_by("A")
    voter(c, "A", "D")
    for value in "xyz":
        c.put("A", value)
        settle(c)
    c.consumer("A").snapshot()
    settle(c)
    c.restart("B", wiped=True)
    c.connect_all()
    disk = c.disks["B"]
    for _ in range(60):
        settle(c, rounds=1)
        if disk.snapshot.mark.index:
            break
    assert disk.snapshot.mark.index, "the scenario needs an install"

    assert disk.journal.load().membership is not None


# --- S25 b: one at a time, behind an entry of the own term ---


@guards(Switch.S25_ONE, Switch.S25_CONNECTED, harm="fork")
def test_s25b_two_changes_at_once_make_two_majorities(switches: Switches) -> str:
    """A reaches D and E only: with both as voters these three would be a majority of five."""
    c = led_by("A", switches=switches)
    learner(c, "A", "D")
    learner(c, "A", "E")
    for one in "ADE":
        for other in "BC":
            c.network.cut(one, other)
    c.change("A", Promote("D"))
    c.change("A", Promote("E"))
    mine = c.put("A", "A, D, E")
    settle(c, "ADE", rounds=4)
    c.clock.advance(2 * SETTINGS.election_max)
    assert c.campaign("B", "BC")
    settle(c, "BC", rounds=4)
    theirs = c.put("B", "B, C")
    settle(c, "BC", rounds=4)
    both = mine in c.consumer("A").acknowledged and theirs in c.consumer("B").acknowledged
    return first_harm(fork=both)


def test_a_second_change_is_refused_while_the_first_is_not_committed() -> None:
    c = led_by("A")
    c.isolate("A")

    c.add("A", "D")
    c.add("A", "E")

    assert "another change of nodes is not committed yet" in refusal(c, "A")
    assert learners(c, "A") == "D"


@guards(Switch.S25_OWN_ENTRY, harm="committed_entry_is_lost")
def test_a_change_before_an_entry_of_the_own_term_makes_two_majorities(
    switches: Switches,
) -> str:
    """Of four, A appends a fifth and reaches nobody else; B leads and removes A; A leads again.

    The known defect of changes of one node at a time (Ongaro, raft-dev, July 2015): the two changes
    start from one membership in unlike terms, so that their majorities need not meet.
    """
    c = led_by("A", "ABCD", switches)
    learner(c, "A", "E")
    for one in "AE":
        for other in "BCD":
            c.network.cut(one, other)
    c.change("A", Promote("E"))
    settle(c, "AE", rounds=2)
    c.clock.advance(2 * SETTINGS.election_max)
    assert c.campaign("B", "BCD")
    c.network.cut("B", "D")
    settle(c, "BC", rounds=2)
    c.change("B", Remove("A"))
    lost = c.put("B", "by B and C")
    settle(c, "BC", rounds=4)
    is_committed = lost in c.consumer("B").acknowledged
    c.crash("B")
    c.network.connect("A", "D")
    c.network.connect("D", "E")
    leads_without_it = False
    for _ in range(100):
        c.pump("ADE", seconds=HEARTBEAT, calm=False)
        leads_without_it |= any(c.lease(node) > 2 for node in "ADE")
    return first_harm(committed_entry_is_lost=is_committed and leads_without_it)


def test_a_new_leader_refuses_changes_until_its_own_entry_is_committed() -> None:
    c = led_by("A")
    c.clock.advance(2 * SETTINGS.election_max)
    assert c.campaign("B", "BC")

    c.add("B", "D")

    assert "has committed nothing in term 2" in refusal(c, "B")
    settle(c)
    c.add("B", "D")
    assert learners(c, "B") == "D"


def test_a_survivors_log_sends_back_to_the_file() -> None:
    """ADR 29, 7: what its entries say of lost nodes does not count; what comes behind does."""
    c = led_by("A")
    voter(c, "A", "D")
    journal = c.disks["A"].journal
    c.crash("A")
    journal.commit(JournalBatch(membership=NotedMembership(journal.last_index, "")))

    c.restart("A")

    assert voters(c, "A") == "ABC"
