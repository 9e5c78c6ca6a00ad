"""PySyncObj's private state under readable names: with `overlay`, the only file that knows them.

Implements `core.context.RaftState`, which is all that the concerns see of it.

A separate object, not properties of the engine: `SyncObj.__init__` evaluates every attribute of
its class, and takes every attribute that is set later for replicated state.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import pysyncobj.syncobj
from pysyncobj.node import Node
from pysyncobj.syncobj import SyncObj

from holdfast.raft.core.membership.voters import Voters

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.raft.membership import Membership
    from holdfast.raft.messages import RequestVote

FOLLOWER, CANDIDATE, LEADER = 0, 1, 2


class Peer(Node):
    """A node whose place in the engine's sets does not depend on PYTHONHASHSEED."""

    def __init__(self, node_id: str) -> None:
        """Compute the hash once: the engine and the watch look peers up all the time."""
        super().__init__(node_id)
        self._hash = zlib.crc32(node_id.encode())

    def __hash__(self) -> int:
        """Hash the id alike in every process."""
        return self._hash

    def __eq__(self, other: object) -> bool:
        """Compare by id, as the engine does."""
        return isinstance(other, Node) and other.id == self.id


def use_clock(now: Callable[[], float]) -> None:
    """Set the clock that the engine reads: a module global, looked up at each call (S10)."""
    pysyncobj.syncobj.monotonicTime = now


class EngineState:
    """The state that the engine and the overlay share. Tick thread only, unless said otherwise."""

    def __init__(self, engine: SyncObj, node_id: str, membership: Membership) -> None:
        """Keep the engine, which may still be under construction; nothing is read yet."""
        self._engine = engine
        self.node_id = node_id
        self._nodes = {node_id: Peer(node_id)}
        self.begin_with(membership)

    def begin_with(self, membership: Membership) -> None:
        """Take the membership that the engine is made with."""
        self.peers = tuple(name for name in membership.names if name != self.node_id)
        self.voters = Voters.of(self.node_id, membership.voter_names)

    def adopt(self, membership: Membership, now: float) -> None:
        """Let the engine count the voters of another membership (S25 a).

        It counts itself, too: a leader that is no voter would count once too often. There is none
        (`invariants`). Of a new voter nothing is counted yet; check-quorum gives
        it time from `now` on. Nor is anything of one that is a voter no more: the engine forgets
        what it counted of voters only, when it begins to lead (S25 c).
        """
        before = self._engine._SyncObj__otherNodes
        self.begin_with(membership)
        self._engine._SyncObj__otherNodes = set(self.nodes)
        for node in self._engine._SyncObj__otherNodes ^ before:
            self._engine._SyncObj__raftMatchIndex[node] = 0
        for node in self._engine._SyncObj__otherNodes - before:
            self._engine._SyncObj__lastResponseTime[node] = now

    @property
    def nodes(self) -> list[Peer]:
        """The other voters as the engine's nodes."""
        return [self.node(peer) for peer in self.voters.others]

    @property
    def own_node(self) -> Peer:
        """This node as one of the engine's nodes."""
        return self._nodes[self.node_id]

    def node(self, peer: str) -> Peer:
        """Return the engine's node for a peer."""
        found = self._nodes.get(peer)
        if found is None:
            found = self._nodes[peer] = Peer(peer)
        return found

    # -- role and term -------------------------------------------------------

    @property
    def term(self) -> int:
        """The current term."""
        return self._engine._SyncObj__raftCurrentTerm

    @property
    def is_leader(self) -> bool:
        """Whether this node believes that it leads."""
        return self._engine._SyncObj__raftState == LEADER

    @property
    def is_candidate(self) -> bool:
        """Whether this node is asking for votes."""
        return self._engine._SyncObj__raftState == CANDIDATE

    @property
    def leader(self) -> str | None:
        """The leader last heard of, by node id."""
        node = self._engine._SyncObj__raftLeader
        return node.id if node is not None else None

    def set_term(self, term: int, voted_for: str | None) -> None:
        """Adopt a term and a vote; durable with the next flush."""
        self._engine._SyncObj__setCurrentTerm(term, voted_for)

    def follow(self, leader: str | None) -> None:
        """Be a follower of `leader`, if known."""
        self._engine._SyncObj__setState(FOLLOWER)
        self._engine._SyncObj__raftLeader = self.node(leader) if leader else None

    def adopt_term(self, term: int) -> None:
        """Adopt a higher term that a peer told, and step down."""
        self.set_term(term, None)
        self.follow(None)

    def become_leader(self) -> None:
        """Take the lead: a majority voted for this node in this term."""
        self._engine._SyncObj__onBecomeLeader()

    def _engine_message(self, peer: str, message: dict[str, object]) -> None:
        """Give a message to the stock handler, whose kept parts act on it."""
        SyncObj._SyncObj__onMessageReceived(self._engine, self.node(peer), message)

    # -- elections -----------------------------------------------------------

    def judge_vote(self, peer: str, request: RequestVote) -> None:
        """Adopt the candidate's term, and vote for it if the stock engine's rules allow that."""
        message: dict[str, object] = {
            "type": "request_vote",
            "term": request.term,
            "last_log_index": request.last_index,
            "last_log_term": request.last_term,
        }
        self._engine_message(peer, message)

    def take_over(self, peer: str, term: int) -> None:
        """Stand for election at once, because the leader of this term asked for it."""
        self._engine_message(peer, {"type": "timeout_now", "term": term})

    @property
    def election_deadline(self) -> float:
        """When a follower that hears nothing asks for votes."""
        return self._engine._SyncObj__raftElectionDeadline

    @election_deadline.setter
    def election_deadline(self, at: float) -> None:
        self._engine._SyncObj__raftElectionDeadline = at

    @property
    def transfer_pending(self) -> bool:
        """Whether a leader asked this node to take over and no campaign has begun."""
        return self._engine._SyncObj__transferInProgress

    def forget_transfer(self) -> None:
        """Drop the request to take over."""
        self._engine._SyncObj__transferInProgress = False

    def send_timeout_now(self, peer: str) -> None:
        """Tell a peer that has the whole log to take over."""
        self._engine.transferLeadership(self.node(peer))

    # -- indexes -------------------------------------------------------------

    @property
    def commit_index(self) -> int:
        """The last entry known to be committed."""
        return self._engine._SyncObj__raftCommitIndex

    @commit_index.setter
    def commit_index(self, index: int) -> None:
        self._engine._SyncObj__raftCommitIndex = index

    @property
    def handed_index(self) -> int:
        """The last entry handed over to the consumer; the engine calls it applied."""
        return self._engine._SyncObj__raftLastApplied

    @handed_index.setter
    def handed_index(self, index: int) -> None:
        self._engine._SyncObj__raftLastApplied = index

    @property
    def own_no_op(self) -> int | None:
        """Index of the no-op of this node's last leadership."""
        return self._engine._SyncObj__noopIDx

    def matched(self, peer: str) -> int:
        """Return the index that the commit rule counts for a peer."""
        return self._engine._SyncObj__raftMatchIndex.get(self.node(peer), 0)

    def set_matched(self, peer: str, index: int) -> None:
        """Set the index that the commit rule counts for a peer."""
        self._engine._SyncObj__raftMatchIndex[self.node(peer)] = index

    def note_answer(self, peer: str, at: float) -> None:
        """Note for check-quorum that a peer answered at `at`, in seconds of the boot clock."""
        self._engine._SyncObj__lastResponseTime[self.node(peer)] = at

    # -- links, heartbeats, queue --------------------------------------------

    def is_connected(self, peer: str) -> bool:
        """Return whether messages to the peer pass, as far as the transport knows."""
        return self.node(peer) in self._engine._SyncObj__connectedNodes

    @property
    def has_company(self) -> bool:
        """Whether an election makes sense: another voter is connected, or there is none at all."""
        return self.voters.is_alone or any(map(self.is_connected, self.voters.others))

    @property
    def heartbeat_at(self) -> float:
        """When the leader sends next."""
        return self._engine._SyncObj__newAppendEntriesTime

    @heartbeat_at.setter
    def heartbeat_at(self, at: float) -> None:
        self._engine._SyncObj__newAppendEntriesTime = at

    def waiting_at(self, index: int) -> list[tuple[int, object]]:
        """Take out what waits for the entry at this index: (term, proposal)."""
        return self._engine._SyncObj__commandsWaitingCommit.pop(index, [])

    def waiting_all(self) -> list[tuple[int, int, object]]:
        """Take out everything that waits: (index, term, proposal)."""
        waiting = self._engine._SyncObj__commandsWaitingCommit
        items = [(i, term, item) for i in sorted(waiting) for term, item in waiting[i]]
        waiting.clear()
        return items
