"""The leader's side: what is sent to whom (E-1, E-10, E-7, S7), and what an ack means (E-12).

Replaces the stock replication loop: no re-sending of what was sent, a window in bytes instead of
none, long entries and snapshots in chunks that heartbeats pass between, every message with the
number of its round.
"""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from holdfast.raft.api import SnapshotFailed
from holdfast.raft.core.context import Switch
from holdfast.raft.core.membership.catch_up import CatchUp
from holdfast.raft.core.membership.voters import NEVER
from holdfast.raft.core.snapshot_transfer import OutStream, slices
from holdfast.raft.messages import (
    ITEMS_MAX,
    Ack,
    Append,
    ChunkAck,
    EntryChunk,
    LogEntry,
    SnapshotChunk,
)

if TYPE_CHECKING:
    from holdfast.raft.api import SnapshotSource
    from holdfast.raft.core.context import Context
    from holdfast.raft.core.lease import Lease, Probes
    from holdfast.raft.core.membership.foreign_disks import ForeignDisks
    from holdfast.raft.core.membership.rebuild import RebuildingDisks
    from holdfast.raft.core.snapshot_transfer import Piece

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Progress:
    """What the leader knows of one peer's log, in this term."""

    next: int
    """The first entry that is not yet sent."""
    acked: int = 0
    """The last entry that this disk acknowledged."""
    flying: deque[tuple[int, int]] = field(default_factory=deque)
    """(last index, bytes) of each message that is sent and not acknowledged."""
    flying_bytes: int = 0
    stream: OutStream | None = None
    """The long entry or snapshot that is being sent."""
    retry_at: float = 0.0
    """When a snapshot may be opened again: seconds of the boot clock."""
    heard_at: float = NEVER
    """When it last answered: boot clock, seconds."""
    round: CatchUp = field(default_factory=CatchUp)
    """How far behind a learner is."""
    incarnation: str = ""
    """The peer's disk."""
    retreats: dict[int, float] = field(default_factory=dict)
    """Where refusals have led back to since the last success, and when: boot clock, seconds."""

    def sent(self, last: int, size: int) -> None:
        """Note that a message of `size` bytes with entries up to `last` is under way."""
        self.next = last + 1
        self.flying.append((last, size))
        self.flying_bytes += size

    def landed(self, index: int) -> None:
        """Note an acknowledgement of everything up to `index`."""
        if index > self.acked:
            self.acked = index
            self.retreats.clear()
        self.next = max(self.next, self.acked + 1)
        while self.flying and self.flying[0][0] <= self.acked:
            self.flying_bytes -= self.flying.popleft()[1]
        if self.stream and self.stream.index <= self.acked:
            self.stream = None

    def retreat(self, index: int, now: float, pause: float) -> None:
        """Go back to `index` after a refusal, but to no place twice within `pause` seconds.

        A peer refuses each message of a window whose beginning it lacks. Answering each refusal
        with that window would multiply the messages, with a peer that goes on refusing without end.
        """
        self.retreats = {at: when for at, when in self.retreats.items() if now - when < pause}
        if index not in self.retreats:
            self.go_back(index)
            self.retreats[index] = now

    def go_back(self, index: int) -> None:
        """Forget the messages under way and continue at `index`."""
        self.next = index
        self.flying.clear()
        self.flying_bytes = 0
        self.stream = None


class Replication:
    """Tick thread only."""

    def __init__(
        self,
        ctx: Context,
        lease: Lease,
        probes: Probes,
        rebuilding: RebuildingDisks,
        foreign: ForeignDisks,
        snapshots: SnapshotSource,
    ) -> None:
        """Start as a node that does not lead."""
        self._ctx, self._lease, self._probes = ctx, lease, probes
        self._rebuilding, self._foreign, self._snapshots = rebuilding, foreign, snapshots
        self.progress: dict[str, Progress] = {}

    def begin_to_lead(self) -> None:
        """Assume that every peer has the whole log; resets correct that."""
        start = self._ctx.log.last_index + 1
        self._rebuilding.clear()
        self.progress = {peer: Progress(next=start) for peer in self._ctx.state.peers}

    def adopt(self) -> None:
        """Go on with the nodes of another membership, as leader (S25).

        A node that is in it no more is sent nothing more, not even the entry that says so: it could
        vote by no other membership than one that has it. Of a learner that becomes a voter counts
        what it has acknowledged.
        """
        state, log = self._ctx.state, self._ctx.log
        if not state.is_leader:
            return
        known, start = self.progress, log.last_index + 1
        self.progress = {peer: known.get(peer) or Progress(next=start) for peer in state.peers}
        for peer in state.voters.others:
            if not self._rebuilding.is_new(peer):
                state.set_matched(peer, max(state.matched(peer), self.progress[peer].acked))

    def connection_changed(self, peer: str) -> None:
        """Continue after the last acknowledged entry, because messages under way may be lost."""
        progress = self.progress.get(peer)
        if progress is not None:
            progress.retreats.clear()
            progress.go_back(max(progress.acked + 1, self._ctx.log.anchor_index + 1))

    @property
    def stream_floor(self) -> int | None:
        """The lowest index of a snapshot under way: the journal is not cut above it (S18)."""
        anchor = self._ctx.log.anchor_index
        streams = [p.stream for p in self.progress.values() if p.stream]
        return min((s.index for s in streams if not s.total and s.index >= anchor), default=None)

    # -- sending -----------------------------------------------------------------

    def send_round(self) -> None:
        """Begin a probe and send each peer what fits, at least a heartbeat."""
        ctx = self._ctx
        ctx.state.heartbeat_at = ctx.now() + ctx.settings.heartbeat
        self._lease.begin_round()
        self._probes.round_begun()
        for peer in ctx.state.peers:
            if ctx.state.is_connected(peer) and self._foreign.trusts(peer):
                self._feed(peer, heartbeat=True)

    def _feed(self, peer: str, *, heartbeat: bool = False) -> None:
        progress, log = self.progress[peer], self._ctx.log
        sent = False
        if progress.stream is None and progress.next <= log.anchor_index:
            self._open_snapshot(progress)
        while progress.stream is None and self._may_send(progress):
            sent = self._send_entries(peer, progress) or sent
        if progress.stream is not None:
            self._pump(peer, progress, progress.stream)
        if heartbeat and not sent:
            self._send(peer, progress, ())

    def _may_send(self, progress: Progress) -> bool:
        log, limit = self._ctx.log, self._ctx.settings.inflight_bytes_max
        within = log.anchor_index < progress.next <= log.last_index
        return within and progress.flying_bytes < limit

    def _send_entries(self, peer: str, progress: Progress) -> bool:
        """Send one batch, or open a stream for an entry that is too long for one (S7).

        A batch is bounded in bytes and in entries, since a receiver refuses more than `ITEMS_MAX`.
        """
        log, settings = self._ctx.log, self._ctx.settings
        command, index, term = log.at(progress.next)
        if len(command) > settings.chunk_bytes and self._ctx.on(Switch.S7_CHUNKS):
            chunks = slices(command, settings.chunk_bytes)
            now = self._ctx.now()
            progress.stream = OutStream(index, term, chunks, now, total=len(command))
            return False
        entries: list[LogEntry] = []
        size, index = 0, progress.next
        last = min(log.last_index, index + ITEMS_MAX - 1)
        while index <= last and size < settings.batch_bytes:
            command, _, term = log.at(index)
            if entries and len(command) > settings.chunk_bytes:
                break
            entries.append(LogEntry(term, command))
            size += len(command)
            index += 1
        self._send(peer, progress, tuple(entries))
        progress.sent(index - 1, size)
        return True

    def _send(self, peer: str, progress: Progress, entries: tuple[LogEntry, ...]) -> None:
        """Send entries from `next` on.

        A heartbeat to a peer that lacks the log verifies nothing.
        """
        state, log = self._ctx.state, self._ctx.log
        previous, term = progress.next - 1, log.term_at(progress.next - 1)
        if term is None:
            previous, term = 0, 0
        admit = self._rebuilding.admission(peer)
        head = (state.term, self._lease.round, state.commit_index)
        self._ctx.ready.at_once.append((peer, Append(*head, previous, term, admit, entries)))

    # -- streams -------------------------------------------------------------------

    def _open_snapshot(self, progress: Progress) -> None:
        """Begin to send a snapshot to a peer whose next entry the journal has no more (S18)."""
        mark = self._snapshots.latest()
        chunk = self._ctx.settings.chunk_bytes
        may = self._ctx.now() >= progress.retry_at
        if may and mark.index >= self._ctx.log.anchor_index:
            whole = self._snapshots.open(mark.index)
            chunks = (part for block in whole for part in slices(block, chunk))
            progress.stream = OutStream(mark.index, mark.term, chunks, self._ctx.now())

    def _pump(self, peer: str, progress: Progress, stream: OutStream) -> None:
        ctx, now = self._ctx, self._ctx.now()
        if not stream.total and now - stream.begun_at > ctx.settings.stream_seconds_max:
            progress.go_back(progress.acked + 1)
            return
        pieces = stream.lost_pieces(now, 2 * ctx.settings.election_max)
        try:
            pieces += stream.next_pieces(now)
        except SnapshotFailed as error:
            logger.warning("a snapshot for %s broke off, another follows: %s", peer, error)
            progress.stream, progress.retry_at = None, now + ctx.settings.election_max
            return
        for piece in pieces:
            ctx.ready.at_once.append((peer, self._chunk(stream, piece)))

    def _chunk(self, stream: OutStream, piece: Piece) -> EntryChunk | SnapshotChunk:
        state, lease = self._ctx.state, self._lease
        head = state.term, lease.round
        if not stream.total:
            chunk = SnapshotChunk(
                *head, stream.index, stream.term, piece.offset, piece.last, piece.data
            )
            return chunk if piece.offset else self._with_membership(chunk)
        previous = stream.index - 1
        before = self._ctx.log.term_at(previous) or 0
        place = (state.commit_index, previous, before, stream.term, stream.total)
        return EntryChunk(*head, *place, piece.offset, piece.data)

    def _with_membership(self, chunk: SnapshotChunk) -> SnapshotChunk:
        """Return the first piece of a snapshot with the membership as of it (S25 a)."""
        noted = self._ctx.log.membership_at(chunk.index)
        if noted is None:
            return chunk
        return replace(chunk, membership_index=noted.index, membership=noted.text)

    # -- answers ---------------------------------------------------------------------

    def on_ack(self, peer: str, ack: Ack) -> None:
        """Count an ack of this term if its disk counts; continue sending in any case."""
        state = self._ctx.state
        if peer not in state.peers:
            return  # a removed node: what it still has to say has no weight (S25 e)
        if ack.term > state.term:
            state.adopt_term(ack.term)
        if not state.is_leader or (ack.term != state.term and self._ctx.on(Switch.ACK_TERM)):
            return
        counts = self._rebuilding.counts(peer, ack)
        if not counts and ack.stage == "member":
            return
        progress = self.progress[peer]
        self._watch_incarnation(progress, ack)
        self._note_progress(progress, ack)
        progress.heard_at = self._ctx.now()
        if peer not in state.voters.all:
            progress.round.note(progress.acked, self._ctx.log.last_index, progress.heard_at)
        elif counts:
            state.note_answer(peer, progress.heard_at)
            state.set_matched(peer, max(state.matched(peer), progress.acked))
            self._lease.echo(peer, ack)
        self._feed(peer)

    def _watch_incarnation(self, progress: Progress, ack: Ack) -> None:
        """Forget what was acknowledged if the peer has another disk (S19)."""
        if progress.incarnation != ack.incarnation:
            if progress.incarnation and self._ctx.on(Switch.S19_RESET):
                progress.acked = 0
                progress.retreats.clear()
                progress.go_back(self._ctx.log.last_index + 1)
            progress.incarnation = ack.incarnation

    def _note_progress(self, progress: Progress, ack: Ack) -> None:
        """Move `next`: a success never moves it back, a reset never below `acked` (E-1).

        A second reset to the same place changes nothing until a heartbeat's time has passed, or
        something has succeeded.
        """
        if ack.success:
            progress.landed(min(ack.next_index - 1, self._ctx.log.last_index))
            if not self._ctx.on(Switch.ACK_NO_REWIND):
                progress.go_back(progress.acked + 1)
        elif ack.reset:
            place = max(progress.acked + 1, min(ack.next_index, progress.next))
            progress.retreat(place, self._ctx.now(), self._ctx.settings.heartbeat)

    def on_chunk_ack(self, peer: str, ack: ChunkAck) -> None:
        """Open the window, or begin again if the receiver has lost its place."""
        progress = self.progress.get(peer)
        if not self._ctx.state.is_leader or ack.term != self._ctx.state.term or progress is None:
            return
        stream = progress.stream
        if stream is None or stream.index != ack.index:
            return
        now = self._ctx.now()
        if not stream.acked(ack.offset, now):
            progress.stream, progress.retry_at = None, now + self._ctx.settings.election_max
        self._feed(peer)
