"""Each invariant of the engine, broken on purpose: the node stops, and says which and with what.

The breaks reach into the engine, because nothing that a cluster does leads there. The node that
they are made on leads, is heard by two peers, and has its heartbeat due.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from harness.cluster import HEARTBEAT, Cluster
from harness.journal import Snapshot
from holdfast.raft.api import EngineInvariantBroken, EngineStopped, SnapshotMark
from holdfast.raft.core.context import ALL, Switch
from holdfast.raft.core.invariants import CLOCK, LEADING, NAMES, POSITIONS, STANDING
from holdfast.raft.core.membership.rebuild import _RebuildingDisk
from holdfast.raft.membership import ENTRY_KIND, ClusterNode, Membership
from holdfast.raft.messages import Append, TermNotice
from holdfast.storage.journal.journal import HardState

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.raft.pysyncobj.overlay import Overlay

FOREVER = 1e9
LEARNER_C = Membership((ClusterNode("A"), ClusterNode("B")), (ClusterNode("C"),))


class Broken:
    """A cluster whose leader A, of term 2 with entry 5 committed, is about to be broken."""

    def __init__(self, switches: frozenset[Switch] = ALL) -> None:
        self.cluster = c = Cluster(switches=switches)
        c.elect("B")
        c.elect("A")
        for value in "xyz":
            c.put("A", value)
        c.pump(rounds=4, seconds=HEARTBEAT)
        self.look()
        assert (self.a.state.term, self.a.state.commit_index, self.last) == (2, 5, 5)

    @property
    def a(self) -> Overlay:
        return self.cluster.engine("A").overlay

    @property
    def last(self) -> int:
        return self.a.journal.last_index

    def look(self, node: str = "A") -> None:
        """Let a tick come that looks; answers of peers are not heard."""
        overlay = self.cluster.engine(node).overlay
        overlay.state.heartbeat_at = 0.0
        overlay.ready.send.append(("C", TermNotice(1)))
        self.cluster.engine(node).tick()

    def append_alone(self) -> None:
        """One entry more, that no peer hears of."""
        self.cluster.isolate("A")
        self.cluster.put("A", "alone")
        self.look()

    def set_entry_term(self, index: int, term: int) -> None:
        log, position = self.a.journal._log, index - self.a.journal.anchor_index
        log[position] = (*log[position][:2], term)

    def set_snapshot(self, index: int, term: int) -> None:
        self.cluster.disks["A"].snapshot = Snapshot(SnapshotMark(index, term))

    def set_engine(self, name: str, value: object) -> None:
        setattr(self.a, f"_SyncObj__{name}", value)

    def begin_anew(self) -> None:
        """Forget what was seen before."""
        self.a.watch._before = None


def commits_more_than_it_has(b: Broken) -> None:
    b.a.state.commit_index = 6


def forgets_what_was_durable(b: Broken) -> None:
    b.a.journal._durable_last = 4


def counts_durable_twice(b: Broken) -> None:
    b.a.journal._durable_last = 6


def sends_before_the_flush(b: Broken) -> None:
    b.a.journal.set_term(2, "A")
    b.a.journal.flush = lambda changes: None  # type: ignore[method-assign]  # noqa: ARG005 - the defect


def takes_a_commit_back(b: Broken) -> None:
    for peer in "BC":
        b.a.state.set_matched(peer, 0)
    b.a.state.commit_index = 4


def exchanges_a_committed_entry(b: Broken) -> None:
    b.set_entry_term(5, 1)


def protects_too_little(b: Broken) -> None:
    b.a.journal._commit = 4


def hands_over_uncommitted(b: Broken) -> None:
    b.append_alone()
    b.a.state.handed_index = 6


def hands_over_twice(b: Broken) -> None:
    b.a.state.handed_index = 4


def evolves_too_far(b: Broken) -> None:
    b.a.delivery.evolved_index = 6


def cuts_without_a_snapshot(b: Broken) -> None:
    b.a.journal.cut_to(3)


def loses_a_snapshot(b: Broken) -> None:
    b.set_snapshot(5, 2)
    b.look()
    b.set_snapshot(1, 1)


def snapshot_from_nowhere(b: Broken) -> None:
    b.set_snapshot(6, 2)


def snapshot_of_another_log(b: Broken) -> None:
    b.set_snapshot(5, 1)


def clock_goes_back(b: Broken) -> None:
    b.cluster.clock.now -= 1.0


def takes_the_term_back(b: Broken) -> None:
    b.set_engine("raftCurrentTerm", 1)


def stores_another_term(b: Broken) -> None:
    b.a.journal._hard = HardState(3, "A")


def votes_twice(b: Broken) -> None:
    b.a.journal._hard = HardState(2, "B")


def leads_by_anothers_vote(b: Broken) -> None:
    b.a.journal._hard = HardState(2, "B")
    b.begin_anew()


def leads_without_a_vote(b: Broken) -> None:
    b.a.identity._identity = replace(b.a.identity._identity, stage="rebuilding")


def hears_another_leader(b: Broken) -> None:
    b.cluster.engine("A").on_message("C", Append(2, 1, 5, 5, 2, "", ()))


def leader_cuts_its_log(b: Broken) -> None:
    b.append_alone()
    b.a.journal.truncate_from(6)


def leads_with_an_old_log(b: Broken) -> None:
    b.append_alone()
    b.set_entry_term(6, 1)


def log_from_the_future(b: Broken) -> None:
    b.a.state.follow(None)
    b.a.journal.append(b"\x01", 3)


def lease_of_another_term(b: Broken) -> None:
    b.a.lease._until = (1, FOREVER)


def serves_too_early(b: Broken) -> None:
    b.append_alone()
    b.set_engine("noopIDx", 6)


def pays_back_too_much(b: Broken) -> None:
    b.a.proposals._stamped_bytes = -1


def commits_of_another_term(b: Broken) -> None:
    b.append_alone()
    b.set_entry_term(5, 1)
    b.begin_anew()


def commits_alone(b: Broken) -> None:
    b.append_alone()
    b.a.state.commit_index = 6
    b.a.journal.set_commit(6)


def peer_is_ahead(b: Broken) -> None:
    b.a.state.set_matched("B", 6)


def counts_a_new_disk(b: Broken) -> None:
    b.a.rebuilding._disks["B"] = _RebuildingDisk("another disk", 5)


def counts_a_learner(b: Broken) -> None:
    b.a.state.begin_with(LEARNER_C)


def changes_twice(b: Broken) -> None:
    for _ in range(2):
        b.a.journal.append(ENTRY_KIND + Membership.of(("A", "B", "C")).encode().encode(), 2)


BREAKS: dict[str, tuple[Callable[[Broken], None], str]] = {
    "commit_within_log": (commits_more_than_it_has, "6 is committed here, the log ends with 5"),
    "commit_is_durable": (forgets_what_was_durable, "5 is committed here, durable is 4"),
    "durable_within_log": (counts_durable_twice, "6 entries are durable and 0 wait"),
    "flushed_before_shown": (sends_before_the_flush, "behind entry 5 or the vote is not durable"),
    "commit_never_falls": (takes_a_commit_back, "the commit index fell from 5 to 4"),
    "committed_entry_stays": (exchanges_a_committed_entry, "was of term 2 and is of term 1 now"),
    "commit_is_noted": (protects_too_little, "the journal protects entries up to 4"),
    "handed_within_commit": (hands_over_uncommitted, "entry 6 was handed over, committed is 5"),
    "handed_never_falls": (hands_over_twice, "after entry 5 was handed over, it stands at 4"),
    "evolved_within_handed": (evolves_too_far, "the state says 6, handed over is 5"),
    "cut_behind_a_snapshot": (cuts_without_a_snapshot, "cut up to 3, the newest snapshot is of 0"),
    "snapshot_never_older": (loses_a_snapshot, "and is SnapshotMark(index=1, term=1)"),
    "snapshot_within_handed": (snapshot_from_nowhere, "a snapshot is of 6, handed over is 5"),
    "snapshot_fits_the_log": (snapshot_of_another_log, "says term 1, the log's entry is of term 2"),
    "clock_never_goes_back": (clock_goes_back, "the boot clock went back"),
    "term_never_falls": (takes_the_term_back, "the term fell from 2 to 1"),
    "term_is_stored": (stores_another_term, "this node acts in term 2 and stored 3"),
    "one_vote_in_a_term": (votes_twice, "of term 2 was given to A, and then to B"),
    "candidate_has_its_own_vote": (leads_by_anothers_vote, "stands in term 2, and its vote is B's"),
    "only_a_voter_stands": (leads_without_a_vote, "stands in term 2 and has no vote"),
    "one_leader_in_a_term": (hears_another_leader, "term 2 has two leaders: A and C"),
    "leader_began_its_term": (leads_with_an_old_log, "leader of term 2 has a log of term 1"),
    "log_of_no_later_term": (log_from_the_future, "newest entry is of term 3, this node's is 2"),
    "leader_only_appends": (leader_cuts_its_log, "the leader of 2 fell from 6 to 5"),
    "lease_of_this_leader": (lease_of_another_term, "a lease of term 1 in term 2, in which this"),
    "serves_after_its_own_entry": (serves_too_early, "first entry is 6, and the state says 5"),
    "ledger_never_below_zero": (pays_back_too_much, "own proposals in the log have -1 bytes"),
    "commit_of_its_own_term": (commits_of_another_term, "of term 2 committed entry 5 of 1"),
    "commit_by_a_majority": (commits_alone, "too few hold it besides this one: [('B', 5), ('C', 5"),
    "peer_within_the_log": (peer_is_ahead, "PeerPlace(peer='B', matched=6"),
    "rebuilding_disk_counts_nothing": (counts_a_new_disk, "PeerPlace(peer='B', matched=5"),
    "learner_counts_nothing": (counts_a_learner, "PeerPlace(peer='C', matched=5"),
    "one_change_at_a_time": (changes_twice, "2 changes of nodes are open in term 2"),
}


def test_each_invariant_is_broken_here() -> None:
    assert list(BREAKS) == list(NAMES)
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_broken_invariant_stops_the_node(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """It says so at the level that wakes somebody, ends its FIFO with it, and sends nothing more.

    S4: nothing is handed over after it. S10 c: nobody may read from it any more.
    """
    breaks, sentence = BREAKS[name]
    broken = Broken()
    breaks(broken)
    with caplog.at_level(logging.CRITICAL), pytest.raises(EngineStopped) as stopped:
        broken.look()

    cause = stopped.value.__cause__
    assert isinstance(cause, EngineInvariantBroken)
    assert (cause.name, sentence in cause.found) == (name, True), cause.found
    assert "alarm: the replicated log stopped: EngineInvariantBroken" in caplog.text
    assert "Report this with the node's log" in caplog.text
    consumer = broken.cluster.consumer("A")
    consumer.evolve()
    assert name in consumer.stopped
    assert not broken.cluster.lease("A")
    assert broken.a.ready.send


def test_a_stopped_node_is_not_ticked_again() -> None:
    broken = Broken()
    peer_is_ahead(broken)
    for _ in range(2):
        with pytest.raises(EngineStopped, match="PeerPlace"):
            broken.look()


@pytest.mark.parametrize(
    "invariant", [*POSITIONS, *CLOCK, *STANDING, *LEADING], ids=lambda each: each.name
)
def test_each_names_the_rules_that_it_guards(invariant: object) -> None:
    """The ids are looked up by tests/tidy/test_rule_ids.py, as everywhere."""
    rules = str(getattr(invariant, "rules", ""))
    assert rules.startswith(("E-", "S"))


def test_without_a_defence_its_harm_is_shown_instead() -> None:
    """A test that takes a defence out is about what follows then, not about who notices first."""
    broken = Broken(ALL - {Switch.PRE_VOTE})
    peer_is_ahead(broken)
    broken.look()
