"""Whether a node's disk is one of this cluster, or has founded another one (S25 f).

A disk that was started alone with --bootstrap has a log of its own. Its entries have the numbers
and terms that this cluster's have, so it would be taken for a copy that is up to date, or for a
candidate that knows more. So each node that is no voter says, on each new connection, which disks
formed its cluster together with it. A new or rebuilt disk formed none. Knows no log and no leader.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

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
    "Neither hears the other. If one of the two is to join the other's cluster, stop it, keep its "
    "data directory elsewhere if anything in it is wanted, and start it with an empty one and "
    "without --bootstrap"
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

    def connection_began(self, peer: str) -> None:
        """Forget what an earlier process told, which may have had another disk, and ask."""
        self._own.discard(peer)
        self._foreign.discard(peer)
        self._ask_at.pop(peer, None)
        self.trusts(peer)

    def hears(self, peer: str, message: Message) -> bool:
        """Return whether a message is to be handled: from a disk of this cluster, or its proof."""
        return isinstance(message, Hello) or self.trusts(peer)

    def trusts(self, peer: str) -> bool:
        """Return whether the log may go to this peer and its word counts; ask it if that is open.

        A voter need not prove anything: what it is, was found out before it became one.
        """
        if not self._ctx.on(Switch.S25_FOREIGN):
            return True
        if peer in self._foreign:
            return False
        if peer in self._own or not self._has_to_prove(peer):
            return True
        self._ask(peer)
        return False

    def is_foreign(self, peer: str) -> bool:
        """Return whether this peer's disk is known to have founded another cluster."""
        return peer in self._foreign

    def _has_to_prove(self, peer: str) -> bool:
        """Return whether this node can tell who is of its cluster, and `peer` is not known to be.

        A new disk knows neither the founders nor, until it has an entry of membership, the nodes.
        Whoever is removed was a node, and has its word until the removal is committed (S25 e).
        """
        can_tell = self._in_force.index > 0 or bool(self._identity.formed)
        now = self._in_force.now
        return can_tell and peer not in self._in_force.voters.all and peer not in now.removed

    def _ask(self, peer: str) -> None:
        """Say hello, at most once per heartbeat period: the answer may be lost."""
        now = self._ctx.now()
        if now >= self._ask_at.get(peer, now):
            self._ask_at[peer] = now + self._ctx.settings.heartbeat
            self._forming.ask_one(peer)

    def on_hello(self, peer: str, hello: Hello) -> None:
        """Judge the disk by those that formed its cluster; one that still forms tells nothing."""
        is_ours = hello.cluster_id == self._ctx.cluster_id
        if not is_ours or hello.stage == "forming" or not self._ctx.on(Switch.S25_FOREIGN):
            return
        if not hello.formed or not self._formed_elsewhere(peer, hello.formed):
            self._own.add(peer)
            return
        if peer not in self._foreign:
            logger.error(_TOLD, peer, self._ctx.node_id, self._ctx.cluster_id)
        self._own.discard(peer)
        self._foreign.add(peer)

    def _formed_elsewhere(self, peer: str, theirs: tuple[Formed, ...]) -> bool:
        """Return whether a disk that has founded a cluster has not founded this one.

        Two founders of one cluster know each other's disks. And a founder of a cluster that has
        changed its nodes is a voter of it until it is removed.
        """
        own = self._identity.formed
        if own and not any(own.get(each.node) == each.incarnation for each in theirs):
            return True
        return self._in_force.index > 0 and self._has_to_prove(peer)
