"""The engine as its callers see it: `holdfast.raft.api` in, `holdfast.raft.api` out.

One thread ticks; any thread proposes, asks and reports; one consumer takes the items. Whatever
goes wrong in a tick stops the node, loudly: a failed sync, a fork, a bug.
"""

from __future__ import annotations

import itertools
import logging
from typing import TYPE_CHECKING

from holdfast.raft.api import (
    EngineStopped,
    FoundedApart,
    NodeRemoved,
    PeerStatus,
    ProposalId,
    Status,
    Stopped,
)
from holdfast.raft.core.context import ALL, Switch
from holdfast.raft.messages import (
    Ack,
    Append,
    ChunkAck,
    EntryChunk,
    Hello,
    Message,
    PreVote,
    PreVoteGranted,
    Recall,
    Recalled,
    Removed,
    RequestVote,
    SnapshotChunk,
    StateDigest,
    TermNotice,
    TimeoutNow,
    VoteGranted,
    Witness,
)
from holdfast.raft.pysyncobj import engine_state
from holdfast.raft.pysyncobj.overlay import Overlay, Setup
from holdfast.raft.pysyncobj.version_pin import check_pin
from holdfast.raft.pysyncobj.waker import QueuePark
from holdfast.storage.errors import JournalFailed, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from holdfast.raft.api import Item, Notes, Park, Settings, SnapshotSource, Transport
    from holdfast.raft.membership import Change, Membership
    from holdfast.storage.journal.journal import Journal

logger = logging.getLogger(__name__)


class Engine:
    """One node's part of the replicated log."""

    def __init__(  # noqa: PLR0913 - what a node is made of, by keyword only
        self,
        *,
        node_id: str,
        peers: tuple[str, ...],
        cluster_id: str,
        settings: Settings,
        journal: Journal,
        transport: Transport,
        clock: Callable[[], float],
        random: Random,
        snapshots: SnapshotSource,
        notes: Notes,
        park: Park | None = None,
        bootstrap: bool = False,
        switches: frozenset[Switch] = ALL,
    ) -> None:
        """Load and verify the journal. Raises EngineStopped, storage.errors.JournalDamaged.

        `peers`: the other nodes. `clock`: seconds of CLOCK_BOOTTIME. `notes`: what an
        earlier process remembered of the peers (S21). `park`: where the tick waits; if nothing is
        given, where only calls from other threads end a wait. `bootstrap`: an empty directory may
        form a new cluster (S19). `switches`: the test harness may leave some out.
        """
        check_pin()
        self._clock = clock
        engine_state.use_clock(clock)
        self.overlay = Overlay(
            Setup(
                node_id=node_id,
                peers=tuple(peers),
                cluster_id=cluster_id,
                settings=settings,
                journal=journal,
                transport=transport,
                park=park or QueuePark(),
                now=clock,
                random=random,
                snapshots=snapshots,
                notes=notes,
                bootstrap=bootstrap,
                switches=switches,
            )
        )
        self._numbers = itertools.count(1)
        self._ticks = 0
        self._stopped: str | None = None
        self.was_removed = False
        """Whether the engine stopped because this node is none of the cluster any more (S25 e)."""
        self._handlers = self._message_handlers()
        transport.start(self, self.overlay.waker.wake)

    def _message_handlers(self) -> dict[type, Callable[[str, Message], None]]:
        o = self.overlay
        handlers: dict[type, Callable[..., None]] = {
            PreVote: o.elections.on_pre_vote,
            PreVoteGranted: o.elections.on_pre_vote_granted,
            TermNotice: lambda _peer, message: o.elections.on_term_notice(message),
            RequestVote: o.elections.on_request_vote,
            VoteGranted: o.elections.on_vote_granted,
            TimeoutNow: o.elections.on_timeout_now,
            Append: self._on_append,
            EntryChunk: o.appending.on_entry_chunk,
            SnapshotChunk: o.installing.on_chunk,
            ChunkAck: o.replication.on_chunk_ack,
            Ack: self._on_ack,
            Recall: lambda peer, message: o.lost_writes.tell(peer, message.incarnation),
            Recalled: o.comparison.on_recalled,
            Witness: o.lost_writes.on_witness,
            Hello: self._on_hello,
            StateDigest: o.state_digests.on_digest,
            Removed: o.removals.on_removed,
        }
        return handlers

    def _on_hello(self, peer: str, hello: Hello) -> None:
        """Go on with forming the cluster, and note the peer's stage and whose its disk is."""
        self.overlay.forming.on_hello(peer, hello)
        self.overlay.foreign.on_hello(peer, hello)
        self.overlay.leaderless.on_hello(peer, hello)

    def _on_append(self, peer: str, append: Append) -> None:
        """Take entries, and remember what the append shows of the leader's disk (S21)."""
        self.overlay.appending.on_append(peer, append)
        self.overlay.lost_writes.on_append(peer, append)

    def _on_ack(self, peer: str, ack: Ack) -> None:
        """Take an ack, and remember what it shows of the peer's disk (S21)."""
        self.overlay.replication.on_ack(peer, ack)
        self.overlay.lost_writes.on_ack(peer, ack)

    # -- the tick thread ---------------------------------------------------------------

    def tick(self, max_wait: float = 0.0) -> None:
        """Do what is due, then wait for at most `max_wait` seconds for more to do.

        Raises EngineStopped when the node must not go on; the last item then says so as well.
        """
        if self._stopped is not None:
            raise EngineStopped(self._stopped)
        self._ticks += 1
        engine_state.use_clock(self._clock)
        try:
            self.overlay.doTick(self.patience(max_wait))
        except Exception as error:
            self._stop(error)
            raise EngineStopped(str(error)) from error

    def patience(self, max_wait: float) -> float:
        """How many seconds, at most `max_wait`, may pass until something is due by itself."""
        o, now = self.overlay, self._clock()
        due = o.state.heartbeat_at if o.state.is_leader else o.state.election_deadline
        if o.installing.is_waiting or not o.identity.is_member or o.transfer.is_open:
            due = min(due, now + o.ctx.settings.heartbeat)
        return max(0.0, min(max_wait, due - now))

    def _stop(self, error: Exception) -> None:
        """Stop for good: nothing leaves this node any more, and its state may not be read."""
        self.overlay.lease.revoke()
        self.was_removed = isinstance(error, NodeRemoved)
        is_known = isinstance(error, NodeRemoved | FoundedApart)
        why = "" if is_known else f"{type(error).__name__}: "
        self._stopped = f"the replicated log stopped: {why}{error}"
        # A disk's failure and a wrong disk say what and what to do; anything else is a defect, and
        # where it was.
        # The simulator takes an alarm for a verdict.
        told = None if is_known or isinstance(error, StorageError) else error
        alarm = "" if isinstance(error, JournalFailed | NodeRemoved) else "alarm: "
        logger.critical("%s%s", alarm, self._stopped, exc_info=told)
        self.overlay.apply_queue.push([Stopped(self._stopped)])

    def on_message(self, peer: str, message: Message) -> None:
        """Handle a message (TransportHandler)."""
        o = self.overlay
        if self._stopped is not None or not o.removals.hears(peer, message):
            return
        engine_state.use_clock(self._clock)
        if o.foreign.hears(peer, message):
            self._handlers[type(message)](peer, message)

    def on_connected(self, peer: str) -> None:
        """Note a new connection (TransportHandler), and say first whose disk this is (S25 f)."""
        self.overlay.wire.connected(self.overlay.state.node(peer))
        self.overlay.foreign.connection_began(peer)
        self.overlay.lost_writes.tell(peer)
        self.overlay.replication.connection_changed(peer)
        self.overlay.elections.connection_began(peer)

    def on_disconnected(self, peer: str) -> None:
        """Note the end of a connection (TransportHandler)."""
        self.overlay.wire.disconnected(self.overlay.state.node(peer))
        self.overlay.replication.connection_changed(peer)
        self.overlay.elections.connection_ended(peer)

    def holds_nothing(self) -> bool:
        """Return whether the disk waits to be rebuilt and has got nothing yet (TransportHandler).

        Any thread.
        """
        return self.overlay.identity.stage == "rebuilding" and self.overlay.journal.holds_nothing

    def on_later_restore(self, peer: str) -> None:
        """Note that a peer is of a later restore than this disk (TransportHandler). Any thread."""
        self.overlay.foreign.later = peer

    def close(self) -> None:
        """Close transport and journal; the last call, by the tick thread."""
        if self._stopped is None:
            self._stopped = "the replicated log is closed"
            self.overlay.lease.revoke()
            self.overlay.apply_queue.push([Stopped(self._stopped)])
        self.overlay.wire.destroy()
        self.overlay.lost_writes.close()
        self.overlay.journal.close()

    # -- any thread -----------------------------------------------------------------------

    def propose(self, payload: bytes, term: int) -> ProposalId:
        """Propose a payload that was decided in `term` (S1).

        Its fate is an item: `Applied` with this id, `Refused`, or `RoleChanged` that lists it as
        unknown. Raises Overloaded, EntryTooLarge, EngineStopped: then nothing was proposed.
        """
        if self._stopped is not None:
            raise EngineStopped(self._stopped)
        proposal = self.overlay.proposals.put(payload, term)
        self.overlay.waker.wake()
        return proposal

    def change(self, change: Change, term: int) -> ProposalId:
        """Propose a change of nodes, as leader of `term` (S25).

        Its fate is an item, as that of a payload. Raises Overloaded, EngineStopped: then nothing
        was proposed. Every node of the cluster must be able to read the entry: the caller knows.
        """
        if self._stopped is not None:
            raise EngineStopped(self._stopped)
        proposal = self.overlay.proposals.put_change(change, term)
        self.overlay.waker.wake()
        return proposal

    @property
    def membership(self) -> Membership:
        """The membership in force, committed or not (S25 a)."""
        return self.overlay.in_force.now

    def on_membership(self, tell: Callable[[Membership], None]) -> None:
        """Have `tell` called, by the tick thread, when another membership comes into force.

        To be called before the first tick.
        """
        self.overlay.in_force.listeners.append(tell)

    def lease_valid(self, now: float) -> int:
        """Return the term whose applied state may be read at `now` (this engine's clock), or 0."""
        return self.overlay.lease.valid(now)

    def read_barrier(self) -> int:
        """Begin a linearizable read; return its number.

        `BarrierPassed` or `ProbeFailed` with this number follows.
        """
        return self._ask_probe(barrier=True)

    def begin_probe(self) -> int:
        """Ask whether a majority hears this leader *after now* (S9 b); return the probe's number.

        `ProbePassed` or `ProbeFailed` with this number follows.
        """
        return self._ask_probe(barrier=False)

    def _ask_probe(self, *, barrier: bool) -> int:
        number = next(self._numbers)
        self.overlay.probes.ask(number, barrier=barrier)
        self.overlay.waker.wake()
        return number

    def transfer(self, to: str) -> None:
        """Hand the leadership over, if this node leads and `to` can be brought up to date."""
        others = self.overlay.state.voters.others
        if to not in others:
            raise ValueError(f"{to!r} cannot lead instead of this node, only {list(others)}")
        self.overlay.transfer.ask(to)
        self.overlay.waker.wake()

    def cut(self, index: int) -> None:
        """Allow the journal to be cut up to `index`: a durable snapshot contains it."""
        self.overlay.delivery.ask_cut(index)

    # -- the consumer -------------------------------------------------------------------------

    def on_items(self, notify: Callable[[], None]) -> None:
        """Have `notify` called, from any thread, when there is something to take again."""
        self.overlay.apply_queue.on_items = notify

    def take(self, limit: int = 1024) -> list[Item]:
        """Return the next items of the one FIFO (S4), in order; never blocks."""
        return self.overlay.apply_queue.take(limit)

    def evolved(self, index: int) -> None:
        """Report that the state reflects everything up to `index` (S4)."""
        delivery = self.overlay.delivery
        delivery.evolved_index = max(delivery.evolved_index, index)
        if self.overlay.state.is_leader and not self.overlay.lease.ready_term:
            self.overlay.waker.wake()

    def publish(self, index: int, digest: bytes) -> None:
        """Have the digest of the state at `index` compared with those of the peers (S3)."""
        self.overlay.state_digests.publish(index, digest)

    # -- for people -----------------------------------------------------------------------------

    def status(self) -> Status:
        """Describe the engine at this moment; not exact. Any thread."""
        o = self.overlay
        return Status(
            role="leader" if o.state.is_leader else "follower",
            term=o.state.term,
            leader=o.state.leader,
            stage=o.identity.stage,
            commit_index=o.state.commit_index,
            handed_index=o.state.handed_index,
            evolved_index=o.delivery.evolved_index,
            first_index=o.journal.anchor_index + 1,
            last_index=o.journal.last_index,
            peers=tuple(self._peer_status(peer) for peer in o.state.peers),
            current_at=o.appending.current[0],
            current_index=o.appending.current[1],
            catch_up_index=o.appending.catch_up_index,
            ticks=self._ticks,
            membership=o.in_force.now,
            membership_index=o.in_force.index,
        )

    def _peer_status(self, peer: str) -> PeerStatus:
        o = self.overlay
        progress = o.replication.progress.get(peer) if o.state.is_leader else None
        return PeerStatus(
            peer=peer,
            connected=o.state.is_connected(peer),
            acked_index=progress.acked if progress else 0,
            next_index=progress.next if progress else 0,
            streaming=bool(progress and progress.stream and not progress.stream.total),
            counted=progress is not None and self._counts(peer),
            caught_up=progress is not None and self._has_caught_up(peer),
        )

    def _counts(self, peer: str) -> bool:
        o = self.overlay
        return peer in o.state.voters.all and not o.rebuilding.is_new(peer)

    def _has_caught_up(self, peer: str) -> bool:
        o = self.overlay
        return peer not in o.state.voters.all and not o.changes.what_lacks(peer)
