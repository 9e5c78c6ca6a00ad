"""Elections: pre-vote, votes by voter, sticky refusals, the silence of a start (S10 a, b, e).

The stock engine keeps the timer, the campaign and the granting of a vote; this decides whether
each of them may happen now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.raft.core.switches import Switch
from holdfast.raft.messages import PreVote, PreVoteGranted, TermNotice

if TYPE_CHECKING:
    from holdfast.raft.core.context import Context
    from holdfast.raft.core.lease import Lease
    from holdfast.raft.core.lost_write_detection import Comparison, LostWriteDetection
    from holdfast.raft.core.node_identity import NodeIdentity
    from holdfast.raft.messages import RequestVote, TimeoutNow, VoteGranted

NEVER = float("-inf")


class Elections:
    """Tick thread only."""

    def __init__(
        self,
        ctx: Context,
        identity: NodeIdentity,
        lease: Lease,
        lost_writes: LostWriteDetection,
        comparison: Comparison,
    ) -> None:
        """Nobody was heard, nobody voted."""
        self._ctx, self._identity, self._lease = ctx, identity, lease
        self._lost_writes, self._comparison = lost_writes, comparison
        self.heard_at = NEVER
        self._voters: tuple[int, set[str]] = (0, set())
        self._pre_round = 0
        self._pre_voters: set[str] = set()
        self._pre_won = False
        self._transfer_term = 0

    # -- may we? -----------------------------------------------------------------

    @property
    def _is_voter(self) -> bool:
        """S19, S10 b, S21: whether this disk has a vote at all, the silence and the comparison."""
        return (
            self._identity.is_member and not self._identity.is_silent and self._comparison.is_done
        )

    def may_vote(self, request: RequestVote) -> bool:
        """S10 a, b: may a *real* vote be given? A refusal changes nothing, not even the term."""
        ctx, state = self._ctx, self._ctx.state
        if not self._is_voter:
            return False
        if not ctx.on(Switch.S10_STICKY):
            return True
        if request.transfer and request.transfer == request.term - 1:
            return True
        heard = self._lease.heard_at() if state.is_leader else self.heard_at
        return ctx.now() - heard >= ctx.settings.election_min

    def may_campaign(self) -> bool:
        """A node's own candidacy is a vote as well."""
        ctx, state = self._ctx, self._ctx.state
        if not self._is_voter:
            return False
        if not ctx.on(Switch.S10_STICKY):
            return True
        if state.transfer_pending:
            if self._transfer_term == state.term or not ctx.on(Switch.S10_TRANSFER_TERM):
                return True
            state.forget_transfer()
            return False
        return ctx.now() - self.heard_at >= ctx.settings.election_min

    def transfer_of(self, term: int) -> int:
        """Return the term whose leader handed over to this candidate of `term`, or 0."""
        valid = self._transfer_term == term - 1 or not self._ctx.on(Switch.S10_TRANSFER_TERM)
        return term - 1 if self._transfer_term and valid else 0

    # -- campaigning -----------------------------------------------------------------

    def tick(self) -> None:
        """Before the engine looks at its timer: turn a campaign into a pre-vote, or put it off."""
        ctx, state = self._ctx, self._ctx.state
        if state.is_leader or state.election_deadline >= ctx.now():
            return
        if not state.has_company or not self.may_campaign():
            self._put_off()
        elif (
            self._pre_won
            or not state.peers
            or state.transfer_pending
            or not ctx.on(Switch.PRE_VOTE)
        ):
            self._pre_won = False
        else:
            self._ask_pre_votes()

    def _put_off(self) -> None:
        """Try later; after the silence of a start, soon."""
        settings = self._ctx.settings
        self._pre_won = False
        if self._identity.is_silent:
            spread = settings.election_max - settings.election_min
            at = self._identity.silent_until + self._ctx.random.random() * spread
        else:
            at = self._ctx.now() + self._ctx.election_timeout()
        self._ctx.state.election_deadline = at

    def _ask_pre_votes(self) -> None:
        """E-13: ask first, so that a node that cannot win deposes nobody."""
        ctx, state, journal = self._ctx, self._ctx.state, self._ctx.journal
        state.election_deadline = ctx.now() + ctx.election_timeout()
        self._pre_round += 1
        self._pre_voters = {state.node_id}
        question = PreVote(self._pre_round, state.term + 1, journal.last_index, journal.last_term)
        for peer in state.peers:
            ctx.ready.send.append((peer, question))

    def heard_leader(self) -> None:
        """The leader of this term spoke: be patient again."""
        state = self._ctx.state
        self.heard_at = self._ctx.now()
        if not state.transfer_pending:
            state.election_deadline = self.heard_at + self._ctx.election_timeout()
            self._pre_won = False

    # -- messages ----------------------------------------------------------------------

    def on_pre_vote(self, peer: str, ask: PreVote) -> None:
        """Answer whether a campaign of `peer` would be right now."""
        ctx, state, journal = self._ctx, self._ctx.state, self._ctx.journal
        if not self._is_voter:
            return
        if ask.term <= state.term:
            if ctx.on(Switch.S10_TERM_NOTICE):
                ctx.ready.send.append((peer, TermNotice(state.term)))
            return
        fresh = (ask.last_term, ask.last_index) >= (journal.last_term, journal.last_index)
        quiet = ctx.now() - self.heard_at > ctx.settings.election_min
        if fresh and quiet and not state.is_leader:
            ctx.ready.send.append((peer, PreVoteGranted(ask.round, ask.term)))

    def on_pre_vote_granted(self, peer: str, grant: PreVoteGranted) -> None:
        """Campaign as soon as a majority would vote."""
        state = self._ctx.state
        if state.is_leader or (grant.round, grant.term) != (self._pre_round, state.term + 1):
            return
        self._pre_voters.add(peer)
        if len(self._pre_voters) >= state.majority:
            self._pre_won = True
            state.election_deadline = 0

    def on_term_notice(self, notice: TermNotice) -> None:
        """S10 e: adopt it, or the longer log with the lower term asks in vain for ever."""
        state = self._ctx.state
        if not state.is_leader and notice.term > state.term:
            state.adopt_term(notice.term)

    def on_request_vote(self, peer: str, request: RequestVote) -> None:
        """Refuse before the candidate's term is looked at; else the stock engine decides."""
        if self.may_vote(request):
            self._ctx.state.judge_vote(peer, request)

    def on_vote_granted(self, peer: str, vote: VoteGranted) -> None:
        """E-11: a voter counts once, however often its vote arrives."""
        state = self._ctx.state
        self._lost_writes.on_vote(peer, vote.term)
        if not state.is_candidate or vote.term != state.term:
            return
        if not self._ctx.on(Switch.VOTER_ONCE):
            peer = f"{peer}-{len(self._voters[1])}"
        if self._voters[0] != vote.term:
            self._voters = (vote.term, {state.node_id})
        self._voters[1].add(peer)
        if len(self._voters[1]) >= state.majority:
            state.become_leader()

    def on_timeout_now(self, peer: str, message: TimeoutNow) -> None:
        """S10 d: take over, if the leader of this very term says so."""
        state = self._ctx.state
        if not self._identity.is_member or message.term != state.term or state.leader != peer:
            return
        self._transfer_term = message.term
        state.take_over(peer, message.term)
