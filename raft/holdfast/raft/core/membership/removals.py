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
    from holdfast.raft.messages import Message


class Removals:
    """Tick thread only."""

    def __init__(self, ctx: Context, in_force: MembershipInForce) -> None:
        """Judge by the membership in force."""
        self._ctx, self._in_force = ctx, in_force
        self._told = ""

    def hears(self, peer: str, message: Message) -> bool:
        """Return whether a message is to be handled: not one of a node that was removed.

        One whose removal is not committed is heard: it may yet lead, and undo it. So is a node that
        this one does not know: it may be a newer voter, even the leader, of whom nobody could tell
        this node yet (Raft thesis 4.1).
        """
        removed = peer in self._in_force.now.removed and self._ctx.on(Switch.S25_REMOVED)
        if not removed or self._in_force.index > self._ctx.state.commit_index:
            return True
        if isinstance(message, PreVote | RequestVote | Hello | Recall):
            self._ctx.ready.send.append((peer, Removed(self._in_force.index)))
        return False

    def on_removed(self, peer: str, told: Removed) -> None:
        """Note that a node of the cluster says that this one is out; the next tick stops."""
        if peer in self._in_force.now.names:
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
