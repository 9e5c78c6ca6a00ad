"""Defects of the change of nodes (S25): who counts, from when, and who still does when it is gone.

Most judges are the scenarios of tests/raft, each written for one rule. What any change of nodes
brings about is shown to the simulator.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.raft import membership
from holdfast.raft.core.context import Switch
from holdfast.raft.core.log import Log
from holdfast.raft.core.membership.changes import MembershipChanges
from holdfast.raft.core.membership.foreign_disks import ForeignDisks
from holdfast.raft.core.membership.in_force import MembershipInForce
from holdfast.raft.core.membership.rebuild import Forming
from holdfast.raft.core.membership.removals import Removals
from holdfast.raft.core.watch import Watch
from holdfast.raft.membership import Membership
from holdfast.raft.messages import Recalled
from teeth.catalogue import Scenario, Simulated, seeded
from teeth.patching import replaced, without

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holdfast.raft.messages import Hello, Message
    from holdfast.storage.journal.journal import NotedMembership

NODES = "tests/raft/test_change_of_nodes.py::"
LATER = "tests/raft/test_disks_that_came_later.py::"
FORMING = "tests/raft/test_forming.py::"
GOING = "tests/raft/test_learners_and_removed_nodes.py::"
FOUNDER = "tests/raft/test_new_disk_of_a_founder.py::"
RECOVERED = "tests/raft/test_recovered_nodes.py::"
TWICE = "tests/raft/test_two_bootstraps.py::"


def _look(self: Watch, *, leaving: bool = False) -> None:
    """Do not look at the invariants: the harm is to be seen."""
    del self, leaving


@seeded("S25 c", Scenario(GOING + "test_an_acknowledgement_of_a_learner_commits_nothing"))
def learner_counts() -> Iterator[None]:
    """A node counts as soon as it gets the log: commits, leases and votes rest on it.

    A wrong address is then a voter that is away from the first moment.
    """
    names = property(lambda self: self.names)
    with replaced(Membership, "voter_names", names):
        yield


@seeded(
    "S25 a", Scenario(NODES + "test_a_commit_waits_for_the_majority_of_the_membership_appended")
)
def membership_in_force_on_commit() -> Iterator[None]:
    """A membership counts when its entry is committed, by the majority of the one before.

    Leader and followers learn of that at different times, and count by different majorities.
    """
    newest = property(lambda self: self.membership_at(self.commit_index))
    noting = Log.set_commit

    def set_commit(self: Log, index: int) -> None:
        noting(self, index)
        self.on_membership()

    parts = replaced(Log, "newest_membership", newest), replaced(Log, "set_commit", set_commit)
    with parts[0], parts[1], replaced(Watch, "look", _look):
        yield


@seeded(
    "S25 a",
    Scenario(NODES + "test_s25a_a_change_counts_from_its_append_and_is_undone_with_its_entry"),
)
def membership_outlives_its_entry() -> Iterator[None]:
    """An entry of membership that another leader replaces stays in force."""
    looking = MembershipInForce.refresh

    def refresh(self: MembershipInForce) -> None:
        newest: NotedMembership | None = self._log.newest_membership
        if (newest.index if newest else 0) >= self.index:
            looking(self)

    with replaced(MembershipInForce, "refresh", refresh):
        yield


@seeded("S25 a", Scenario(NODES + "test_a_node_that_gets_a_snapshot_gets_its_membership"))
def snapshot_without_its_membership() -> Iterator[None]:
    """A node that gets a snapshot goes on with the membership of its file."""

    def note(self: Log, told: NotedMembership) -> None:
        del self, told

    with replaced(Log, "note_membership", note):
        yield


@seeded("S25 b", Scenario(NODES + "test_s25b_two_changes_at_once_make_two_majorities[guarded]"))
def two_changes_at_once() -> Iterator[None]:
    """A leader appends a change while another is open: their majorities may be disjoint."""
    with without(Switch.S25_ONE, Switch.S25_CONNECTED):
        yield


@seeded(
    "S25 b",
    Scenario(NODES + "test_a_change_before_an_entry_of_the_own_term_makes_two_majorities[guarded]"),
)
def change_before_an_entry_of_the_own_term() -> Iterator[None]:
    """A new leader changes the nodes before anything of its own term is committed."""
    with without(Switch.S25_OWN_ENTRY):
        yield


@seeded("S25 c", Scenario(GOING + "test_s25c_a_wrong_address_does_not_cost_the_majority[guarded]"))
def promoted_without_having_caught_up() -> Iterator[None]:
    """A learner becomes a voter whatever it holds, and wherever it is."""
    with without(Switch.S25_CAUGHT_UP):
        yield


@seeded("S25 c", Scenario(GOING + "test_a_node_is_not_removed_if_the_rest_is_away[guarded]"))
def removal_that_leaves_no_majority() -> Iterator[None]:
    """A node is removed although the voters that stay are not there."""
    with without(Switch.S25_CONNECTED):
        yield


@seeded("S25 d", Scenario(GOING + "test_s25d_a_leader_hands_over_before_it_is_removed[guarded]"))
def leader_removes_itself() -> Iterator[None]:
    """A leader appends its own removal, and goes on counting itself."""
    with without(Switch.S25_HAND_OVER):
        yield


@seeded("S25 e", Scenario(GOING + "test_s25e_a_removed_node_is_told_when_it_asks[guarded]"))
def removed_node_is_never_told() -> Iterator[None]:
    """A removed node is answered like any other, and asks for votes for ever."""
    with without(Switch.S25_REMOVED):
        yield


@seeded("S25 e", Scenario(GOING + "test_a_removed_node_counts_no_more"))
def removed_node_counts() -> Iterator[None]:
    """A removed node stays a voter of those that knew it: its acknowledgements commit."""
    names = property(lambda self: tuple(sorted({*(n.name for n in self.nodes), *self.removed})))
    with replaced(Membership, "voter_names", names), replaced(Membership, "names", names):
        yield


@seeded("S25 f", Simulated(("I5", "I6", "I7"), "changes", 8))
def log_of_another_cluster() -> Iterator[None]:
    """A new node that had founded a cluster alone is heard, and gets the log behind its own.

    With the higher term it is elected, and serves what it has.
    """
    with without(Switch.S25_FOREIGN):
        yield


@seeded("S25 b", Simulated(("I16",), "changes"))
def promotion_of_all_learners() -> Iterator[None]:
    """Whoever promotes a learner promotes them all: two voters come at once.

    Majorities before and after need not meet, and nobody asked whether the others have caught up.
    """
    promoting = membership._with_voter

    def with_voters(now: Membership, name: str) -> Membership:
        then = promoting(now, name)
        voters = tuple(sorted((*then.voters, *then.learners)))
        return replace(then, voters=voters, learners=())

    with replaced(membership, "_with_voter", with_voters):
        yield


@seeded("S25 e", Simulated(("I16",), "changes"))
def names_of_removed_nodes_are_forgotten() -> Iterator[None]:
    """A removed node is like one that never was: it is told nothing, and its name can come back."""
    removing = membership._without

    def without_a_trace(now: Membership, name: str) -> Membership:
        return replace(removing(now, name), removed=now.removed)

    with replaced(membership, "_without", without_a_trace):
        yield


@seeded("S25 e", Simulated(("I16",), "changes"))
def removed_node_runs_on() -> Iterator[None]:
    """A node that is told that it was removed takes no notice."""

    def tick(self: Removals) -> None:
        del self

    with replaced(Removals, "tick", tick):
        yield


@seeded(
    "S19",
    Scenario(FORMING + "test_s19_a_node_that_no_file_names_does_not_stand_in_for_a_peer"),
)
def stranger_forms() -> Iterator[None]:
    """A cluster forms as soon as so many nodes have met as the file names, whichever they are.

    A new node stands in for the one that is away and holds everything.
    """

    def meet(self: Forming, peer: str, hello: Hello) -> None:
        self._met[peer] = hello.incarnation
        if dict(hello.formed).get(self._ctx.node_id) == self._identity.incarnation:
            self._listed_by.add(peer)
        if len(self._listed_by) == len(self._met) == len(self._ctx.state.peers):
            self._become_member()

    with replaced(Forming, "_meet", meet):
        yield


@seeded(
    "S25 a",
    Scenario(RECOVERED + "test_s25a_a_node_that_rebuilds_after_a_recovery_counts_as_the_others[A]"),
)
def lost_nodes_come_back() -> Iterator[None]:
    """After a recovery only notes beside some nodes' logs say which nodes go on.

    A node that comes back on an empty disk is fed the old log, and counts by the nodes it names.
    """

    def began_to_lead(self: MembershipChanges) -> None:
        del self

    with replaced(MembershipChanges, "began_to_lead", began_to_lead):
        yield


@seeded("S19", Scenario(FOUNDER + "test_s19_a_founders_new_disk_elects_nobody[guarded]"))
def founders_are_forgotten() -> Iterator[None]:
    """Only those that formed a cluster together know its disks; the log does not say it.

    Those that came later take a founder's new disk, which formed alone, for the voter it was.
    """

    def founders(self: MembershipInForce, by_disk: Mapping[str, str]) -> dict[str, str]:
        del self
        return dict(by_disk)

    with replaced(MembershipInForce, "founders", founders):
        yield


@seeded(
    "S25 f",
    Scenario(LATER + "test_s25f_a_node_that_had_joined_makes_nobody_give_up_its_vote[guarded]"),
)
def disk_that_joined_tells_nothing() -> Iterator[None]:
    """A disk that came after the founding says nothing of it, though its log names the founders.

    What is left of an earlier bootstrap is believed, and others give up their votes for its word.
    """

    def known(self: Forming) -> Mapping[str, str]:
        return self._met if self._identity.stage == "forming" else self._identity.formed

    with replaced(Forming, "_known_disks", known):
        yield


@seeded(
    "S19",
    Scenario(LATER + "test_s19_a_disk_is_admitted_when_its_leader_has_said_who_founded"),
)
def disk_admitted_before_it_is_told() -> Iterator[None]:
    """A rebuilt disk takes its vote before its leader has said which disks founded the cluster."""

    def has_told(self: ForeignDisks, leader: str) -> bool:
        del self, leader
        return True

    with replaced(ForeignDisks, "has_told", has_told):
        yield


@seeded("S19", Scenario(FOUNDER + "test_s19_it_stops_as_soon_as_a_member_speaks_to_it"))
def founder_alone_serves_on() -> Iterator[None]:
    """A founder's new disk that formed alone serves on beside the cluster that it was one of."""

    def look(self: ForeignDisks, peer: str, hello: Hello) -> None:
        del self, peer, hello

    with replaced(ForeignDisks, "_look_beside", look):
        yield


@seeded("S25 f", Scenario(TWICE + "test_s25f_before_it_has_said_whose_it_is_nothing_of_it_counts"))
def voters_prove_nothing() -> Iterator[None]:
    """Where nodes never change, a voter is believed whatever disk is in its place by now.

    It has said nothing yet of who founded its cluster, and others give up their votes for its word.
    """
    asked = ForeignDisks._has_to_prove

    def has_to_prove(self: ForeignDisks, peer: str) -> bool:
        return asked(self, peer) and self._in_force.index > 0

    with replaced(ForeignDisks, "_has_to_prove", has_to_prove):
        yield


@seeded(
    "S25 f",
    Scenario(TWICE + "test_s25f_what_it_remembers_makes_nobody_give_up_its_vote[guarded]"),
)
def memory_of_a_foreign_disk() -> Iterator[None]:
    """What a peer remembers is believed before it is known whose disk remembers it.

    A disk of another bootstrap makes all others give up their votes (S21).
    """
    heard = ForeignDisks.hears

    def hears(self: ForeignDisks, peer: str, message: Message) -> bool:
        return heard(self, peer, message) or isinstance(message, Recalled)

    with replaced(ForeignDisks, "hears", hears):
        yield


@seeded(
    "S19",
    Scenario(TWICE + "test_s19_a_rebuilt_disk_knows_who_founded_the_cluster_that_it_came_to"),
)
def rebuilt_disk_knows_no_founders() -> Iterator[None]:
    """A disk that was rebuilt is told nothing of who founded, and votes for whoever asks."""

    def founders(self: ForeignDisks, leader: str) -> None:
        del self, leader

    with replaced(ForeignDisks, "founders_from", founders):
        yield
