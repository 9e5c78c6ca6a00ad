"""The invariants of a node. If one does not hold, the node stops before it acts on the values.

This module is the list: values that are read at one moment, and what must be true of them, each
with the rule that it guards. It reads nothing itself (`watch` does) and decides nothing else.
`assert` is not used, because `python -O` takes it out.

Other invariants are checked where they would be broken: a committed entry is never cut
(`Log.truncate_from`), a batch never contradicts the journal (`storage.journal.rules`), a
snapshot never contradicts the state (`storage.state.rules`), and states agree (`state_digests`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from holdfast.raft.api import EngineInvariantBroken

if TYPE_CHECKING:
    from holdfast.raft.api import SnapshotMark

M = TypeVar("M")


class Positions(NamedTuple):
    """Indexes of the log: what is held, durable, committed, handed over and applied."""

    mark: SnapshotMark
    """The newest durable snapshot."""
    mark_term: int | None
    """The term that the log has at the snapshot's index; None if it does not reach there."""
    anchor: int
    """The last entry that was cut away."""
    durable: int
    waiting: int
    """How many entries are in memory and not yet flushed."""
    last: int
    leaving: bool
    """Whether messages that show durable state are sent next."""
    is_flushed: bool
    commit: int
    noted_commit: int
    """The commit index that the journal will not cut below."""
    commit_term: int | None
    earlier_commit_term: int | None
    """The term that the log has now at the commit index of the moment before."""
    handed: int
    evolved: int


class Standing(NamedTuple):
    """This node's part in the present term."""

    node: str
    term: int
    stored_term: int
    vote: str | None
    led_by: tuple[int, str]
    """The last term whose leader was known, and that leader."""
    leads: bool
    stands: bool
    """Whether it leads or is a candidate."""
    may_stand: bool
    """Whether its disk has a vote and owes no silence to an earlier start."""
    is_rebuilding: bool
    last_term: int


class PeerPlace(NamedTuple):
    """How much of the log a leader believes one peer to have."""

    peer: str
    matched: int
    """The index that the commit rule counts."""
    acked: int
    next: int
    is_new: bool
    """Whether its disk is rebuilding, so that it does not count."""
    is_voter: bool


class Leading(NamedTuple):
    """What a leader relies on. On a follower no-op, commit and peers are empty."""

    leads: bool
    term: int
    lease_term: int
    ready_term: int
    stamped_bytes: int
    """Bytes of own proposals that are in the log and not yet handed over."""
    no_op: int = 0
    last: int = 0
    commit: int = 0
    commit_term: int | None = None
    evolved: int = 0
    majority: int = 0
    peers: tuple[PeerPlace, ...] = ()
    open_changes: int = 0
    """Changes of nodes that this leader has appended and not committed."""


@dataclass(frozen=True, slots=True)
class Invariant(Generic[M]):
    """A rule; `holds` and `says` get the earlier values and the present ones.

    What held at a moment holds as long as nothing of it changes: so `holds(now, now)` may not be
    false where `holds(was, now)` is true, and equal moments need not be judged again.
    """

    name: str
    rules: str
    holds: Callable[[M, M], bool]
    says: Callable[[M, M], str]


def judge(invariants: tuple[Invariant[M], ...], was: M, now: M) -> None:
    """Raise EngineInvariantBroken for the first invariant that does not hold."""
    for each in invariants:
        if not each.holds(was, now):
            raise EngineInvariantBroken(each.name, each.rules, each.says(was, now))


POSITIONS: Final[tuple[Invariant[Positions], ...]] = (
    Invariant(
        "commit_within_log",
        "E-2; Raft thesis 3.5",
        lambda _, now: now.commit <= now.last,
        lambda _, now: f"entry {now.commit} is committed here, the log ends with {now.last}",
    ),
    Invariant(
        "commit_is_durable",
        "E-5; Raft thesis 3.8",
        lambda _, now: now.commit <= now.durable,
        lambda _, now: f"entry {now.commit} is committed here, durable is {now.durable}",
    ),
    Invariant(
        "durable_within_log",
        "E-5, S18",
        lambda _, now: now.durable + now.waiting == now.last,
        lambda _, now: (
            f"{now.durable} entries are durable and {now.waiting} wait for their flush, but the "
            f"log ends with {now.last}"
        ),
    ),
    Invariant(
        "flushed_before_shown",
        "E-5; Raft thesis 3.8",
        lambda _, now: now.is_flushed or not now.leaving,
        lambda _, now: (
            f"an answer is about to leave while something behind entry {now.durable} or the vote "
            "is not durable"
        ),
    ),
    Invariant(
        "commit_never_falls",
        "E-1, S3",
        lambda was, now: now.commit >= was.commit,
        lambda was, now: f"the commit index fell from {was.commit} to {now.commit}",
    ),
    Invariant(
        "committed_entry_stays",
        "E-1, S3; Raft thesis 3.6",
        lambda was, now: now.earlier_commit_term in {None, was.commit_term},
        lambda was, now: (
            f"entry {was.commit}, which is committed, was of term {was.commit_term} and is of "
            f"term {now.earlier_commit_term} now"
        ),
    ),
    Invariant(
        "commit_is_noted",
        "E-1",
        lambda _, now: now.commit == now.noted_commit,
        lambda _, now: (
            f"entry {now.commit} is committed, but the journal protects entries up to "
            f"{now.noted_commit}"
        ),
    ),
    Invariant(
        "handed_within_commit",
        "S4; Raft thesis 3.5",
        lambda _, now: now.handed <= max(now.commit, now.mark.index),
        lambda _, now: f"entry {now.handed} was handed over, committed is {now.commit}",
    ),
    Invariant(
        "handed_never_falls",
        "S4",
        lambda was, now: now.handed >= was.handed,
        lambda was, now: f"after entry {was.handed} was handed over, it stands at {now.handed}",
    ),
    Invariant(
        "evolved_within_handed",
        "S4",
        lambda _, now: now.evolved <= now.handed,
        lambda _, now: f"the state says {now.evolved}, handed over is {now.handed}",
    ),
    Invariant(
        "cut_behind_a_snapshot",
        "E-3, S4, S18",
        lambda _, now: now.anchor <= now.mark.index,
        lambda _, now: (
            f"the journal was cut up to {now.anchor}, the newest snapshot is of {now.mark.index}"
        ),
    ),
    Invariant(
        "snapshot_never_older",
        "S18",
        lambda was, now: now.mark.index >= was.mark.index and now.mark.term >= was.mark.term,
        lambda was, now: f"the newest snapshot was {was.mark}, and is {now.mark}",
    ),
    Invariant(
        "snapshot_within_handed",
        "S4, S18",
        lambda _, now: now.mark.index <= now.handed,
        lambda _, now: f"a snapshot is of {now.mark.index}, handed over is {now.handed}",
    ),
    Invariant(
        "snapshot_fits_the_log",
        "S3, S18",
        lambda _, now: now.mark_term in {None, now.mark.term},
        lambda _, now: (
            f"the snapshot of {now.mark.index} says term {now.mark.term}, the log's entry is of "
            f"term {now.mark_term}"
        ),
    ),
)

CLOCK: Final[tuple[Invariant[float], ...]] = (
    Invariant(
        "clock_never_goes_back",
        "S10 c",
        lambda was, now: now >= was,
        lambda was, now: f"the boot clock went back from {was} s to {now} s",
    ),
)

STANDING: Final[tuple[Invariant[Standing], ...]] = (
    Invariant(
        "term_never_falls",
        "S10 c; Raft thesis 3.3",
        lambda was, now: now.term >= was.term,
        lambda was, now: f"the term fell from {was.term} to {now.term}",
    ),
    Invariant(
        "term_is_stored",
        "E-5; Raft thesis 3.4",
        lambda _, now: now.term == now.stored_term,
        lambda _, now: f"this node acts in term {now.term} and stored {now.stored_term}",
    ),
    Invariant(
        "one_vote_in_a_term",
        "E-11, S10 b; Raft thesis 3.4",
        lambda was, now: now.term != was.term or was.vote in {None, now.vote},
        lambda was, now: (
            f"the vote of term {now.term} was given to {was.vote}, and then to {now.vote}"
        ),
    ),
    Invariant(
        "candidate_has_its_own_vote",
        "E-11; Raft thesis 3.4",
        lambda _, now: not now.stands or now.vote == now.node,
        lambda _, now: f"this node stands in term {now.term}, and its vote is {now.vote}'s",
    ),
    Invariant(
        "only_a_voter_stands",
        "S10 b, S19, S25 d",
        lambda _, now: not now.stands or now.may_stand,
        lambda _, now: f"this node stands in term {now.term} and has no vote",
    ),
    Invariant(
        "one_leader_in_a_term",
        "E-11; Raft thesis 3.4",
        lambda was, now: now.led_by[0] != was.led_by[0] or now.led_by == was.led_by,
        lambda was, now: f"term {now.term} has two leaders: {was.led_by[1]} and {now.led_by[1]}",
    ),
    Invariant(
        "leader_began_its_term",
        "S10 d; Raft thesis 3.6",
        lambda _, now: not now.leads or now.last_term == now.term,
        lambda _, now: f"the leader of term {now.term} has a log of term {now.last_term}",
    ),
    Invariant(
        "log_of_no_later_term",
        "S1; Raft thesis 3.5",
        lambda _, now: now.last_term <= now.term or now.is_rebuilding,
        lambda _, now: f"the newest entry is of term {now.last_term}, this node's is {now.term}",
    ),
)


def _may_count(now: Leading) -> bool:
    holders = sum(place.is_voter and place.matched >= now.commit for place in now.peers)
    return holders + 1 >= now.majority


def _is_possible(now: Leading, place: PeerPlace) -> bool:
    return place.acked < place.next <= now.last + 1 and place.matched <= now.last


LEADING: Final[tuple[Invariant[Leading], ...]] = (
    Invariant(
        "leader_only_appends",
        "E-1; Raft thesis 3.5",
        lambda was, now: (
            not (was.leads and now.leads and now.term == was.term) or now.last >= was.last
        ),
        lambda was, now: f"the log of the leader of {now.term} fell from {was.last} to {now.last}",
    ),
    Invariant(
        "lease_of_this_leader",
        "S10 c; Raft thesis 6.4",
        lambda _, now: not now.lease_term or (now.leads and now.lease_term == now.term),
        lambda _, now: (
            f"there is a lease of term {now.lease_term} in term {now.term}, in which this node "
            f"{'leads' if now.leads else 'does not lead'}"
        ),
    ),
    Invariant(
        "serves_after_its_own_entry",
        "S10 d; Raft thesis 6.4",
        lambda _, now: (
            not now.ready_term
            or (now.leads and now.ready_term == now.term and now.evolved >= now.no_op)
        ),
        lambda _, now: (
            f"this node serves term {now.ready_term} in term {now.term}, whose first entry is "
            f"{now.no_op}, and the state says {now.evolved}"
        ),
    ),
    Invariant(
        "ledger_never_below_zero",
        "S5, S20",
        lambda _, now: now.stamped_bytes >= 0,
        lambda _, now: f"own proposals in the log have {now.stamped_bytes} bytes",
    ),
    Invariant(
        "commit_of_its_own_term",
        "E-12; Raft thesis 3.6",
        lambda _, now: not now.leads or now.commit < now.no_op or now.commit_term == now.term,
        lambda _, now: (
            f"the leader of term {now.term} committed entry {now.commit} of {now.commit_term}"
        ),
    ),
    Invariant(
        "commit_by_a_majority",
        "E-12, S19; Raft thesis 3.5",
        lambda was, now: now.commit in {was.commit, 0} or now.commit < now.no_op or _may_count(now),
        lambda _, now: (
            f"entry {now.commit} was committed, but of {now.majority} nodes that it takes too few "
            f"hold it besides this one: {[(each.peer, each.matched) for each in now.peers]}"
        ),
    ),
    Invariant(
        "peer_within_the_log",
        "E-1; Raft thesis 3.5",
        lambda _, now: all(_is_possible(now, each) for each in now.peers),
        lambda _, now: (
            f"the log ends with {now.last}, and a peer cannot be where this leader believes it: "
            f"{[each for each in now.peers if not _is_possible(now, each)]}"
        ),
    ),
    Invariant(
        "rebuilding_disk_counts_nothing",
        "S19",
        lambda _, now: not any(each.is_new and each.matched for each in now.peers),
        lambda _, now: (
            "an acknowledgement of a disk that rebuilds is counted: "
            f"{[each for each in now.peers if each.is_new and each.matched]}"
        ),
    ),
    Invariant(
        "learner_counts_nothing",
        "S25 c",
        lambda _, now: all(each.is_voter or not each.matched for each in now.peers),
        lambda _, now: (
            "an acknowledgement of a learner is counted: "
            f"{[each for each in now.peers if each.matched and not each.is_voter]}"
        ),
    ),
    Invariant(
        "one_change_at_a_time",
        "S25 b; Raft thesis 4.1",
        lambda _, now: now.open_changes <= 1,
        lambda _, now: f"{now.open_changes} changes of nodes are open in term {now.term}",
    ),
)

NAMES: Final = (
    *(each.name for each in POSITIONS),
    *(each.name for each in CLOCK),
    *(each.name for each in STANDING),
    *(each.name for each in LEADING),
)
