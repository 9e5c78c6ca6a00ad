"""Whether a node's disk is one of this cluster, or is of another founding (S25 f).

A disk that was started with --bootstrap apart from the others has a log of its own. Its entries
have the numbers and terms that this cluster's have, so it would be taken for a copy that is up to
date, or for a candidate that knows more. So each node says first on each new connection, voter or
not, which disks founded its cluster (ADR 47). A new disk knows none. Knows no leader.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from holdfast.raft.api import FoundedApart
from holdfast.raft.core.context import Switch
from holdfast.raft.messages import Hello

if TYPE_CHECKING:
    from holdfast.raft.core.context import Context
    from holdfast.raft.core.membership.in_force import MembershipInForce
    from holdfast.raft.core.membership.node_identity import NodeIdentity
    from holdfast.raft.core.membership.rebuild import Forming
    from holdfast.raft.messages import Formed, Message

logger = logging.getLogger(__name__)

_TOLD: Final = (
    "node %r and this node, %r, are of two clusters, although both are called %r: the disk of one "
    "of them was started with --bootstrap apart from the other, so each has a log of its own. "
    "Neither hears the other. If one of the two is to be in the other's cluster, stop it, keep its "
    "data directory elsewhere if anything in it is wanted, and start it with the directory that it "
    "had in that cluster, or else with an empty one, with --rebuild and without --bootstrap"
)
_APART: Final = (
    "this node, {own!r}, has formed cluster {cluster!r} alone, as its file names no other one, and "
    "node {peer!r} is a member of a cluster of the same name that knows nothing of this disk. This "
    "one would go on serving beside it what that one has never had. If this node is one of that "
    "cluster, and its disk was replaced: keep the data directory elsewhere if anything in it is "
    "wanted, name the other nodes under [cluster.peers], and start it with --rebuild on an empty "
    "directory, without --bootstrap. If the two have nothing to do with each other, stop {peer!r}, "
    "and give one of them another cluster id"
)
_RESTORED: Final = (
    "this node, {own!r}, has formed cluster {cluster!r} alone, as its file names no other one, and "
    "node {peer!r} is of a cluster of the same name that was restored from a backup since. This "
    "one would go on serving beside it what that one has never had. If this node is to be in that "
    "cluster: keep the data directory elsewhere if anything in it is wanted, name the other nodes "
    "under [cluster.peers], and start it with --rebuild on an empty directory, without --bootstrap"
)


class ForeignDisks:
    """What the peers have told of their disks on their present connections. Tick thread only."""

    def __init__(
        self, ctx: Context, identity: NodeIdentity, in_force: MembershipInForce, forming: Forming
    ) -> None:
        """Start without a connection. `forming` asks."""
        self._ctx, self._identity, self._in_force = ctx, identity, in_force
        self._forming = forming
        self._own: set[str] = set()
        """The peers whose disks are of this cluster."""
        self._foreign: set[str] = set()
        self._ask_at: dict[str, float] = {}
        """When a peer may be asked again: boot clock, seconds."""
        self._founding: dict[str, dict[str, str]] = {}
        """What members have said on their present connections of who founded their cluster."""
        self._apart = ""
        """Why this node has to stop: it formed alone beside a cluster of its name."""
        self.later = ""
        """A peer of a later restore than this disk, with which there is no connection (S13)."""

    @property
    def founders(self) -> tuple[tuple[str, str], ...]:
        """The disks that formed this cluster, as the log or else this disk says; () if unknown."""
        return tuple(sorted(self._in_force.founders(self._identity.formed).items()))

    def tick(self) -> None:
        """Ask the nodes that owe a proof before they have anything to say that counts.

        Raises FoundedApart if this node formed alone beside a cluster of its name.
        """
        if self.later and self._is_alone:
            own, cluster = self._ctx.node_id, self._ctx.cluster_id
            raise FoundedApart(_RESTORED.format(own=own, cluster=cluster, peer=self.later))
        if self._apart:
            raise FoundedApart(self._apart)
        for peer in filter(self._ctx.state.is_connected, self._ctx.state.peers):
            self.trusts(peer)

    def connection_began(self, peer: str) -> None:
        """Forget what an earlier process told, which may have had another disk, and say hello.

        It is the first message of a connection, so what this node says next is heard at once: the
        peer judges it by this, and waits for no answer.
        """
        self._own.discard(peer)
        self._foreign.discard(peer)
        self._ask_at.pop(peer, None)
        self._founding.pop(peer, None)
        if self._ctx.on(Switch.S25_FOREIGN):
            self._ask(peer)

    def hears(self, peer: str, message: Message) -> bool:
        """Return whether a message is to be handled: from a disk of this cluster, or its proof."""
        return isinstance(message, Hello) or self.trusts(peer)

    def trusts(self, peer: str) -> bool:
        """Return whether the log may go to this peer and its word counts; ask it if that is open.

        A disk that rebuilds asks nobody: it has no vote, and is on its way through a log that may
        tell of other founders further on (ADR 43).
        """
        if not self._ctx.on(Switch.S25_FOREIGN) or not self._identity.is_member:
            return True
        if peer in self._foreign:
            return False
        if peer in self._own:
            return True
        if self._has_to_prove(peer):
            self._ask(peer)
            return False
        if self._is_voter(peer):
            self._own.add(peer)  # on this connection: the first change of nodes waits for no answer
        return True

    def has_told(self, leader: str) -> bool:
        """Return whether a leader has said hello on its present connection; ask it if not."""
        if leader in self._founding or not self._ctx.on(Switch.S25_FOREIGN):
            return True
        self._ask(leader)
        return False

    def founders_from(self, leader: str) -> dict[str, str] | None:
        """Return the founders that a disk takes over from the leader that admits it (S19).

        None: it has formed a cluster itself, the log says it (ADR 43), or the leader did not.
        """
        if self._identity.formed or self._in_force.now.founders:
            return None
        return self._founding.get(leader)

    def is_foreign(self, peer: str) -> bool:
        """Return whether this peer's disk is known to be of another founding."""
        return peer in self._foreign

    def _has_to_prove(self, peer: str) -> bool:
        """Return whether this node can tell who is of its cluster, and `peer` is not known to be.

        A new disk knows neither the founders nor, until it has an entry of membership, the nodes.
        Whoever is removed was a node, and has its word until the removal is committed (S25 e). What
        a voter is, was found out before it became one, but its disk may be another one by now: of
        an earlier bootstrap under the same id, or of one by itself (ADR 47).
        """
        if peer in self._in_force.now.removed:
            return False
        return bool(self.founders) or (self._in_force.index > 0 and not self._is_voter(peer))

    def _is_voter(self, peer: str) -> bool:
        return peer in self._in_force.voters.all

    def _ask(self, peer: str) -> None:
        """Say hello, at most once per heartbeat period: the answer may be lost."""
        now = self._ctx.now()
        if now >= self._ask_at.get(peer, now):
            self._ask_at[peer] = now + self._ctx.settings.heartbeat
            self._forming.ask_one(peer)

    def on_hello(self, peer: str, hello: Hello) -> None:
        """Judge the disk by those that founded its cluster; one that still forms tells nothing."""
        is_ours = hello.cluster_id == self._ctx.cluster_id
        if not is_ours or hello.stage == "forming" or not self._ctx.on(Switch.S25_FOREIGN):
            return
        self._founding[peer] = dict(hello.formed)
        if not self._identity.is_member:
            return
        self._look_beside(peer, hello)
        if not hello.formed or not self._formed_elsewhere(peer, hello.formed):
            self._own.add(peer)
            return
        if peer not in self._foreign:
            logger.error(_TOLD, peer, self._ctx.node_id, self._ctx.cluster_id)
        self._own.discard(peer)
        self._foreign.add(peer)

    def _formed_elsewhere(self, peer: str, theirs: tuple[Formed, ...]) -> bool:
        """Return whether a disk that names founders names none of this cluster.

        Two founders of one cluster know each other's disks, and the log tells all others. A node
        that knows no founders can tell by the log alone: a founder of a cluster that has changed
        its nodes is a voter of it until it is removed. Who came later may be newer than this log.
        """
        ours = dict(self.founders)
        if ours:
            return not any(ours.get(each.node) == each.incarnation for each in theirs)
        has_founded = any(each.node == peer for each in theirs)
        return has_founded and self._has_to_prove(peer)

    def _look_beside(self, peer: str, hello: Hello) -> None:
        """Note that this node has to stop: alone, it is told of a cluster that it is no part of.

        By a member whose disk some leader has admitted, though none did here; or by a founder that
        knows another disk of this node. One that has founded apart by mistake is neither.
        """
        own, formed = self._ctx.node_id, self._identity.formed
        theirs = dict(hello.formed)
        is_beside = not theirs or theirs.get(own, formed.get(own)) != formed.get(own)
        if self._is_alone and hello.stage == "member" and is_beside:
            cluster = self._ctx.cluster_id
            self._apart = _APART.format(own=own, cluster=cluster, peer=peer)

    @property
    def _is_alone(self) -> bool:
        """Return whether this node formed its cluster alone, and has never had another node."""
        own, now = self._ctx.node_id, self._in_force
        return set(self._identity.formed) == {own} and now.index == 0 and now.now.names == (own,)
