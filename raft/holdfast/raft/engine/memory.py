"""S21: nodes remember what each other's disks acknowledged, so that a forgetful disk is found out.

A flip in the newest of LMDB's two meta pages rolls back the journal's last transaction, and what
is left looks sound. The node cannot see it; whoever got its ack or its vote can. `Memory` is what
a node knows of its peers, `Comparison` what it makes of their word about itself before it votes.
Both live in memory only: what that leaves open is told in docs/adr/0008.
"""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.raft.engine.rules import Rule
from holdfast.raft.messages import Ack, Recall, Recalled, VoteGranted, Witness

if TYPE_CHECKING:
    from holdfast.raft.engine.context import Context
    from holdfast.raft.engine.disk import Disk
    from holdfast.raft.messages import Append, Message

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Remembered:
    """Of one peer's disk: the most that it is known to hold, as (term, index), and its last vote.

    It holds what it acknowledged to the leader of `term`, or told to be committed when it was that
    leader. `told`: what the other peers were told of.
    """

    incarnation: str = ""
    held: tuple[int, int] = (0, 0)
    vote_term: int = 0
    told: tuple[int, int] = (0, 0)


class Memory:
    """What this node remembers of its peers. Tick thread only."""

    def __init__(self, ctx: Context) -> None:
        """Nothing; the memory of an earlier process is gone."""
        self._ctx = ctx
        self._of = {peer: _Remembered() for peer in ctx.seam.peers}
        self._next_at = 0.0

    def on_ack(self, peer: str, ack: Ack) -> None:
        """A leader hears what is durable at a peer; an ack of another term says nothing here."""
        seam = self._ctx.seam
        if ack.success and ack.term == seam.term and seam.is_leader:
            self._note(peer, ack.incarnation, (ack.term, ack.next_index - 1))

    def on_append(self, peer: str, append: Append) -> None:
        """A follower hears what is committed: the leader counted its own disk, once it was durable.

        Which disk that is, no append says; no later one is a member in a term that this one led.
        """
        seam = self._ctx.seam
        if append.term == seam.term and seam.leader == peer:
            self._note(peer, "", (append.term, append.commit_index))

    def on_witness(self, peer: str, witness: Witness) -> None:
        """A leader tells what others acknowledged to it, in case it is not there to be asked."""
        if witness.node in self._of and witness.node != peer:
            self._note(witness.node, witness.incarnation, (witness.term, witness.index))

    def on_vote(self, peer: str, term: int) -> None:
        """A candidate hears for whom the peer can vote no more in this term."""
        remembered = self._of[peer]
        remembered.vote_term = max(remembered.vote_term, term)

    def _note(self, peer: str, incarnation: str, held: tuple[int, int]) -> None:
        remembered = self._of[peer]
        if incarnation and remembered.incarnation != incarnation:
            if remembered.incarnation:
                remembered = self._of[peer] = _Remembered()
            remembered.incarnation = incarnation
        remembered.held = max(remembered.held, held)

    def tick(self) -> None:
        """Once per heartbeat period a leader shares what is new."""
        ctx = self._ctx
        if not ctx.seam.is_leader or ctx.now() < self._next_at:
            return
        self._next_at = ctx.now() + ctx.settings.heartbeat
        for node, remembered in self._of.items():
            if remembered.told != remembered.held:
                remembered.told = remembered.held
                word = Witness(node, remembered.incarnation, *remembered.held)
                self._tell_others(node, word)

    def _tell_others(self, node: str, word: Witness) -> None:
        for peer in self._of:
            if peer != node:
                self._ctx.outbox.post(peer, word)

    def tell(self, peer: str) -> None:
        """Say to a peer what is remembered of it: first of all on a new connection, or if asked."""
        remembered = self._of[peer]
        word = Recalled(remembered.incarnation, *remembered.held, remembered.vote_term)
        self._ctx.outbox.post(peer, word)


class Comparison:
    """What the peers remember of this node, against what it found on its disk. Tick thread only.

    Votes wait for it: for every peer during an election maximum, then for as many as make a
    majority with this node. Whatever the present process showed explains itself.
    """

    def __init__(self, ctx: Context, disk: Disk) -> None:
        """Remember what the disk held when the process began."""
        self._ctx, self._disk = ctx, disk
        journal = ctx.journal
        self._found = (journal.getCurrentTerm(), journal.last_index)
        self._found_vote = journal.getVotedForNodeId()
        self._needed = disk.is_member and ctx.on(Rule.S21_COMPARE)
        self._patient_until = ctx.now() + ctx.settings.election_max
        self._next_at = 0.0
        self._silent = set(ctx.seam.peers)
        self._acked: dict[int, int] = {}
        self._voted: dict[int, str] = {}
        ctx.outbox.on_shown = self.shown

    @property
    def is_done(self) -> bool:
        """Whether enough peers have answered for this node to vote or stand."""
        if not self._needed or not self._silent:
            return True
        seam = self._ctx.seam
        answered = len(seam.peers) - len(self._silent)
        return answered >= seam.majority - 1 and self._ctx.now() >= self._patient_until

    def tick(self) -> None:
        """Ask again whoever has not said anything, once per heartbeat period."""
        ctx = self._ctx
        if not self._needed or not self._silent or ctx.now() < self._next_at:
            return
        self._next_at = ctx.now() + ctx.settings.heartbeat
        for peer in sorted(self._silent):
            ctx.outbox.post(peer, Recall(self._disk.incarnation))

    def shown(self, peer: str, message: Message) -> None:
        """Note what leaves this node: what peers remember of it is no riddle."""
        if isinstance(message, Ack) and message.success:
            last = message.next_index - 1
            self._acked[message.term] = max(last, self._acked.get(message.term, 0))
        elif isinstance(message, VoteGranted):
            self._voted[message.term] = peer

    def began_to_lead(self) -> None:
        """Whatever a peer heard in this term was led by the present process: no riddle either."""
        self._acked[self._ctx.seam.term] = sys.maxsize

    def on_recalled(self, peer: str, told: Recalled) -> None:
        """A peer remembers more than the disk does: rebuild, instead of voting (S19)."""
        self._silent.discard(peer)
        about_this_disk = told.incarnation in {"", self._disk.incarnation}
        if not self._needed or not about_this_disk:
            return
        lost = self._lost_entry(told) or self._lost_vote(peer, told)
        if lost:
            logger.critical(
                "alarm: %s remembers of this node %s, and the journal began without it: the disk "
                "lost its last transaction (a damaged meta page, or a write that it never made). "
                "The node rebuilds from its peers without a vote; examine the disk",
                peer,
                lost,
            )
            self._needed = False
            self._ctx.seam.follow(None)  # such a disk neither leads nor stands, nor did it rightly
            self._disk.renew()

    def _lost_entry(self, told: Recalled) -> str:
        """Within a term a leader's log only grows, so what was held in the term found must be held.

        A later term may have cut what was acknowledged: that proves nothing.
        """
        if self._acked.get(told.term, -1) >= told.index or self._found >= (told.term, told.index):
            return ""
        return f"that it held entry {told.index} in term {told.term}"

    def _lost_vote(self, peer: str, told: Recalled) -> str:
        """A vote that the disk knows nothing of could be given again, to somebody else."""
        term, vote = self._found[0], self._found_vote
        forgot = told.vote_term > term or (told.vote_term == term > 0 and vote is None)
        if not forgot or self._voted.get(told.vote_term) == peer:
            return ""
        return f"its vote in term {told.vote_term}"
