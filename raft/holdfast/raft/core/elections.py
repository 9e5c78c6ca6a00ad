"""Elections: pre-vote, votes by voter, sticky refusals, the silence of a start (S10 a, b, e).

The stock engine keeps the timer, the campaign and the granting of a vote; this decides whether
each of them may happen now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.raft.core.context import Switch
from holdfast.raft.core.membership.voters import NEVER
from holdfast.raft.messages import PreVote, PreVoteGranted, TermNotice

if TYPE_CHECKING:
    from holdfast.raft.core.context import Context
    from holdfast.raft.core.lease import Lease
    from holdfast.raft.core.lost_write_detection import Comparison, LostWriteDetection
    from holdfast.raft.core.membership.node_identity import NodeIdentity
    from holdfast.raft.messages import RequestVote, TimeoutNow, VoteGranted

FIRST_TURN = 0.25
"""Of a heartbeat: how long the first node waits beyond the minimum when the leader's connection has
ended. Peers count the minimum from when they heard the leader themselves, which may be later."""

ATTEMPT_TURNS = 2
"""Heartbeats that an attempt may take before others doubt it: two syncs, and threads that are late.
"""


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
        """Start without a leader and without votes."""
        self._ctx, self._identity, self._lease = ctx, identity, lease
        self._lost_writes, self._comparison = lost_writes, comparison
        self.heard_at = NEVER
        self._votes: tuple[int, list[str]] = (0, [])
        """The term, and who has voted for this node in it."""
        self._pre_round = 0
        self._pre_voters: set[str] = set()
        self._pre_won = False
        self._asked_at = NEVER
        """When this node asked for the pre-votes that it counts; NEVER: it counts none."""
        self._put_by: dict[str, PreVote] = {}
        """The last question of each peer that could not be granted when it came: it may be soon."""
        self._transfer_term = 0
        self.may_stand_now = False
        """Whether this tick has found that this node may stand; the engine asks when its own timer
        fires. The engine reads the clock later, so the timer may fire for it and not for `tick`."""

    # -- may we? -----------------------------------------------------------------

    @property
    def _is_voter(self) -> bool:
        """Whether this disk has a vote (S19), and silence (S10 b) and comparison (S21) are over."""
        return (
            self._identity.is_member and not self._identity.is_silent and self._comparison.is_done
        )

    def may_vote(self, request: RequestVote) -> bool:
        """Return whether a *real* vote may be given (S10 a, b). A refusal changes nothing.

        Not even the term.
        """
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
        """Return whether this node may stand: its own candidacy is a vote as well.

        A learner may not. Asked by a candidate it votes, for it may be a voter in the membership of
        the candidate, which has entries that it lacks (S25 c; Raft thesis 4.1).
        """
        ctx, state = self._ctx, self._ctx.state
        if not self._is_voter or state.node_id not in state.voters.all:
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
        """Return the term whose leader handed over to this node, a candidate of `term`.

        0: none did.
        """
        valid = self._transfer_term == term - 1 or not self._ctx.on(Switch.S10_TRANSFER_TERM)
        return term - 1 if self._transfer_term and valid else 0

    # -- campaigning -----------------------------------------------------------------

    def tick(self) -> None:
        """Turn a due campaign into a pre-vote, or put it off, before the engine's timer fires."""
        ctx, state = self._ctx, self._ctx.state
        self.may_stand_now = False
        self._answer_again()
        if state.is_leader or state.election_deadline >= ctx.now():
            return
        if not state.has_company or not self.may_campaign():
            self._put_off()
        elif (
            self._pre_won
            or state.voters.is_alone
            or state.transfer_pending
            or not ctx.on(Switch.PRE_VOTE)
        ):
            self._pre_won = False
            self.may_stand_now = True
        else:
            self._ask_pre_votes()

    def _put_off(self) -> None:
        """Move the election deadline; in the silence of a start, to soon after its end."""
        settings = self._ctx.settings
        self._withdraw()
        if self._identity.is_silent:
            spread = settings.election_max - settings.election_min
            at = self._identity.silent_until + self._ctx.random.random() * spread
        else:
            at = self._ctx.now() + self._ctx.election_timeout()
        self._ctx.state.election_deadline = at

    def _ask_pre_votes(self) -> None:
        """Ask for pre-votes, so that a node that cannot win deposes no leader (E-13)."""
        ctx, state, log = self._ctx, self._ctx.state, self._ctx.log
        state.election_deadline = ctx.now() + ctx.election_timeout()
        self._asked_at = ctx.now()
        self._pre_round += 1
        self._pre_voters = {state.node_id}
        question = PreVote(self._pre_round, state.term + 1, log.last_index, log.last_term)
        for peer in state.voters.others:
            ctx.ready.send.append((peer, question))

    def heard_leader(self) -> None:
        """Restart the election timer, because the leader of this term was heard."""
        state = self._ctx.state
        self.heard_at = self._ctx.now()
        self._put_by.clear()
        if not state.transfer_pending:
            gone = state.leader is not None and not state.is_connected(state.leader)
            timeout = self._turn() if gone else self._ctx.election_timeout()
            state.election_deadline = self.heard_at + timeout
            self._withdraw()

    def connection_ended(self, peer: str) -> None:
        """Stand as early as the rules allow, if `peer` led: its process may have ended.

        Only a hint. Votes are refused within the election minimum as ever (S10 a), and a leader
        that lives is heard before, which starts the timer anew.
        """
        state = self._ctx.state
        if peer == state.leader and not state.transfer_pending:
            deadline = self.heard_at + self._turn()
            state.election_deadline = min(state.election_deadline, deadline)

    def connection_began(self, peer: str) -> None:
        """Take the hint back: the leader's process answers, so only its connections had ended."""
        state = self._ctx.state
        if peer == state.leader and not state.transfer_pending:
            deadline = self.heard_at + self._ctx.election_timeout()
            state.election_deadline = max(state.election_deadline, deadline)

    def _turn(self) -> float:
        """Return how long after the leader's last message this node stands, if it is thought dead.

        All its followers learn of it at once, so they take turns, in the order of their names, and
        split no votes. A turn is as long as a heartbeat's period: enough to be elected in.
        """
        state, settings = self._ctx.state, self._ctx.settings
        others = state.voters.others
        before = sum(peer < state.node_id for peer in others if peer != state.leader)
        timeout = settings.election_min + (before + FIRST_TURN) * settings.heartbeat
        return min(timeout, settings.election_max)

    # -- messages ----------------------------------------------------------------------

    def on_pre_vote(self, peer: str, ask: PreVote) -> None:
        """Grant a pre-vote if `peer` may campaign now; tell it the term if its own is old.

        Who grants one gives the peer the time to be elected, and does not stand meanwhile.
        """
        ctx, state, log = self._ctx, self._ctx.state, self._ctx.log
        if not self._is_voter:
            return
        if ask.term <= state.term:
            if ctx.on(Switch.S10_TERM_NOTICE):
                ctx.ready.send.append((peer, TermNotice(state.term)))
            return
        asked, own = (ask.last_term, ask.last_index), (log.last_term, log.last_index)
        if asked < own or state.is_leader:
            return
        if not self._is_quiet() or self._goes_first(peer, is_equal=asked == own):
            self._put_by[peer] = ask
            return
        self._withdraw()
        if not state.transfer_pending:
            wait = ATTEMPT_TURNS * ctx.settings.heartbeat
            state.election_deadline = max(state.election_deadline, ctx.now() + wait)
        ctx.ready.send.append((peer, PreVoteGranted(ask.round, ask.term)))

    def _is_quiet(self) -> bool:
        """Return whether no leader was heard within the election minimum."""
        return self._ctx.now() - self.heard_at > self._ctx.settings.election_min

    def _goes_first(self, peer: str, *, is_equal: bool) -> bool:
        """Return whether this node stands itself, and `peer` has to wait for the outcome.

        Two that granted each other a pre-vote would both stand, each with its own vote, and then
        wait for a whole timer. So the first by name goes on if their logs are equal, and the other
        one withdraws. An attempt that is not young any more has failed.
        """
        ctx = self._ctx
        if self._pre_won:
            return True
        is_young = ctx.now() - self._asked_at < ATTEMPT_TURNS * ctx.settings.heartbeat
        return is_young and is_equal and ctx.state.node_id < peer

    def _withdraw(self) -> None:
        """End the present attempt: count no more pre-votes for it."""
        self._pre_won, self._asked_at = False, NEVER

    def _answer_again(self) -> None:
        """Answer the questions that were put by, if no leader was heard since.

        Who asked would ask again only after a whole timer. It had heard the leader for the last
        time a little earlier than this node, or waits for this node's attempt, which has failed.
        """
        if self._put_by and self._is_quiet():
            asked, self._put_by = self._put_by, {}
            for peer, ask in asked.items():
                self.on_pre_vote(peer, ask)

    def on_pre_vote_granted(self, peer: str, grant: PreVoteGranted) -> None:
        """Count a pre-vote; campaign as soon as a majority has granted it."""
        state = self._ctx.state
        attempt = (self._pre_round, state.term + 1)
        if state.is_leader or self._asked_at == NEVER or (grant.round, grant.term) != attempt:
            return
        self._pre_voters.add(peer)
        if state.voters.have_majority(self._pre_voters):
            self._pre_won = True
            state.election_deadline = 0

    def on_term_notice(self, notice: TermNotice) -> None:
        """Adopt the term, or a longer log with a lower term would ask in vain for ever (S10 e)."""
        state = self._ctx.state
        if not state.is_leader and notice.term > state.term:
            state.adopt_term(notice.term)

    def on_request_vote(self, peer: str, request: RequestVote) -> None:
        """Refuse a vote before the candidate's term is adopted, or let the engine judge it."""
        if self.may_vote(request):
            self._withdraw()
            self._ctx.state.judge_vote(peer, request)

    def on_vote_granted(self, peer: str, vote: VoteGranted) -> None:
        """Count a voter once, however often its vote arrives (E-11)."""
        state = self._ctx.state
        self._lost_writes.on_vote(peer, vote.term)
        if not state.is_candidate or vote.term != state.term:
            return
        if self._votes[0] != vote.term:
            self._votes = (vote.term, [state.node_id])
        if peer not in self._votes[1] or not self._ctx.on(Switch.VOTER_ONCE):
            self._votes[1].append(peer)
        if state.voters.have_majority(self._votes[1]):
            state.become_leader()

    def on_timeout_now(self, peer: str, message: TimeoutNow) -> None:
        """Stand for election at once, if the leader of this very term says so (S10 d)."""
        state = self._ctx.state
        if not self._identity.is_member or message.term != state.term or state.leader != peer:
            return
        self._transfer_term = message.term
        state.take_over(peer, message.term)
