"""What every concern is given: this node's name, time, chance, the engine's state, log and `Ready`.

The engine keeps role, term, timer and indexes, grants votes and counts commits. Which engine that
is, nothing in this room says: `pysyncobj.engine_state` is the one there is.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from holdfast.raft.api import Settings
    from holdfast.raft.core.log import Log
    from holdfast.raft.core.membership.voters import Voters
    from holdfast.raft.core.ready import Ready
    from holdfast.raft.messages import RequestVote


class Switch(Enum):
    """One per defence, so that a test can take it out and show what it prevents.

    The value names the safety rule or the engine's defect (docs/rules). Only the test harness
    passes anything but ALL. A deviation that replaces a defect of the stock engine and has no
    switch here is shown on the stock engine itself.
    """

    ACK_AFTER_FLUSH = "D5: an ack, a vote or the own count leaves only after the flush"
    ACK_TERM = "E-12: an ack belongs to a term"
    ACK_NO_REWIND = "D1: an ack never moves the leader behind what it has sent"
    CUT_ON_CONFLICT = "D1: a follower cuts only what conflicts"
    VOTER_ONCE = "E-11: votes are counted by voter"
    PRE_VOTE = "E-13: nobody raises a term that it could not win"
    S1_DROP = "S1: the engine drops what was decided in another term"
    S1_SKIP = "S1: every replica skips what was decided in another term"
    S3_AGREE = "S3: a node whose state differs from the majority's stops"
    S4_ORDER = "S4: the leader role follows the own no-op"
    S4_BOUND = "S4: a full hand-over holds back delivery"
    S4_CUT = "S4: only what is evolved may be cut"
    S5_UNKNOWN = "S5: a step-down tells whose outcome is unknown"
    S7_CHUNKS = "S7: long entries travel in chunks"
    S10_STICKY = "S10 a: no real vote within the election minimum of hearing a leader"
    S10_SILENCE = "S10 b: no vote after a start, for as long as was promised"
    S10_PROMISE = "S10 b: the promise of an earlier start binds"
    S10_SENT = "S10 c: the lease runs from the send time"
    S10_REVOKE = "S10 c: the lease is revoked before a new term is stored"
    S10_TRANSFER = "S10 d: a transfer gives up the lease of its term for good"
    S10_TRANSFER_TERM = "S10 d: a transfer is valid from its own term to the next only"
    S10_TERM_NOTICE = "S10 e: a refused pre-vote tells the term"
    S19_REBUILD = "S19: an empty disk has no vote"
    S19_FORM = "S19: a bootstrapping node waits for every peer"
    S19_BARRIER = "S19: a rebuild ends behind an entry that a majority without it committed"
    S19_RESET = "S19: a new disk resets the leader's progress"
    S21_COMPARE = "S21: before it votes, a node compares its disk with what its peers remember"
    S21_TWICE = "S21: after a quiet time the newest transaction is not the only one with an ack"
    S25_ONE = "S25 b: one change of nodes at a time"
    S25_OWN_ENTRY = "S25 b: a change comes behind a committed entry of its own term"
    S25_CAUGHT_UP = "S25 c: a learner is promoted when it has caught up and is connected"
    S25_CONNECTED = "S25 c: a change leaves a connected majority"
    S25_HAND_OVER = "S25 d: a leader that is removed hands over first"
    S25_REMOVED = "S25 e: a removed node is not heard any more"
    S25_FOREIGN = "S25 f: a disk that has founded another cluster gets no log and is not heard"


ALL: frozenset[Switch] = frozenset(Switch)


class RaftState(Protocol):
    """The engine's state under readable names. Tick thread only, unless said otherwise."""

    node_id: str
    peers: tuple[str, ...]
    """The other nodes: what this one sends goes to them."""
    voters: Voters
    """Those whose votes and acknowledgements count."""
    election_deadline: float
    """When a follower that hears nothing asks for votes."""
    commit_index: int
    """The last entry known to be committed."""
    handed_index: int
    """The last entry handed over to the consumer."""
    heartbeat_at: float
    """When the leader sends next."""

    # -- role and term -------------------------------------------------------

    @property
    def term(self) -> int:
        """The current term."""

    @property
    def is_leader(self) -> bool:
        """Whether this node believes that it leads."""

    @property
    def is_candidate(self) -> bool:
        """Whether this node is asking for votes."""

    @property
    def leader(self) -> str | None:
        """The leader last heard of, by node id."""

    def set_term(self, term: int, voted_for: str | None) -> None:
        """Adopt a term and a vote; durable with the next flush."""

    def follow(self, leader: str | None) -> None:
        """Be a follower of `leader`, if known."""

    def adopt_term(self, term: int) -> None:
        """Adopt a higher term that a peer told, and step down."""

    def become_leader(self) -> None:
        """Take the lead: a majority voted for this node in this term."""

    # -- elections -----------------------------------------------------------

    def judge_vote(self, peer: str, request: RequestVote) -> None:
        """Adopt the candidate's term, and vote for it if the paper's rules allow that."""

    def take_over(self, peer: str, term: int) -> None:
        """Stand for election at once, because the leader of this term asked for it."""

    @property
    def transfer_pending(self) -> bool:
        """Whether a leader asked this node to take over and no campaign has begun."""

    def forget_transfer(self) -> None:
        """Drop the request to take over."""

    def send_timeout_now(self, peer: str) -> None:
        """Tell a peer that has the whole log to take over."""

    @property
    def has_company(self) -> bool:
        """Whether an election makes sense: another voter is connected, or there is none at all."""

    def is_connected(self, peer: str) -> bool:
        """Return whether messages to the peer pass, as far as the transport knows."""

    # -- indexes and proposals -----------------------------------------------

    @property
    def own_no_op(self) -> int | None:
        """Index of the no-op of this node's last leadership."""

    def matched(self, peer: str) -> int:
        """Return the index that the commit rule counts for a peer."""

    def set_matched(self, peer: str, index: int) -> None:
        """Set the index that the commit rule counts for a peer."""

    def note_answer(self, peer: str, at: float) -> None:
        """Note for check-quorum that a peer answered at `at`, in seconds of the boot clock."""

    def waiting_at(self, index: int) -> list[tuple[int, object]]:
        """Take out what waits for the entry at this index: (term, proposal)."""

    def waiting_all(self) -> list[tuple[int, int, object]]:
        """Take out everything that waits: (index, term, proposal)."""


@dataclass(frozen=True, slots=True)
class Context:
    """Shared by all concerns."""

    node_id: str
    cluster_id: str
    settings: Settings
    switches: frozenset[Switch]
    now: Callable[[], float]
    """The boot clock (S10), in seconds; any thread may read it."""
    random: Random
    state: RaftState
    log: Log
    """Without its flush, which is `Completion`'s (E-5)."""
    ready: Ready

    def on(self, switch: Switch) -> bool:
        """Return whether a defence is in force; always true outside the test harness."""
        return switch in self.switches

    def election_timeout(self) -> float:
        """Draw a timeout between the election minimum and maximum, in seconds; 0 for a node alone.

        The timeout gives a leader time to be heard, and a node that is alone hears nobody.
        """
        if self.state.voters.is_alone:
            return 0.0
        return self.random.uniform(self.settings.election_min, self.settings.election_max)
