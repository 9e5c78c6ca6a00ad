"""The engine's thread, as moments on the schedule.

The real thread ticks when it is woken or something is due, waits in each sync, and shares the FIFO
with the loop. Here a tick is one moment; what it synced keeps the thread busy for as long as the
disk took, and until then nothing that shows the sync leaves: no message, no item. Everything else
passes straight to the real engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.raft.api import EngineStopped, NodeRemoved

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.raft.api import Item, ProposalId, Status
    from holdfast.raft.membership import Change, Membership
    from holdfast.raft.pysyncobj.engine import Engine
    from holdfast.storage.journal.journal import NotedMembership
    from simulation.disk import SyncedJournal
    from simulation.process import Process
    from simulation.schedule import Planned

WAKE_US: Final = 90
"""From being woken to the tick, at most."""
TICK_S: Final = 0.1
"""The longest that a tick waits for something to do."""


class HostedEngine:
    """Implements `holdfast.runtime.replica.replica.Engine`."""

    def __init__(self, engine: Engine, journal: SyncedJournal, process: Process) -> None:
        self.engine = engine
        self._journal, self._process = journal, process
        self._busy_until_us = 0
        self._tick: Planned | None = None
        self._tick_at_us = 0
        self._notify: Callable[[], None] = lambda: None
        self.stopped = False
        self.was_removed = False
        """Whether it ended because it is no node of the cluster any more (S25 e)."""
        self._told_entry = 0
        self.on_committed_nodes: Callable[[NotedMembership, int], None] = lambda _noted, _term: None
        """Called with each committed membership and its term, when this node learns of it."""

    # --- the thread ---

    def start(self) -> None:
        """Begin to tick."""
        self._process.on_resume.append(self.wake)
        self.wake()

    def wake(self) -> None:
        """There is something to do."""
        now = self._process.schedule.now_us
        soon_us = now + 1 + int(self._process.random.random() * WAKE_US)
        self._plan(max(soon_us, self._busy_until_us))

    def departs_us(self) -> int:
        """When what is sent now leaves: after the syncs of this tick."""
        return self._process.schedule.now_us + self._journal.busy_us

    def _plan(self, at_us: int) -> None:
        if self._tick is not None:
            if self._tick_at_us <= at_us:
                return
            self._tick.cancel()
        self._tick_at_us = at_us
        self._tick = self._process.schedule.at(at_us, self._run)

    def _run(self) -> None:
        self._tick = None
        process = self._process
        if self.stopped or not process.runs:
            return
        self._journal.busy_us = 0
        try:
            self.engine.tick(0.0)
        except EngineStopped as stopped:  # the FIFO's last item tells the replica
            self.stopped = True
            self.was_removed = isinstance(stopped.__cause__, NodeRemoved)
        self._tell_nodes()
        now = process.schedule.now_us
        self._busy_until_us = now + self._journal.busy_us
        self._journal.busy_us = 0
        if len(self.engine.overlay.apply_queue):
            process.schedule.at(self._busy_until_us, self._tell)
        if not self.stopped:
            self._plan(self._busy_until_us + self._pause_us())
            self._wake_if_asked()

    def _tell_nodes(self) -> None:
        overlay = self.engine.overlay
        if overlay.in_force.index <= self._told_entry:
            return
        noted = overlay.journal.membership_at(overlay.state.commit_index)
        if noted is not None and self._told_entry < noted.index <= overlay.state.commit_index:
            self._told_entry = noted.index
            self.on_committed_nodes(noted, overlay.journal.term_at(noted.index) or 0)

    def _pause_us(self) -> int:
        local_s = self.engine.patience(TICK_S)
        return max(1_000, round(local_s * 1e6 / self._process.clock.rate))

    def _tell(self) -> None:
        if self._process.alive:
            self._notify()

    def _wake_if_asked(self) -> None:
        if self.engine.overlay.waker.is_woken:
            self.wake()

    @property
    def is_syncing(self) -> bool:
        """Whether the thread waits for the disk."""
        return self._process.schedule.now_us < self._busy_until_us

    # --- any thread ---

    def propose(self, payload: bytes, term: int) -> ProposalId:
        """Offer an entry."""
        proposal = self.engine.propose(payload, term)
        self._wake_if_asked()
        return proposal

    def change(self, change: Change, term: int) -> ProposalId:
        """Offer a change of nodes."""
        proposal = self.engine.change(change, term)
        self._wake_if_asked()
        return proposal

    @property
    def membership(self) -> Membership:
        """Which nodes are in force."""
        return self.engine.membership

    def on_membership(self, tell: Callable[[Membership], None]) -> None:
        """Have `tell` called when others are."""
        self.engine.on_membership(tell)

    def lease_valid(self, now: float) -> int:
        """The term whose state may be read."""
        return self.engine.lease_valid(now)

    def read_barrier(self) -> int:
        """Begin a linearizable read."""
        number = self.engine.read_barrier()
        self._wake_if_asked()
        return number

    def begin_probe(self) -> int:
        """Ask whether a majority hears this leader."""
        number = self.engine.begin_probe()
        self._wake_if_asked()
        return number

    def transfer(self, to: str) -> None:
        """Hand the leadership over."""
        self.engine.transfer(to)
        self._wake_if_asked()

    def publish(self, index: int, digest: bytes) -> None:
        """Have a digest compared with the peers'."""
        self.engine.publish(index, digest)

    def status(self) -> Status:
        """This moment, for people."""
        return self.engine.status()

    # --- the consumer ---

    def on_items(self, notify: Callable[[], None]) -> None:
        """Have `notify` called when there are items: after each tick that leaves some."""
        self._notify = notify

    def take(self, limit: int) -> list[Item]:
        """The oldest items; none while the tick that made them still syncs."""
        if self.is_syncing:
            return []
        items = self.engine.take(limit)
        self._wake_if_asked()
        return items

    def evolved(self, index: int) -> None:
        """The state holds everything up to `index`."""
        self.engine.evolved(index)
        self._wake_if_asked()

    def cut(self, index: int) -> None:
        """A durable snapshot contains everything up to `index`."""
        self.engine.cut(index)
