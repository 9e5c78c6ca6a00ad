"""What the concerns know of the engine under them, and what they may ask it to do.

The engine keeps role, term, timer and indexes, grants votes and counts commits. Which engine that
is, nothing in this room says: `pysyncobj.engine_state` is the one there is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from holdfast.raft.messages import RequestVote


class RaftState(Protocol):
    """The engine's state under readable names. Tick thread only, unless said otherwise."""

    node_id: str
    peers: tuple[str, ...]
    election_deadline: float
    """When a follower that hears nothing asks for votes."""
    commit_index: int
    """The last entry known to be committed."""
    handed_index: int
    """The last entry handed over to the consumer."""
    heartbeat_at: float
    """When the leader sends next."""

    @property
    def majority(self) -> int:
        """The smallest number of nodes that is more than half of the cluster."""

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
        """Whether an election makes sense: some peer is connected, or there is none at all."""

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
