"""Defects of elections, leases and replication: the overlay's deviations taken out one by one.

Most of them make of the overlay what the stock engine does (E-1 to E-6). Their judges are the
scenarios of tests/raft, each written for one rule; whatever a run of clients can see as well is
shown to the simulator in the other modules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.raft.core import lease
from holdfast.raft.core.append import Appending
from holdfast.raft.core.context import Switch
from holdfast.raft.core.membership.voters import Voters
from holdfast.raft.core.watch import Watch
from teeth.catalogue import Scenario, seeded
from teeth.patching import replaced, without

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holdfast.raft.messages import Append

LOG = "tests/raft/test_log.py::"
VOTES = "tests/raft/test_votes_and_lease.py::"
PROPOSALS = "tests/raft/test_proposals.py::"
REBUILD = "tests/raft/test_rebuild.py::"


@seeded("D1", Scenario(LOG + "test_d1_a_follower_never_cuts_what_it_holds_already[guarded]"))
def cut_without_conflict() -> Iterator[None]:
    """A follower cuts whatever lies behind a late message, as the stock engine does.

    What it had acknowledged is gone, and the leader that counted it may die.
    """
    with without(Switch.CUT_ON_CONFLICT):
        yield


@seeded("D2", Scenario(LOG + "test_d2_a_heartbeat_commits_only_what_it_verified"))
def heartbeat_commits_unverified() -> Iterator[None]:
    """A follower takes the leader's commit index for its own, whatever it holds itself there."""

    def commit(self: Appending, append: Append) -> None:
        log, state = self._ctx.log, self._ctx.state
        state.commit_index = max(state.commit_index, min(append.commit_index, log.last_index))
        log.set_commit(state.commit_index)

    with replaced(Appending, "_commit", commit):
        yield


@seeded("D5", Scenario(LOG + "test_d5_nothing_acknowledged_is_lost_in_a_power_cut[guarded]"))
def ack_before_sync() -> Iterator[None]:
    """Acks, votes and the own count leave before the journal has synced what they show."""
    with without(Switch.ACK_AFTER_FLUSH):
        yield


@seeded("I2", Scenario(VOTES + "test_an_ack_of_another_term_does_not_count[guarded]"))
def ack_of_any_term() -> Iterator[None]:
    """An ack counts in whatever term it arrives: what was cut since counts as committed."""
    with without(Switch.ACK_TERM):
        yield


@seeded("S10", Scenario(VOTES + "test_a_vote_that_arrives_twice_counts_once[guarded]"))
def votes_counted_by_message() -> Iterator[None]:
    """A vote that arrives twice counts twice, as in the stock engine: one voter elects."""
    with without(Switch.VOTER_ONCE):
        yield


@seeded(
    "S10 a", Scenario(VOTES + "test_s10a_a_real_vote_is_refused_while_a_leader_is_heard[guarded]")
)
def vote_while_the_leader_is_heard() -> Iterator[None]:
    """A real vote is given to anybody with a higher term: two leaders answer reads."""
    with without(Switch.S10_STICKY):
        yield


@seeded("S10 b", Scenario(VOTES + "test_s10b_a_restarted_voter_is_silent[guarded]"))
def vote_right_after_a_start() -> Iterator[None]:
    """A node that starts again has forgotten the promise that a lease rests on, and votes."""
    with without(Switch.S10_SILENCE):
        yield


@seeded("S10 c", Scenario(VOTES + "test_s10c_the_lease_runs_from_the_send_time[guarded]"))
def lease_from_the_echo() -> Iterator[None]:
    """The lease runs from when an echo came back, not from when its probe was sent."""
    with without(Switch.S10_SENT):
        yield


@seeded("S10 c", Scenario(VOTES + "test_s10c_the_lease_ends_by_itself_at_its_share_of_the_promise"))
def lease_blind_to_clock_rates() -> Iterator[None]:
    """The lease uses the whole promise, as if no two clocks ever ran apart."""
    with replaced(lease, "LEASE_SHARE", 1.0):
        yield


@seeded(
    "S10 d",
    Scenario(VOTES + "test_s10d_a_transfer_gives_up_the_lease_of_its_term_for_good[guarded]"),
)
def transfer_keeps_the_lease() -> Iterator[None]:
    """A leader that has handed over goes on answering reads by its lease."""
    with without(Switch.S10_TRANSFER):
        yield


@seeded("S19", Scenario(REBUILD + "test_s19_a_replaced_disk_elects_nobody[guarded]"))
def empty_disk_votes() -> Iterator[None]:
    """A node whose disk was replaced votes at once, for one who lacks what it had acknowledged."""
    with without(Switch.S19_REBUILD):
        yield


@seeded(
    "S19", Scenario(REBUILD + "test_s19_a_bootstrap_flag_left_in_a_unit_file_does_no_harm[guarded]")
)
def empty_disk_bootstraps_alone() -> Iterator[None]:
    """`--bootstrap` makes an empty directory a member without asking whether the peers form too."""
    with without(Switch.S19_FORM):
        yield


@seeded("S1", Scenario(PROPOSALS + "test_s1_decided_in_term_1_and_proposed_in_term_3[guarded]"))
def expiry_from_an_ex_leader() -> Iterator[None]:
    """What was decided in one term is stamped and applied in a later one.

    A leader that stalled, lost its lead and got it back expires a member that was heard elsewhere.
    """
    with without(Switch.S1_DROP, Switch.S1_SKIP):
        yield


@seeded("S5", Scenario(PROPOSALS + "test_s5_proposals_that_are_cut_off_learn_their_fate[guarded]"))
def step_down_tells_nobody() -> Iterator[None]:
    """A leader that steps down does not say whose outcome is unknown: callers hang."""
    with without(Switch.S5_UNKNOWN):
        yield


@seeded(
    "S4",
    Scenario(
        "tests/raft/test_one_order.py::test_s4_the_leader_role_comes_after_all_older_entries[guarded]"
    ),
)
def leader_before_its_entries() -> Iterator[None]:
    """A new leader decides before it has applied what the last one committed."""
    with without(Switch.S4_ORDER):
        yield


@seeded(
    "S3",
    Scenario(
        "tests/raft/test_agreement.py::test_s3_the_one_that_differs_stops_leader_or_not[guarded]"
    ),
)
def digests_not_compared() -> Iterator[None]:
    """A node whose state differs from the majority's goes on serving it."""
    with without(Switch.S3_AGREE):
        yield


@seeded(
    "S21",
    Scenario(
        "tests/raft/test_forgetful_disk.py::test_s21_a_node_that_forgot_an_ack_elects_nobody[guarded]"
    ),
)
def forgetful_disk_votes() -> Iterator[None]:
    """A disk that lost its last transaction unseen votes as if nothing had happened."""
    with without(Switch.S21_COMPARE):
        yield


@seeded("I7", Scenario(VOTES + "test_barrier_and_probe_pass_only_by_a_majority_that_heard_them"))
def quorum_of_one() -> Iterator[None]:
    """A leader takes what it says itself for what a majority has heard: every barrier passes.

    Cut off from its peers, it goes on answering reads from a state of long ago.
    """

    def reached(self: Voters, others: Mapping[str, float], own: float) -> float:
        del self, others
        return own

    with replaced(Voters, "reached", reached):
        yield


@seeded(
    "D5",
    Scenario(
        "tests/raft/test_invariants.py::test_a_broken_invariant_stops_the_node[flushed_before_shown]"
    ),
)
def nobody_looks_at_the_invariants() -> Iterator[None]:
    """A node goes on although one of its parts does what another one relies on not to happen."""

    def look(self: Watch, *, leaving: bool = False) -> None:
        del self, leaving

    with replaced(Watch, "look", look):
        yield


@seeded(
    "S4",
    Scenario(
        "tests/raft/test_caught_up.py::"
        "test_s4_a_new_leaders_word_counts_from_its_own_first_entry_on"
    ),
)
def new_leader_believed_at_once() -> Iterator[None]:
    """A follower takes for the newest what a new leader knows, which may be less than was told."""

    def note(self: Appending, term: int) -> None:
        del term
        self.current = (self._elections.heard_at, self._ctx.state.commit_index)
        self.catch_up_index = self.catch_up_index or self.current[1]

    with replaced(Appending, "_note_current", note):
        yield
