"""The overlay: PySyncObj's core with every unsafe part replaced, from outside and in one place.

Each override is a few lines that name what it closes and call the concern that does it. Kept of
the stock engine: the election timer, the campaign, the granting of votes, the commit rule,
check-quorum, the stamping of commands, and the order of a tick. Everything else is unreachable:
pickled calls, dumps and forks (E-3, E-4), membership changes (E-8), forwarding (E-9), its
transport.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from pysyncobj.config import SyncObjConf
from pysyncobj.syncobj import SyncObj

from holdfast.raft.api import EngineStopped
from holdfast.raft.core.append import Appending, Installing
from holdfast.raft.core.apply import Delivery
from holdfast.raft.core.apply_queue import ApplyQueue
from holdfast.raft.core.completion import Completion
from holdfast.raft.core.context import Context, Switch
from holdfast.raft.core.elections import Elections
from holdfast.raft.core.leadership_transfer import LeadershipTransfer
from holdfast.raft.core.lease import Lease, Probes
from holdfast.raft.core.lost_write_detection import Comparison, LostWriteDetection
from holdfast.raft.core.membership.changes import MembershipChanges
from holdfast.raft.core.membership.foreign_disks import ForeignDisks
from holdfast.raft.core.membership.in_force import MembershipInForce
from holdfast.raft.core.membership.node_identity import NodeIdentity
from holdfast.raft.core.membership.rebuild import Forming, Leaderless, Rebuild, RebuildingDisks
from holdfast.raft.core.membership.removals import Removals
from holdfast.raft.core.proposals import Proposals
from holdfast.raft.core.ready import Ready
from holdfast.raft.core.replication import Replication
from holdfast.raft.core.state_digests import StateDigests
from holdfast.raft.core.watch import Watch
from holdfast.raft.membership import Membership
from holdfast.raft.pysyncobj.engine_state import LEADER, EngineState, Peer
from holdfast.raft.pysyncobj.journal_adapter import EngineJournal, adopt_journals
from holdfast.raft.pysyncobj.transport_adapter import EngineTransport
from holdfast.raft.pysyncobj.waker import Waker

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from holdfast.raft.api import Notes, Park, Settings, SnapshotMark, SnapshotSource, Transport
    from holdfast.raft.core.log import Log
    from holdfast.storage.journal.journal import Journal


@dataclass(frozen=True, slots=True)
class Setup:
    """What an engine is made of."""

    node_id: str
    peers: tuple[str, ...]
    cluster_id: str
    settings: Settings
    journal: Journal
    transport: Transport
    park: Park
    now: Callable[[], float]
    """The boot clock, in seconds (S10)."""
    random: Random
    snapshots: SnapshotSource
    notes: Notes
    bootstrap: bool
    switches: frozenset[Switch]


class Overlay(SyncObj):
    """One node. Tick thread only, except where a concern says otherwise.

    All attributes are set before `SyncObj.__init__`, which takes later ones for replicated state.
    """

    def __init__(self, setup: Setup) -> None:
        """Load the journal, determine the identity of this disk, and be ready to tick."""
        adopt_journals()
        mark = setup.snapshots.latest()
        self.journal = EngineJournal(setup.journal)
        begins_with = Membership.of((setup.node_id, *setup.peers))
        self.in_force = MembershipInForce(setup.node_id, self.journal, begins_with)
        self.state = EngineState(self, setup.node_id, self.in_force.now)
        self.ctx = _context(setup, self.state, self.journal)
        self.ready = self.ctx.ready
        self.identity = NodeIdentity(self.ctx, bootstrap=setup.bootstrap, has_state=mark.index > 0)
        _join_log_and_state(self.journal, mark)
        self.in_force.refresh()
        self.state.begin_with(self.in_force.now)
        self._transport, self.waker = setup.transport, Waker(self._take_in, setup.park)
        self._assemble(setup)
        super().__init__(
            self.state.own_node,
            self.state.nodes,
            conf=_config(self.ctx),
            nodeClass=Peer,
            transport=self.wire,
        )
        self._poller = self.waker
        self._SyncObj__commandsQueue = self.proposals
        self.journal.on_membership = self.in_force.refresh
        self.in_force.listeners.append(self._adopt)
        self.state.handed_index = self.delivery.evolved_index = mark.index
        self.completion.run()

    def _assemble(self, setup: Setup) -> None:
        """Build the concerns; each knows only what it is given here."""
        ctx, settings = self.ctx, setup.settings
        self.apply_queue = ApplyQueue(
            settings.apply_queue_items_max, settings.apply_queue_bytes_max, self.waker.wake
        )
        self.proposals = Proposals(ctx)
        self.lease = Lease(ctx)
        self.probes = Probes(ctx, self.lease)
        self.delivery = Delivery(
            ctx, lambda: self.apply_queue.room, self.proposals, self.lease, self.probes
        )
        self.lost_writes = LostWriteDetection(ctx, setup.notes)
        self.comparison = Comparison(ctx, self.identity)
        self.elections = Elections(
            ctx, self.identity, self.lease, self.lost_writes, self.comparison
        )
        self.forming = Forming(ctx, self.identity, self.in_force)
        self.leaderless = Leaderless(ctx, self.identity, self.elections, self.forming)
        self.rebuilding = rebuilding = RebuildingDisks(ctx)
        self.foreign = ForeignDisks(ctx, self.identity, self.in_force, self.forming)
        self.replication = Replication(
            ctx, self.lease, self.probes, rebuilding, self.foreign, setup.snapshots
        )
        self.transfer = LeadershipTransfer(ctx, self.lease, self.proposals)
        self.changes = MembershipChanges(
            ctx, self.in_force, self.replication, rebuilding, self.foreign, self.transfer
        )
        self.proposals.judge_change = self.changes.command_for
        self.removals = Removals(ctx, self.identity, self.in_force)
        rebuild = Rebuild(ctx, self.identity, self.foreign)
        self.appending = Appending(ctx, self.identity, self.elections, rebuild)
        snapshots, wake = setup.snapshots, self.waker.wake
        self.installing = Installing(ctx, self.appending, self.delivery, snapshots, wake)
        self.state_digests = StateDigests(ctx)
        self.watch = Watch(
            ctx,
            identity=self.identity,
            lease=self.lease,
            delivery=self.delivery,
            proposals=self.proposals,
            replication=self.replication,
            rebuilding=rebuilding,
            snapshots=snapshots,
        )
        shown, transfer_of = self.comparison.shown, self.elections.transfer_of
        self.completion = Completion(
            ctx, self.journal, setup.transport, self.apply_queue, self.watch, shown
        )
        self.wire = EngineTransport(self.state, ctx.ready, setup.transport, transfer_of)

    def _adopt(self, membership: Membership) -> None:
        """Count by another membership from here on: it came into force, or was cut off (S25 a)."""
        self.state.adopt(membership, self.ctx.now())
        self.replication.adopt()
        self.lease.recount()

    def _take_in(self) -> None:
        """Take in what arrived, and complete what it asks for."""
        self._transport.poll()
        self.delivery.hint_leader()
        self.completion.run()

    # -- the tick --------------------------------------------------------------------

    def _onTick(self, timeToWait: float = 0.0) -> None:
        """Complete what is due, as nothing counts before it is flushed (E-5); tick the concerns."""
        self.completion.run()
        self.installing.tick()
        self.state_digests.tick()
        self.removals.tick()
        self.foreign.tick()
        self.forming.tick()
        self.leaderless.tick()
        self.identity.lower_promise()
        self.lost_writes.tick()
        self.comparison.tick()
        if self.ctx.on(Switch.S21_TWICE):
            self.journal.keep_twice(self.ctx.now())
        self.elections.tick()
        if self.transfer.is_open:
            self.transfer.tick()
        if self.probes.tick():
            self.state.heartbeat_at = 0.0
        super()._onTick(timeToWait)

    def _checkCommandsToApply(self) -> None:
        """Send what was stamped at once, not with the next heartbeat; sync while it travels.

        Neither committed entries nor the heartbeat wait for the stamping or for that sync.
        """
        self.completion.run()
        if self.delivery.may_go_on:
            self.waker.wake()
        before = self.journal.last_index
        super()._checkCommandsToApply()
        if self.state.is_leader and self.journal.last_index != before:
            self.replication.send_round()
            if self.state.voters.is_alone:
                self.waker.wake()  # its own sync commits: no ack will end the wait before a timer
        self.completion.run()

    def _SyncObj__applyLogEntries(self) -> bool:
        """Check the invariants, then hand over entries instead of applying them here (E-6, S4)."""
        if self.state.handed_index < self.state.commit_index:
            self.watch.look()
        self.delivery.deliver()
        return False

    def _SyncObj__sendAppendEntries(self) -> None:
        """Check the invariants; send by our own replication loop (E-1, E-7, E-10, S7)."""
        self.watch.look()
        self.replication.send_round()

    def _SyncObj__tryLogCompaction(self) -> None:
        """Cut the journal behind a snapshot (S4): no dump, no fork, no rewriting (E-3, E-4)."""
        self.delivery.cut(self.replication.stream_floor)

    # -- role and term -----------------------------------------------------------------

    def _SyncObj__connectedToAnyone(self) -> bool:
        """Say, when the engine's timer fires, whether this node may stand (S10, S19).

        The engine asks for company. `Elections.tick` has looked for a vote and pre-votes as well.
        """
        return self.elections.may_stand_now

    def _SyncObj__generateRaftTimeout(self) -> float:
        """Draw the election timeout from injected chance, so that a seed reproduces a run."""
        return self.ctx.election_timeout()

    def _SyncObj__onBecomeLeader(self) -> None:
        """Begin to lead; the own no-op counts only when durable, also in a cluster of one (E-5)."""
        self.replication.begin_to_lead()
        self.comparison.began_to_lead()
        super()._SyncObj__onBecomeLeader()
        self.changes.began_to_lead()
        self.completion.run()

    def _SyncObj__setState(self, newState: int) -> None:
        """Change the role; a step-down ends the lease and waits for no sync (S4, S10 c)."""
        led = self.state.is_leader
        if led and newState != LEADER:
            self.lease.revoke()
        super()._SyncObj__setState(newState)
        if led and newState != LEADER:
            self.delivery.stepped_down()
        elif not led and newState == LEADER:
            self.delivery.began_to_lead()

    def _SyncObj__setCurrentTerm(self, term: int, votedForNodeId: str | None) -> None:
        """Store a new term, after the lease is revoked (S10 c)."""
        if term != self.state.term and self.ctx.on(Switch.S10_REVOKE):
            self.lease.revoke()
        super()._SyncObj__setCurrentTerm(term, votedForNodeId)

    # -- what must never run --------------------------------------------------------------

    def _SyncObj__loadDumpFile(self, clearJournal: bool) -> NoReturn:  # noqa: FBT001 - the engine's
        """Refuse: there is no dump (E-3); `SnapshotSource.latest` finds the state."""
        raise AssertionError(f"the engine wants to load a dump (clearJournal={clearJournal})")

    def _SyncObj__doApplyCommand(self, command: bytes) -> NoReturn:
        """Refuse: nothing is unpickled or executed in the tick thread (E-6)."""
        raise AssertionError(f"the engine wants to execute a command of {len(command)} bytes")


def _context(setup: Setup, state: EngineState, log: Log) -> Context:
    return Context(
        node_id=setup.node_id,
        cluster_id=setup.cluster_id,
        settings=setup.settings,
        switches=setup.switches,
        now=setup.now,
        random=setup.random,
        state=state,
        log=log,
        ready=Ready(log.changes),
    )


def _config(ctx: Context) -> SyncObjConf:
    """Return the engine's settings; the features that are off stay off (E-3, E-8, E-9)."""
    settings = ctx.settings
    return SyncObjConf(
        autoTick=False,
        appendEntriesUseBatch=True,
        appendEntriesPeriod=settings.heartbeat,
        raftMinTimeout=settings.election_min,
        raftMaxTimeout=settings.election_max,
        connectionTimeout=settings.election_max,
        leaderFallbackTimeout=settings.election_max,
        commandsWaitLeader=False,
        dynamicMembershipChange=False,
        fullDumpFile=None,
        journalFile=ctx.log,
    )


def _join_log_and_state(journal: Log, mark: SnapshotMark) -> None:
    """Make the log continue the state that a start loads: an install may be half done (S18)."""
    if mark.index < journal.anchor_index:
        raise EngineStopped(
            f"the state directory ends at index {mark.index}, the journal begins after "
            f"{journal.anchor_index}: what lies between is lost on this node. Move both "
            "directories away and start the node again, so that it rebuilds from its peers"
        )
    held = journal.term_at(mark.index)
    if held not in {None, mark.term} and mark.index <= journal.commit_index:
        raise EngineStopped(
            f"entry {mark.index} is committed in the journal in term {held}, the state directory "
            f"says term {mark.term}: one of them is not this node's. Move both directories away "
            "and start the node again, so that it rebuilds from its peers"
        )
    if held != mark.term:
        journal.rebase(mark.index, mark.term)
