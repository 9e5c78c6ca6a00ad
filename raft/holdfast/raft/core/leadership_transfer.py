"""S10 d: handing the leadership over. First the proposals stop, then the lease of the term ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.raft.core.context import Context
    from holdfast.raft.core.lease import Lease
    from holdfast.raft.core.proposals import Proposals


class LeadershipTransfer:
    """Tick thread, except `ask`."""

    def __init__(self, ctx: Context, lease: Lease, proposals: Proposals) -> None:
        """Start without a transfer."""
        self._ctx, self._lease, self._proposals = ctx, lease, proposals
        self._asked: str | None = None
        self._closed_at = 0.0

    def ask(self, to: str) -> None:
        """Ask for a transfer to the peer `to`; it begins with the next tick. Any thread."""
        self._asked = to

    @property
    def is_open(self) -> bool:
        """Whether a tick has anything to do."""
        return self._asked is not None or self._proposals.closed_term != 0

    def tick(self) -> None:
        """Close, wait until the target has everything, give up the lease, then say TimeoutNow.

        A transfer that comes to nothing opens the proposals again after an election maximum; the
        lease of the term stays given up, because the target's candidacy may still be under way.
        """
        ctx, state, proposals = self._ctx, self._ctx.state, self._proposals
        over = ctx.now() > self._closed_at + ctx.settings.election_max
        if proposals.closed_term and (proposals.closed_term != state.term or over):
            proposals.closed_term, self._asked = 0, None
        to = self._asked
        if to is None:
            return
        if not state.is_leader or to not in state.voters.others:
            self._asked = None
            return
        if proposals.closed_term != state.term:
            proposals.closed_term, self._closed_at = state.term, ctx.now()
        if state.matched(to) == ctx.log.last_index:
            self._asked = None
            self._lease.give_up(state.term)
            state.send_timeout_now(to)
