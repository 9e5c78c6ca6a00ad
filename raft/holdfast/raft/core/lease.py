"""Quorum probes and what follows from them: the leader's lease (S10 c), probes and read barriers.

Each round of sending is numbered, each ack echoes the number it heard. What a majority has
echoed was heard by a majority after the round was sent.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.raft.api import BarrierPassed, ProbeFailed, ProbePassed
from holdfast.raft.core.context import Switch
from holdfast.raft.core.membership.voters import NEVER

if TYPE_CHECKING:
    from holdfast.raft.core.context import Context
    from holdfast.raft.messages import Ack

LEASE_SHARE = 0.8
"""Share of a promise that a lease may use; the rest covers clocks that run apart (S10 c)."""

ROUNDS_KEPT = 4096


@dataclass(slots=True)
class _Heard:
    """What one peer has echoed. Times are seconds of the boot clock."""

    round: int = 0
    """The newest round that it echoed."""
    sent: float = NEVER
    """When that round was sent."""
    bound: float = NEVER
    """Until when the peer's promise holds."""


class Lease:
    """Tick thread, except `valid`, which any thread may call."""

    def __init__(self, ctx: Context) -> None:
        """Start without a lease."""
        self._ctx = ctx
        self.round = 0
        self._sent: OrderedDict[int, float] = OrderedDict()
        self._heard: dict[str, _Heard] = {}
        self._until: tuple[int, float] = (0, NEVER)
        self._given_up = 0
        self.ready_term = 0

    @property
    def term(self) -> int:
        """The term of the lease, also when it has run out; 0: it was revoked."""
        return self._until[0]

    def begin_round(self) -> None:
        """Begin a numbered round of sending; take its time before the first byte leaves."""
        self.round += 1
        self._sent[self.round] = self._ctx.now()
        if len(self._sent) > ROUNDS_KEPT:
            self._sent.popitem(last=False)
        if self._ctx.state.voters.is_alone:
            self._extend()

    def echo(self, peer: str, ack: Ack) -> None:
        """Count a voter's promise from when the round that it echoes was *sent*."""
        sent = self._sent.get(ack.round)
        if sent is None:
            return
        if not self._ctx.on(Switch.S10_SENT):
            sent = self._ctx.now()
        heard = self._heard.setdefault(peer, _Heard())
        heard.round = max(heard.round, ack.round)
        heard.sent = max(heard.sent, sent)
        heard.bound = max(heard.bound, sent + LEASE_SHARE * ack.promise_ms / 1000)
        self._extend()

    def _extend(self) -> None:
        own = self._ctx.now() + LEASE_SHARE * self._ctx.settings.election_min
        bounds = {peer: heard.bound for peer, heard in self._heard.items()}
        until = self._ctx.state.voters.reached(bounds, own)
        self._until = (self._ctx.state.term, until)

    def recount(self) -> None:
        """Count the promises anew, because other voters count from now on (S25 a)."""
        if self._ctx.state.is_leader and self.term:
            self._extend()

    def heard_at(self) -> float:
        """Return a time at which a majority was still listening to this leader."""
        sent = {peer: heard.sent for peer, heard in self._heard.items()}
        return self._ctx.state.voters.reached(sent, self._ctx.now())

    def quorum_round(self) -> int:
        """Return the newest round that a majority has heard."""
        rounds = {peer: heard.round for peer, heard in self._heard.items()}
        return int(max(0, self._ctx.state.voters.reached(rounds, self.round)))

    def revoke(self) -> None:
        """Revoke the lease for all threads, before anything that ends the leadership (S10 c)."""
        self._until = (0, NEVER)
        self.ready_term = 0
        self._heard.clear()
        self._sent.clear()

    def give_up(self, term: int) -> None:
        """End the lease of a term for good, because its leadership is handed over (S10 d)."""
        self._given_up = term

    def valid(self, now: float) -> int:
        """Return the term whose state may be read at `now` (boot clock, seconds), or 0."""
        term, until = self._until
        gone = self._given_up == term and self._ctx.on(Switch.S10_TRANSFER)
        return term if term and term == self.ready_term and now < until and not gone else 0


@dataclass(slots=True)
class _Probe:
    """A probe under way."""

    number: int
    round: int
    index: int
    """The entry that must be handed over first; -1: none."""


class Probes:
    """Checks whether a majority heard this leader after a given moment: S9 b, the read barrier."""

    def __init__(self, ctx: Context, lease: Lease) -> None:
        """Start without probes.

        Results go into the FIFO, behind the entries that they vouch for.
        """
        self._ctx, self._lease = ctx, lease
        self._asked: deque[tuple[int, bool]] = deque()
        self._waiting: list[_Probe] = []
        self._sent: list[_Probe] = []

    def ask(self, number: int, *, barrier: bool) -> None:
        """Ask for a probe; it begins with the next tick. Any thread."""
        self._asked.append((number, barrier))

    def tick(self) -> bool:
        """Take in the probes that were asked for; return whether a round must be sent for them."""
        while self._asked:
            number, barrier = self._asked.popleft()
            if self._ctx.state.is_leader:
                self._waiting.append(_Probe(number, 0, 0 if barrier else -1))
            else:
                self._ctx.ready.apply.append(ProbeFailed(number, self._ctx.state.leader))
        return bool(self._waiting) and self._own_no_op_committed()

    def _own_no_op_committed(self) -> bool:
        """Return whether the own no-op is committed: before, a leader's commit index may lag."""
        no_op = self._ctx.state.own_no_op
        return no_op is not None and self._ctx.state.commit_index >= no_op

    def round_begun(self) -> None:
        """Tie the waiting probes to the round that is sent next."""
        if not self._own_no_op_committed():
            return
        for probe in self._waiting:
            probe.round = self._lease.round
            probe.index = self._ctx.state.commit_index if probe.index >= 0 else -1
        self._sent += self._waiting
        self._waiting = []

    def settle(self) -> None:
        """Report the probes whose round a majority has heard and whose entry is handed over."""
        if not self._sent:
            return
        heard, handed = self._lease.quorum_round(), self._ctx.state.handed_index
        done = [p for p in self._sent if p.round <= heard and p.index <= handed]
        self._sent = [p for p in self._sent if p not in done]
        for probe in done:
            if probe.index < 0:
                self._ctx.ready.apply.append(ProbePassed(probe.number, self._ctx.state.term))
            else:
                self._ctx.ready.apply.append(BarrierPassed(probe.number, probe.index))

    def fail_all(self) -> None:
        """Fail all probes, because the leadership ended."""
        for probe in (*self._sent, *self._waiting):
            self._ctx.ready.apply.append(ProbeFailed(probe.number, None))
        self._sent, self._waiting = [], []
