"""Changes of nodes, from the asking to their fate, and who is told of them (S25, docs/adr/0034).

The engine judges a change and makes its entry. Here its caller waits for its fate, an item of the
FIFO as that of a part. The engine's thread knows first which membership is in force; listeners hear
of it in the loop. Knows neither rules of changes nor groups.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from holdfast.coordinator.model.levels import NODE_CHANGES
from holdfast.raft.api import NotLeader
from holdfast.raft.membership import ChangeRefused

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.raft.api import ProposalId, RaftError, Refused
    from holdfast.raft.membership import Change, Membership
    from holdfast.runtime.ports import Engine


def why(refused: Refused) -> RaftError | ChangeRefused:
    """Return the error that the caller of a refused proposal gets: nothing was changed."""
    return ChangeRefused(refused.reason) if refused.by_rule else NotLeader(refused.leader)


class NodeChanges:
    """The changes under way of one node. In its loop, unless said otherwise."""

    def __init__(self, engine: Engine) -> None:
        """`start` begins to tell the listeners."""
        self._engine = engine
        self.waiting: dict[ProposalId, asyncio.Future[None]] = {}
        """The changes whose fate is not known, by proposal."""
        self.listeners: list[Callable[[Membership], None]] = []
        """Called when another membership comes into force, in this order; they must not block."""

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Have the listeners called in this loop. Before the engine ticks."""

        def tell(membership: Membership) -> None:
            """Pass on what the engine's thread tells."""
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._tell, membership)

        self._engine.on_membership(tell)

    def _tell(self, membership: Membership) -> None:
        for each in self.listeners:
            each(membership)

    async def propose(self, change: Change, term: int, level: int) -> None:
        """Return when the change is applied; `level`: the one in force. Raises ChangeRefused.

        Raises what `failed` is told, too, and what the engine raises.
        """
        if level < NODE_CHANGES:
            raise ChangeRefused(
                f"a change of nodes needs level {NODE_CHANGES}; the cluster is at level {level} "
                "until an operator ends its upgrade: `holdfast cluster upgrade finish`"
            )
        fate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting[self._engine.change(change, term)] = fate
        await fate

    def applied(self, proposal: ProposalId) -> None:
        """Tell the caller, if this proposal is a change, that it is committed and applied."""
        fate = self.waiting.pop(proposal, None)
        if fate is not None and not fate.done():
            fate.set_result(None)

    def failed(self, proposal: ProposalId, error: Exception) -> None:
        """Tell the caller, if this proposal is a change, why it has not seen it applied."""
        fate = self.waiting.pop(proposal, None)
        if fate is not None and not fate.done():
            fate.set_exception(error)
