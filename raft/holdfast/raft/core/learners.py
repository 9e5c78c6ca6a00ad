"""S19, empty is not new: how a cluster forms once, and how a node with a new disk earns its vote.

Follower's side: `Forming` and `Rebuild`. Leader's side: `Learners`, which replicates to a
rebuilding disk and counts nothing of it until the barrier is committed by the others.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.raft.core.context import Switch
from holdfast.raft.core.log import NO_OP
from holdfast.raft.messages import Formed, Hello

if TYPE_CHECKING:
    from holdfast.raft.core.context import Context
    from holdfast.raft.core.node_identity import NodeIdentity
    from holdfast.raft.messages import Ack, Append


logger = logging.getLogger(__name__)


class Forming:
    """The first start of a cluster: every node waits until every peer knows its disk.

    A node becomes a member only when each peer's newest word lists its incarnation. A member's
    list never changes, so a disk that is replaced later is in nobody's list, whatever `--bootstrap`
    it was started with, and must rebuild.
    """

    def __init__(self, ctx: Context, identity: NodeIdentity) -> None:
        """Start without knowing any peer's disk."""
        self._ctx, self._identity = ctx, identity
        self._next_at = 0.0
        self._met: dict[str, str] = {}
        self._listed_by: set[str] = set()

    def tick(self) -> None:
        """Say hello once per heartbeat period, until formed."""
        if self._identity.stage != "forming" or self._ctx.now() < self._next_at:
            return
        self._next_at = self._ctx.now() + self._ctx.settings.heartbeat
        if not self._ctx.state.peers:
            self._become_member()
        for peer in self._ctx.state.peers:
            self._ctx.ready.send.append((peer, self._hello(answer=False)))

    def _hello(self, *, answer: bool) -> Hello:
        known = self._met if self._identity.stage == "forming" else self._identity.formed
        formed = tuple(Formed(*item) for item in sorted(known.items()))
        identity, ctx = self._identity, self._ctx
        return Hello(ctx.cluster_id, identity.stage, identity.incarnation, answer, formed)

    def on_hello(self, peer: str, hello: Hello) -> None:
        """Note a peer's disk; a hello from another cluster is ignored."""
        if hello.cluster_id != self._ctx.cluster_id:
            return
        if self._identity.stage == "forming":
            self._meet(peer, hello)
        if not hello.answer:
            self._ctx.ready.send.append((peer, self._hello(answer=True)))

    def _meet(self, peer: str, hello: Hello) -> None:
        mine = dict(hello.formed).get(self._ctx.node_id) == self._identity.incarnation
        if hello.stage == "member" and not mine:
            logger.warning(
                "the cluster does not know this node's disk: it rebuilds, without a vote"
            )
            self._identity.enter("rebuilding")
            return
        if hello.stage != "rebuilding":
            self._met[peer] = hello.incarnation
        (self._listed_by.add if mine else self._listed_by.discard)(peer)
        if len(self._listed_by) == len(self._met) == len(self._ctx.state.peers):
            self._become_member()

    def _become_member(self) -> None:
        own = {self._ctx.node_id: self._identity.incarnation}
        self._identity.enter("member", formed=self._met | own)


class Rebuild:
    """The end of a rebuild, on the node that rebuilds."""

    def __init__(self, ctx: Context, identity: NodeIdentity) -> None:
        """Wait for the leader's admission."""
        self._ctx, self._identity = ctx, identity

    def on_append(self, peer: str, append: Append) -> None:
        """Become a member when the leader admits this disk, with the vote of this term given to it.

        An earlier vote of this term may be forgotten, so no other candidate may get one. A vote
        that is still known (a suspected disk keeps its journal, S21) stays as it is.
        """
        state, log = self._ctx.state, self._ctx.log
        admitted = append.admit == self._identity.incarnation and append.term == state.term
        if admitted and self._identity.stage == "rebuilding":
            state.set_term(append.term, log.vote or peer)
            self._identity.enter("member")
            logger.warning(
                "rebuilt from the peers: this node votes again, from term %d", state.term
            )


@dataclass(slots=True)
class _Learner:
    """A disk that does not count yet."""

    incarnation: str
    barrier: int
    """The index of the entry that ends its rebuild."""
    acked: int = 0


class Learners:
    """The leader's side. Forgotten with the term: the next leader sets its own barriers."""

    def __init__(self, ctx: Context) -> None:
        """Count every disk until it says that it rebuilds."""
        self._ctx = ctx
        self._learners: dict[str, _Learner] = {}
        self._known: dict[str, str] = {}

    def clear(self) -> None:
        """Forget everything, because the term ended."""
        self._learners.clear()
        self._known.clear()

    def is_new(self, peer: str) -> bool:
        """Return whether this peer's disk is known and does not count."""
        return peer in self._learners

    def counts(self, peer: str, ack: Ack) -> bool:
        """Return whether an ack may be counted; note a disk that is no member as a newcomer."""
        if ack.stage != "member":
            self._note(peer, ack)
            return False
        newcomer = self._learners.get(peer)
        if newcomer is not None:
            if newcomer.incarnation != ack.incarnation:
                return False
            del self._learners[peer]
        return self._known.setdefault(peer, ack.incarnation) == ack.incarnation

    def _note(self, peer: str, ack: Ack) -> None:
        """Note a newcomer's disk.

        A new disk voids earlier acks, and its barrier comes after (S19).
        """
        newcomer = self._learners.get(peer)
        if newcomer is None or newcomer.incarnation != ack.incarnation:
            barrier = self._ctx.log.append(NO_OP, self._ctx.state.term)
            newcomer = self._learners[peer] = _Learner(ack.incarnation, barrier)
            self._known[peer] = ack.incarnation
            if self._ctx.on(Switch.S19_RESET):
                self._ctx.state.set_matched(peer, 0)
        if ack.success:
            newcomer.acked = max(newcomer.acked, ack.next_index - 1)

    def admission(self, peer: str) -> str:
        """Return the incarnation to admit: it holds its barrier, which is committed. "" if none."""
        newcomer = self._learners.get(peer)
        if newcomer is None:
            return ""
        commit = self._ctx.state.commit_index
        if not self._ctx.on(Switch.S19_BARRIER):
            return newcomer.incarnation if newcomer.acked >= commit else ""
        return newcomer.incarnation if newcomer.barrier <= min(newcomer.acked, commit) else ""
