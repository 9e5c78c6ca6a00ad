"""S19, empty is not new: how a cluster forms once, and how a node with a new disk earns its vote.

Follower's side: `Forming` and `Rebuild`. Leader's side: `RebuildingDisks`, which replicates to a
disk that rebuilds and counts nothing of it until the barrier is committed by the others. No side:
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from holdfast.raft.core.context import Switch
from holdfast.raft.core.log import NO_OP
from holdfast.raft.messages import Formed, Hello

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.raft.core.context import Context
    from holdfast.raft.core.elections import Elections
    from holdfast.raft.core.membership.in_force import MembershipInForce
    from holdfast.raft.core.membership.node_identity import NodeIdentity
    from holdfast.raft.messages import Ack, Append


logger = logging.getLogger(__name__)

PATIENCE: Final = 10
"""After so many election maxima without a leader the peers are asked: an election takes a few."""
AGAIN_SECONDS: Final = 60.0
"""How often it is told while it lasts."""
_NOBODY: Final = (
    "no leader can be elected, and nothing is served: %s rebuild, because their data directories "
    "were empty, damaged or older copies, and a node that rebuilds has no vote until a leader has "
    "sent it everything. It takes the votes of %d of %d nodes, and %s vote. So it stays until the "
    "data that they had before is back on at least %d of those that rebuild: stop such a node, "
    "mount the right disk or put the moved data directory in its place, and start it. If that data "
    "is gone, what the cluster held is lost: keep the directories, and begin a new, empty cluster "
    "with --bootstrap on empty ones. See docs/operations/local-clusters.md"
)

_UNSENT: Final = (
    "this node has a new disk, and no leader has sent it anything yet. If the node is new to the "
    "cluster, have the cluster take it in: `holdfast node add %s` with its addresses. Else see "
    "that the other nodes run, that one of them leads, and that they reach this node's peer address"
)


class Forming:
    """The first start of a cluster: every node waits until every peer knows its disk.

    A node becomes a member only when each peer's newest word lists its incarnation. A member's
    list never changes, so a disk that is replaced later is in nobody's list, whatever `--bootstrap`
    it was started with, and must rebuild. The peers are the nodes that its file names: another node
    of the cluster may connect (ADR 41), and neither stands in for a peer nor is waited for.
    """

    def __init__(self, ctx: Context, identity: NodeIdentity, in_force: MembershipInForce) -> None:
        """Start without knowing any peer's disk. `in_force`: may tell who founded the cluster."""
        self._ctx, self._identity, self._in_force = ctx, identity, in_force
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
        self.ask()

    def ask(self) -> None:
        """Say hello to all peers: each answers with its stage, whatever this node's is."""
        for peer in self._ctx.state.peers:
            self.ask_one(peer)

    def ask_one(self, peer: str) -> None:
        """Say hello to a peer, which answers with its stage and with who formed with it."""
        self._ctx.ready.send.append((peer, self._hello(answer=False)))

    def _hello(self, *, answer: bool) -> Hello:
        formed = tuple(Formed(*item) for item in sorted(self._known_disks().items()))
        identity, ctx = self._identity, self._ctx
        return Hello(ctx.cluster_id, identity.stage, identity.incarnation, answer, formed)

    def _known_disks(self) -> Mapping[str, str]:
        """Return the disks that form the cluster with this one, or those that founded it.

        A disk that came later knows the founders from the log alone, and it has to tell them: of
        whom nothing is known, everybody hears (ADR 47). One that rebuilds tells nothing of its log,
        which may say something else further on (ADR 43).
        """
        if self._identity.is_member:
            return self._in_force.founders(self._identity.formed)
        return self._met if self._identity.stage == "forming" else self._identity.formed

    def on_hello(self, peer: str, hello: Hello) -> None:
        """Note a peer's disk; a hello from another cluster is ignored."""
        if hello.cluster_id != self._ctx.cluster_id:
            return
        if self._identity.stage == "forming":
            self._meet(peer, hello)
        if not hello.answer:
            self._ctx.ready.send.append((peer, self._hello(answer=True)))

    def _meet(self, peer: str, hello: Hello) -> None:
        """Go on as this word of a node allows.

        That a cluster is there counts from anybody, since whoever is in its log may be in no file.
        """
        mine = dict(hello.formed).get(self._ctx.node_id) == self._identity.incarnation
        if hello.stage == "member" and not mine:
            logger.warning(
                "the cluster, of which %s is a member, does not know this node's disk: it "
                "rebuilds, without a vote",
                peer,
            )
            self._identity.enter("rebuilding")
            return
        if peer not in self._ctx.state.peers:
            return
        if hello.stage != "rebuilding":
            self._met[peer] = hello.incarnation
        (self._listed_by.add if mine else self._listed_by.discard)(peer)
        if all(each in self._met and each in self._listed_by for each in self._ctx.state.peers):
            self._become_member()

    def _become_member(self) -> None:
        own = {self._ctx.node_id: self._identity.incarnation}
        self._identity.enter("member", formed=self._met | own)


class LeadersWord(Protocol):
    """What a leader has told on its present connection of its disk."""

    def has_told(self, leader: str) -> bool:
        """Return whether it has told anything; ask it if not."""

    def founders_from(self, leader: str) -> dict[str, str] | None:
        """Return the founders that a disk takes over from it; None: none."""


class Rebuild:
    """The end of a rebuild, on the node that rebuilds."""

    def __init__(self, ctx: Context, identity: NodeIdentity, word: LeadersWord) -> None:
        """Wait for the leader's admission."""
        self._ctx, self._identity, self._word = ctx, identity, word

    def on_append(self, peer: str, append: Append) -> None:
        """Become a member when the leader admits this disk, with the vote of this term given to it.

        An earlier vote of this term may be forgotten, so no other candidate may get one. A vote
        that is still known (a suspected disk keeps its journal, S21) stays as it is. A disk that
        founded nothing is from now on of the founding that the leader names (ADR 47), and nobody
        could tell it later: so it waits until the leader has, which goes on admitting it.
        """
        state, log = self._ctx.state, self._ctx.log
        admitted = append.admit == self._identity.incarnation and append.term == state.term
        waits = admitted and self._identity.stage == "rebuilding"
        if waits and self._word.has_told(peer):
            state.set_term(append.term, log.vote or peer)
            self._identity.enter("member", formed=self._word.founders_from(peer))
            logger.warning(
                "rebuilt from the peers: this node votes again, from term %d", state.term
            )


@dataclass(slots=True)
class _RebuildingDisk:
    """A disk that does not count yet."""

    incarnation: str
    barrier: int
    """The index of the entry that ends its rebuild."""
    acked: int = 0


class RebuildingDisks:
    """The leader's side. Forgotten with the term: the next leader sets its own barriers."""

    def __init__(self, ctx: Context) -> None:
        """Count every disk until it says that it rebuilds."""
        self._ctx = ctx
        self._disks: dict[str, _RebuildingDisk] = {}
        self._known: dict[str, str] = {}

    def clear(self) -> None:
        """Forget everything, because the term ended."""
        self._disks.clear()
        self._known.clear()

    def is_new(self, peer: str) -> bool:
        """Return whether this peer's disk is known and does not count."""
        return peer in self._disks

    def counts(self, peer: str, ack: Ack) -> bool:
        """Return whether an ack may be counted; note a disk that rebuilds."""
        if ack.stage != "member":
            self._note(peer, ack)
            return False
        disk = self._disks.get(peer)
        if disk is not None:
            if disk.incarnation != ack.incarnation:
                return False
            del self._disks[peer]
        return self._known.setdefault(peer, ack.incarnation) == ack.incarnation

    def _note(self, peer: str, ack: Ack) -> None:
        """Note a disk that rebuilds.

        A new disk voids earlier acks, and its barrier comes after (S19).
        """
        disk = self._disks.get(peer)
        if disk is None or disk.incarnation != ack.incarnation:
            barrier = self._ctx.log.append(NO_OP, self._ctx.state.term)
            disk = self._disks[peer] = _RebuildingDisk(ack.incarnation, barrier)
            self._known[peer] = ack.incarnation
            if self._ctx.on(Switch.S19_RESET):
                self._ctx.state.set_matched(peer, 0)
        if ack.success:
            disk.acked = max(disk.acked, ack.next_index - 1)

    def admission(self, peer: str) -> str:
        """Return the incarnation to admit: it holds its barrier, which is committed. "" if none."""
        disk = self._disks.get(peer)
        if disk is None:
            return ""
        commit = self._ctx.state.commit_index
        if not self._ctx.on(Switch.S19_BARRIER):
            return disk.incarnation if disk.acked >= commit else ""
        return disk.incarnation if disk.barrier <= min(disk.acked, commit) else ""


class Leaderless:
    """Says in the log why no leader can be elected, if a majority of the nodes rebuild.

    None of them has a vote, so each would wait for a leader in silence; and so would a node that
    rebuilds alone, as one that nobody has added. Changes nothing: it asks the peers for their
    stages when no leader was heard for long, and tells.
    """

    def __init__(
        self, ctx: Context, identity: NodeIdentity, elections: Elections, forming: Forming
    ) -> None:
        """Start without knowing any peer's stage."""
        self._ctx, self._identity = ctx, identity
        self._elections, self._forming = elections, forming
        self._patience = PATIENCE * ctx.settings.election_max
        self._led_at = ctx.now()
        """When this node began, or led last."""
        self._ask_at = self._tell_at = 0.0
        self._rebuilding: set[str] = set()
        """The peers whose last word, since a leader was heard, was that they rebuild."""
        self._told: list[str] = []

    def on_hello(self, peer: str, hello: Hello) -> None:
        """Note whether a peer rebuilds."""
        if hello.cluster_id == self._ctx.cluster_id:
            rebuilds = hello.stage == "rebuilding"
            (self._rebuilding.add if rebuilds else self._rebuilding.discard)(peer)

    def tick(self) -> None:
        """Ask and tell, if there has been no leader for long."""
        now = self._ctx.now()
        if self._ctx.state.is_leader:
            self._led_at = now
        if now - max(self._led_at, self._elections.heard_at) < self._patience:
            self._told, self._tell_at = [], 0.0
            self._rebuilding.clear()
            return
        if now >= self._ask_at:
            self._ask_at = now + self._ctx.settings.election_max
            self._forming.ask()
        self._tell(now)

    def _tell(self, now: float) -> None:
        """Tell it once, again when it lasts, and when it is another set of nodes."""
        state, own = self._ctx.state, self._identity.stage == "rebuilding"
        voters = state.voters
        known = self._rebuilding | ({state.node_id} if own else set())
        rebuilding = sorted(known & voters.all)
        others = [node for node in sorted(voters.all) if node not in rebuilding]
        lasts = rebuilding == self._told and now < self._tell_at
        if voters.have_majority(others):
            self._tell_unsent(now)
            return
        if lasts:
            return
        self._told, self._tell_at = rebuilding, now + AGAIN_SECONDS
        logger.error(
            _NOBODY,
            ", ".join(rebuilding),
            voters.majority,
            len(voters.all),
            f"only {', '.join(others)} may" if others else "none may",
            voters.majority - len(others),
        )

    def _tell_unsent(self, now: float) -> None:
        """Tell that this node waits alone, while the others may have a leader."""
        if self._identity.stage == "rebuilding" and now >= self._tell_at:
            self._told, self._tell_at = [], now + AGAIN_SECONDS
            logger.warning(_UNSENT, self._ctx.state.node_id)
