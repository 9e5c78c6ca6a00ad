"""S21: nodes remember what each other's disks acknowledged, so that a forgetful disk is found out.

A flip in the newest of LMDB's two meta pages rolls back the journal's last transaction, and what
is left looks sound; so does an older copy of a whole directory that was put back. The node cannot
see it; a peer that got its ack or its vote can. `LostWriteDetection` is what a node knows of its
peers. `Comparison` checks what they remember of this node before it votes. Why so: docs/adr/0008,
0013.
"""

from __future__ import annotations

import json
import logging
import sys
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from holdfast.raft.core.context import Switch
from holdfast.raft.messages import Ack, Recall, Recalled, VoteGranted, Witness

if TYPE_CHECKING:
    from holdfast.raft.api import Notes
    from holdfast.raft.core.context import Context
    from holdfast.raft.core.membership.node_identity import NodeIdentity
    from holdfast.raft.messages import Append, Message

logger = logging.getLogger(__name__)

SAVE_SECONDS: Final = 1.0
"""How old the saved notes may be; a copied directory is older than that."""
FORMER_MAX: Final = 8
"""How many earlier disks of one peer are remembered by incarnation."""


@dataclass(slots=True)
class _Remembered:
    """What is remembered of one peer's disk."""

    incarnation: str = ""
    held: tuple[int, int] = (0, 0)
    """The most that it is known to hold, as (term, index): it acknowledged that to the leader of
    the term, or told that it was committed when it was that leader."""
    vote_term: int = 0
    """The last term in which it voted for this node."""
    told: tuple[int, int] = (0, 0)
    """What the other peers were told of `held`."""
    ever: tuple[int, int] = (0, 0)
    """The greatest `held` of this disk and all earlier ones."""
    ever_voted: int = 0
    """The greatest `vote_term` of this disk and all earlier ones."""
    former: list[str] = field(default_factory=list)
    """The incarnations of earlier disks, oldest first."""

    def replace(self, incarnation: str) -> None:
        """Note that the peer has another disk, of which nothing is known."""
        self.former = [*self.former, self.incarnation][-FORMER_MAX:]
        self.incarnation, self.vote_term = incarnation, 0
        self.held = self.told = (0, 0)


class LostWriteDetection:
    """What this node remembers of its peers. Tick thread only.

    `notes` keep it over a restart of the process, a second late. What they say stays true, however
    much more the disk has acknowledged since.
    """

    def __init__(self, ctx: Context, notes: Notes) -> None:
        """Load what an earlier process noted."""
        self._ctx, self._notes = ctx, notes
        self._of = _read(notes.read())
        self._next_at = self._save_at = 0.0
        self._changed = False

    def _about(self, peer: str) -> _Remembered:
        """Return what is remembered of a peer, however new it is to the cluster."""
        return self._of.setdefault(peer, _Remembered())

    def on_ack(self, peer: str, ack: Ack) -> None:
        """Remember what a follower's ack says is durable; ignore acks of another term."""
        state = self._ctx.state
        if ack.success and ack.term == state.term and state.is_leader:
            self._note(peer, ack.incarnation, (ack.term, ack.next_index - 1))

    def on_append(self, peer: str, append: Append) -> None:
        """Remember that the leader holds what it says is committed: it counted its own disk.

        An append does not name the disk, but no later disk is a member in a term that this one led.
        """
        state = self._ctx.state
        if append.term == state.term and state.leader == peer:
            self._note(peer, "", (append.term, append.commit_index))

    def on_witness(self, peer: str, witness: Witness) -> None:
        """Remember what the leader says that another node acknowledged to it.

        It tells in case it is not there to be asked later.
        """
        if witness.node in self._ctx.state.peers and witness.node != peer:
            self._note(witness.node, witness.incarnation, (witness.term, witness.index))

    def on_vote(self, peer: str, term: int) -> None:
        """Remember the vote that the peer gave to this candidate in `term`."""
        remembered = self._about(peer)
        remembered.vote_term = max(remembered.vote_term, term)
        remembered.ever_voted = max(remembered.ever_voted, term)
        self._changed = True

    def _note(self, peer: str, incarnation: str, held: tuple[int, int]) -> None:
        """Remember what a disk holds.

        A term has one leader, whose messages come in order; those of an earlier leader may come
        late.
        """
        remembered = self._about(peer)
        if incarnation and remembered.incarnation not in {"", incarnation}:
            if incarnation in remembered.former or held[0] < remembered.held[0]:
                return
            remembered.replace(incarnation)
        if incarnation:
            remembered.incarnation = incarnation
        if held > remembered.held:
            remembered.held, self._changed = held, True
            remembered.ever = max(remembered.ever, held)

    def tick(self) -> None:
        """Share what is new once per heartbeat period, as leader; note it once a second."""
        ctx = self._ctx
        if ctx.now() >= self._save_at:
            self._save_at = ctx.now() + SAVE_SECONDS
            self.save()
        if not ctx.state.is_leader or ctx.now() < self._next_at:
            return
        self._next_at = ctx.now() + ctx.settings.heartbeat
        for node in ctx.state.peers:
            remembered = self._about(node)
            if remembered.told != remembered.held:
                remembered.told = remembered.held
                word = Witness(node, remembered.incarnation, *remembered.held)
                self._tell_others(node, word)

    def save(self) -> None:
        """Write the notes if something has changed."""
        if self._changed:
            self._changed = False
            self._notes.write(_written(self._of))

    def close(self) -> None:
        """Write the notes if something has changed, and close them; the last call."""
        self.save()
        self._notes.close()

    def _tell_others(self, node: str, word: Witness) -> None:
        for peer in self._ctx.state.peers:
            if peer != node:
                self._ctx.ready.send.append((peer, word))

    def tell(self, peer: str, incarnation: str = "") -> None:
        """Tell a peer what is remembered of it: first of all on a new connection, or if asked.

        `incarnation`: the disk that it asks about. An earlier disk must hold what the later ones
        held, or it was put back. Of an unknown disk nothing is known, and the answer says so: what
        is remembered of another disk is no answer.
        """
        remembered = self._about(peer)
        if incarnation in remembered.former:
            word = Recalled(incarnation, *remembered.ever, remembered.ever_voted)
        elif not incarnation or remembered.incarnation in {"", incarnation}:
            word = Recalled(remembered.incarnation, *remembered.held, remembered.vote_term)
        else:
            word = Recalled(incarnation, 0, 0, 0)
        self._ctx.ready.send.append((peer, word))


def _written(remembered: dict[str, _Remembered]) -> bytes:
    return json.dumps({peer: asdict(each) for peer, each in remembered.items()}).encode()


def _read(content: bytes) -> dict[str, _Remembered]:
    """Decode the notes; nothing if they cannot be read: they are a second opinion, not a record."""
    try:
        return {peer: _restored(fields) for peer, fields in json.loads(content or b"{}").items()}
    except (ValueError, TypeError, KeyError, AttributeError):
        logger.warning("what was noted of the peers' disks cannot be read; it begins anew")
        return {}


def _restored(fields: dict[str, Any]) -> _Remembered:
    """Rebuild one peer's entry.

    Raises ValueError, TypeError or KeyError if the fields are wrong.
    """
    term, index = map(int, fields["held"])
    ever_term, ever_index = map(int, fields["ever"])
    return _Remembered(
        incarnation=str(fields["incarnation"]),
        held=(term, index),
        vote_term=int(fields["vote_term"]),
        ever=(ever_term, ever_index),
        ever_voted=int(fields["ever_voted"]),
        former=[str(each) for each in fields["former"]],
    )


class Comparison:
    """Compares what the peers remember of this node with what its disk held. Tick thread only.

    Votes wait for it: for every peer during an election maximum, then for as many as make a
    majority with this node. What the present process itself has shown needs no explanation.
    """

    def __init__(self, ctx: Context, identity: NodeIdentity) -> None:
        """Note what the disk held when the process began."""
        self._ctx, self._identity = ctx, identity
        log = ctx.log
        self._found = (log.stored_term, log.last_index)
        self._found_vote = log.vote
        used = not identity.is_fresh and identity.stage != "rebuilding"
        self._needed = used and ctx.on(Switch.S21_COMPARE)
        self._patient_until = ctx.now() + ctx.settings.election_max
        self._next_at = 0.0
        self._silent = set(ctx.state.peers)
        self._acked: dict[int, int] = {}
        self._voted: dict[int, str] = {}

    @property
    def is_done(self) -> bool:
        """Whether enough peers have answered for this node to vote or stand."""
        state = self._ctx.state
        if not self._needed or not self._silent.intersection(state.peers):
            return True
        answered = {state.node_id, *state.peers} - self._silent
        return state.voters.have_majority(answered) and self._ctx.now() >= self._patient_until

    def tick(self) -> None:
        """Ask the peers that have not answered, once per heartbeat period."""
        ctx = self._ctx
        if not self._needed or not self._silent or ctx.now() < self._next_at:
            return
        self._next_at = ctx.now() + ctx.settings.heartbeat
        for peer in sorted(self._silent.intersection(ctx.state.peers)):
            ctx.ready.send.append((peer, Recall(self._identity.incarnation)))

    def shown(self, peer: str, message: Message) -> None:
        """Note what a message shows a peer: what it remembers of that is explained."""
        if isinstance(message, Ack) and message.success:
            last = message.next_index - 1
            self._acked[message.term] = max(last, self._acked.get(message.term, 0))
        elif isinstance(message, VoteGranted):
            self._voted[message.term] = peer

    def began_to_lead(self) -> None:
        """Note the term: what a peer heard in it came from the present process."""
        self._acked[self._ctx.state.term] = sys.maxsize

    def on_recalled(self, peer: str, told: Recalled) -> None:
        """Compare; if a peer remembers more than the disk held, rebuild instead of voting (S19)."""
        if self._needed and not self._concerns(told):
            # It spoke of another disk of this node: does it know this one?
            self._ctx.ready.send.append((peer, Recall(self._identity.incarnation)))
            return
        self._silent.discard(peer)
        if not self._needed:
            return
        lost = self._lost_entry(told) or self._lost_vote(peer, told)
        if lost:
            term, index = self._found
            logger.critical(
                "alarm: this data directory is an older copy of this node's disk, or the disk lost "
                "what it had written: it ends with entry %d of term %d, and %s remembers of this "
                "node %s. The node rebuilds from its peers, without a vote until it has what they "
                "have. Never put back a copy of a data directory; if nobody did, examine the disk",
                index,
                term,
                peer,
                lost,
            )
            self._needed = False
            self._ctx.state.follow(None)  # such a disk neither leads nor stands, nor did it rightly
            self._identity.renew()

    def _concerns(self, told: Recalled) -> bool:
        """Return whether what is told must be on this disk.

        That includes what another disk of this node held, if this one took part in the bootstrap:
        no other disk of this node came before it.
        """
        own = self._identity.incarnation
        first = self._identity.formed.get(self._ctx.node_id) == own
        return first or told.incarnation in {"", own}

    def _lost_entry(self, told: Recalled) -> str:
        """Describe the entry that this disk has lost; empty if nothing proves a loss.

        Within a term a leader's log only grows, so what was held in the term found must still be
        held. A later term may have cut what was acknowledged: that proves nothing.
        """
        if self._acked.get(told.term, -1) >= told.index or self._found >= (told.term, told.index):
            return ""
        return f"that it held entry {told.index} in term {told.term}"

    def _lost_vote(self, peer: str, told: Recalled) -> str:
        """Describe the vote that this disk has lost, and could give again to another.

        Empty if none.
        """
        term, vote = self._found[0], self._found_vote
        forgot = told.vote_term > term or (told.vote_term == term > 0 and vote is None)
        if not forgot or self._voted.get(told.vote_term) == peer:
            return ""
        return f"its vote in term {told.vote_term}"
