"""What becomes of a node that was removed: nobody hears it, and it learns that it is out (S25 e).

It is sent no entry any more, so it cannot read in the log that it was removed; and its own
membership still has it, so it goes on asking for votes. Whoever knows better tells it instead of
listening. Only a removal that is committed is told: one that is not may yet be undone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.raft.api import NodeRemoved
from holdfast.raft.core.context import Switch
from holdfast.raft.messages import Hello, PreVote, Recall, Removed, RequestVote

if TYPE_CHECKING:
    from holdfast.raft.core.context import Context
    from holdfast.raft.core.membership.in_force import MembershipInForce
    from holdfast.raft.core.membership.node_identity import NodeIdentity
    from holdfast.raft.messages import Message


class Removals:
    """Tick thread only."""

    def __init__(self, ctx: Context, identity: NodeIdentity, in_force: MembershipInForce) -> None:
        """Judge by the membership in force."""
        self._ctx, self._identity, self._in_force = ctx, identity, in_force
        self._told = ""

    def hears(self, peer: str, message: Message) -> bool:
        """Return whether a message is to be handled: not one of a node that was removed.

        One whose removal is not committed is heard: it may yet lead, and undo it. So is a node that
        this one does not know: it may be a newer voter, even the leader, of whom nobody could tell
        this node yet (Raft thesis 4.1). A disk that rebuilds judges nobody: it is on its way
        through a log whose newest word it has not got yet, which may name that node again (ADR 43).
        Whoever asks by a `Hello` whose disk this is gets an answer, too: it believes no other word
        of a disk that it does not know, and so not its removal.
        """
        removed = peer in self._in_force.now.removed and self._ctx.on(Switch.S25_REMOVED)
        is_open = self._in_force.index > self._ctx.state.commit_index
        if not removed or is_open or not self._identity.is_member:
            return True
        if isinstance(message, PreVote | RequestVote | Hello | Recall):
            self._ctx.ready.send.append((peer, Removed(self._in_force.index)))
        return isinstance(message, Hello)

    def on_removed(self, peer: str, told: Removed) -> None:
        """Note that a node of the cluster says that this one is out; the next tick stops.

        Whoever knows of no later entry than this node has committed is behind it, and this node is
        in force by what is committed here: its name was free again after a recovery (ADR 43).
        """
        known = self._in_force.committed_index(self._ctx.state.commit_index)
        if peer in self._in_force.now.names and told.index > known:
            self._told = (
                f"this node was removed from the cluster, as {peer} says by entry {told.index} of "
                "the log. It takes part no more, and its name is never used again. If it is needed "
                "again, give it another name, an empty data directory, and add it as a new node; "
                "else remove its unit and its data"
            )

    def tick(self) -> None:
        """Raise NodeRemoved if this node was removed."""
        if self._told:
            raise NodeRemoved(self._told)
