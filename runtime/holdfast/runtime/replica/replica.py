"""The replica: committed entries applied in order, and the way to get a part committed.

Everything here runs in one asyncio loop, which alone changes the state (S4). The engine ticks in
a thread of its own; its FIFO is drained here, item by item: entries, role changes and snapshot
installs in the order in which they happened. Knows no group rules, no gRPC, no LMDB.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from holdfast.coordinator.model.events import LogEntry, Part
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.state import State
from holdfast.coordinator.projections.history import Histories
from holdfast.raft.api import (
    Applied,
    BarrierPassed,
    DiskLow,
    EngineStopped,
    EntryTooLarge,
    Installed,
    Item,
    LeaderSeen,
    NotLeader,
    OutcomeUnknown,
    Overloaded,
    ProbeFailed,
    ProbePassed,
    ProposalId,
    Refused,
    RoleChanged,
    Status,
    Stopped,
)
from holdfast.raft.membership import Change, Membership
from holdfast.runtime.ports import Anchor, Committed, Engine, Passage
from holdfast.runtime.replica.callbacks import Callbacks
from holdfast.runtime.replica.digests import Digests
from holdfast.runtime.replica.group_commit import (
    LINGER_GAP_S,
    LINGER_PARTS,
    GroupCommit,
    OwnEntry,
    WaitingPart,
    fitting,
)
from holdfast.runtime.replica.log_time import Clocks, LogTime
from holdfast.runtime.replica.node_changes import NodeChanges, why
from holdfast.runtime.replica.state_machine import ALL, AppliedEntry, Snapshots, StateMachine
from holdfast.storage.codec.event_codec import CodecError, encode_part, join_parts
from holdfast.storage.durations import Durations
from holdfast.storage.errors import StateContradicted

logger = logging.getLogger(__name__)

ITEMS_A_TURN = 256
"""How many items are handled before the loop may serve its sockets again."""


_NOTHING = OwnEntry(LogEntry(0, 0, ()), b"", ())


class Replica:
    """One node's view of the cluster's state."""

    def __init__(
        self,
        node_id: str,
        engine: Engine,
        machine: StateMachine,
        snapshots: Snapshots,
        clocks: Clocks,
        disk_low: Callable[[], bool] = lambda: False,
        linger_parts: int = LINGER_PARTS,
    ) -> None:
        """Connect the parts; `start` begins to drain the FIFO.

        `disk_low`: refuse proposals now (S20). `linger_parts`: after an entry of this many
        parts the next one lingers for more (`group_commit`).
        """
        self.node_id = node_id
        self.leading_term = 0
        self.leader: str | None = None
        self.stopped_because: str | None = None
        self.record_bytes = 0
        """Size of all records that were applied since the start."""
        self._engine, self._machine, self._snapshots = engine, machine, snapshots
        self._clocks, self._log_time = clocks, LogTime(clocks.boot)
        self._log_time.continue_from(machine.state.log_time_ms)
        self._disk_low = disk_low
        self._callbacks = Callbacks()
        self.subscribe = self._callbacks.subscribe
        self._group_commit, self._flushing = GroupCommit(linger_parts), False
        self._node_changes = NodeChanges(engine)
        self.commits = Durations()
        """From the proposal of a part until it is applied here, and its callers can be told."""
        self._proposed_at: deque[float] = deque()
        self._waiting: dict[ProposalId, OwnEntry] = {}
        self._probes: dict[int, asyncio.Future[None]] = {}
        self._items: deque[Item] = deque()
        self._digests = Digests(engine.publish, self._on_stop)
        self._paused = False
        self._term = 0
        self._loop: asyncio.AbstractEventLoop | None = None

    # --- for the server ---

    @property
    def state(self) -> State:
        """The newest applied state, an immutable value."""
        return self._machine.state

    @property
    def histories(self) -> Histories:
        """The rebalance histories at the same moment as `state`."""
        return self._machine.histories

    @property
    def chain_head(self) -> bytes:
        """The head of the hash chain over all records (S3); empty before the first."""
        return self._machine.heads.get(ALL, b"")

    async def anchor(self) -> Anchor:
        """Return what a replay of the log can be compared with later (S3). Raises EngineStopped."""
        return await self._digests.anchor(lambda: self._machine)

    def start(self) -> None:
        """Begin to drain the engine's FIFO in the running loop."""
        self._loop = asyncio.get_running_loop()
        self._engine.on_items(self._notify)
        self._node_changes.start(self._loop)
        self._notify()

    def propose(self, part: Part) -> asyncio.Future[Committed]:
        """Propose a part; parts that come while entries are under way share the next one.

        The future's errors: `NotLeader`, `Overloaded`, `EntryTooLarge`, `DiskLow` (not applied),
        `OutcomeUnknown` (S5).
        """
        future: asyncio.Future[Committed] = asyncio.get_running_loop().create_future()
        try:
            self._group_commit.add(part, fitting(encode_part(part), self.state), future)
            self._proposed_at.append(self._clocks.boot())
        except (Overloaded, EntryTooLarge, CodecError) as error:
            _fail(future, error)
        self._flush_soon()
        return future

    @property
    def membership(self) -> Membership:
        """The nodes of the cluster: what is in force, committed or not (S25 a)."""
        return self._engine.membership

    async def change_nodes(self, change: Change) -> None:
        """Return when a change of nodes is applied (S25).

        Raises ChangeRefused with a sentence for people, NotLeader, Overloaded, DiskLow,
        EngineStopped: nothing was changed. Raises OutcomeUnknown (S5). NotLeader names the heir
        if this node leads and is to be removed: it hands the leadership over first (S25 d).
        """
        self._check_may_propose()
        if not self.leading_term:
            raise NotLeader(self.leader)
        await self._node_changes.propose(change, self.leading_term, self.state.level)

    def on_membership(self, listener: Callable[[Membership], None]) -> None:
        """Have `listener` called in the loop when another membership comes into force."""
        self._node_changes.listeners.append(listener)

    def lease_valid(self) -> bool:
        """Return whether a linearizable read may be answered from `state` now."""
        leading = self.leading_term
        return bool(leading) and self._engine.lease_valid(self._clocks.boot()) == leading

    async def read_barrier(self) -> None:
        """Return when `state` holds all that was committed before the call. Raises NotLeader."""
        if not self.lease_valid():
            await self._ask(self._engine.read_barrier)

    async def quorum_probe(self) -> None:
        """Return when a majority has heard this leader after the call (S9). Raises NotLeader."""
        await self._ask(self._engine.begin_probe)

    def log_time_ms(self) -> int:
        """Return the cluster's log time now (S8); on a node that does not lead, its estimate.

        A follower advances the last applied log time by its boot clock as well: otherwise the first
        request ids that a client makes on an idle cluster would be too old already (S15).
        """
        return self._log_time.now_ms(self.state.log_time_ms)

    def transfer(self, peer: str) -> None:
        """Hand the leadership to `peer`; proposals are refused from now on (S10 d)."""
        self._engine.transfer(peer)

    def status(self) -> Status:
        """Describe the engine at this moment, for people and metrics."""
        return self._engine.status()

    async def snapshot(self) -> None:
        """Make the present state durable behind the journal (S18)."""
        await self._snapshots.take_now(self._machine, self._term)

    async def close(self) -> None:
        """Make the applied state durable; the caller that started the engine stops it."""
        await self._snapshots.close(self._machine, self._term)

    def waiting(self) -> tuple[int, int]:
        """Return how many parts wait for an entry, and how many own entries for their fate."""
        return len(self._group_commit), len(self._waiting)

    # --- proposals ---

    def _flush_soon(self) -> None:
        """Flush at the end of this turn of the loop, together with parts that still come in it."""
        if self._group_commit and not self._flushing:
            self._flushing = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        """Offer the waiting parts in as few entries as the target size allows; or wait for more."""
        if self._group_commit and self._may_offer() and self._lingers():
            asyncio.get_running_loop().call_later(LINGER_GAP_S, self._flush)
            return
        self._flushing = False
        while self._group_commit and self._may_offer():
            self._offer(self._group_commit.take())

    def _lingers(self) -> bool:
        """Return whether to wait for more parts.

        Those of another term will be refused at once (S1).
        """
        now = asyncio.get_running_loop().time()
        return self._group_commit.term == self.leading_term and self._group_commit.lingers(now)

    def _may_offer(self) -> bool:
        """Return whether an entry may be offered; parts of another term need not wait (S1).

        The engine refuses those.
        """
        term = self._group_commit.term
        under_way = sum(proposal.term == term for proposal in self._waiting)
        return term != self.leading_term or self._group_commit.may_follow(under_way)

    def _offer(self, batch: list[WaitingPart]) -> None:
        since = [self._proposed_at.popleft() for _ in batch]
        parts = tuple([waiting.part for waiting in batch])
        entry = LogEntry(self.log_time_ms(), int(self._clocks.wall() * 1000), parts)
        content = join_parts(entry, [w.content for w in batch])
        try:
            self._check_may_propose()
            proposal = self._engine.propose(content, parts[0].term)
        except Exception as error:  # noqa: BLE001 - whoever waits is told, whatever it is
            for waiting in batch:
                _fail(waiting.future, error)
            return
        futures, sent = [waiting.future for waiting in batch], self._clocks.boot()
        self._waiting[proposal] = OwnEntry(entry, content, futures, since, sent)

    def _check_may_propose(self) -> None:
        if self.stopped_because is not None:
            raise EngineStopped(self.stopped_because)
        if self._disk_low():
            raise DiskLow

    async def _ask(self, begin: Callable[[], int]) -> None:
        if not self.leading_term:
            raise NotLeader(self.leader)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._probes[begin()] = future
        await future

    # --- the FIFO ---

    def _notify(self) -> None:
        """Schedule a drain, because there are items. Any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        """Handle a bounded number of items, then let the loop serve its sockets."""
        if self._paused or self._loop is None:
            return
        if not self._items:
            self._items.extend(self._engine.take(ITEMS_A_TURN))
        while self._items and not self._paused:
            self._handle_or_stop(self._items.popleft())
        self._engine.evolved(self.state.applied_index)
        self._snapshot_or_stop()
        self._flush_soon()
        if self._items or (more := self._engine.take(ITEMS_A_TURN)):
            if not self._items:
                self._items.extend(more)
            self._loop.call_soon(self._drain)

    def _snapshot_or_stop(self) -> None:
        """Take a snapshot if one is due; stop if the state contradicts the stored one (S3, S8)."""
        try:
            self._snapshots.maybe_take(self._machine, self._term)
        except StateContradicted as error:
            logger.critical("alarm: %s", error)
            self._on_stop(str(error))

    def _handle_or_stop(self, item: Item) -> None:
        """Handle an item.

        Stop if that fails, since it cannot be repeated and later items need it.
        """
        try:
            self._handle(item)
        except Exception as error:
            logger.critical("alarm: %s could not be handled", type(item).__name__, exc_info=True)
            self._on_stop(f"{type(item).__name__} could not be handled: {error!r}")

    def _handle(self, item: Item) -> None:
        match item:
            case Applied():
                self._on_applied(item)
            case RoleChanged():
                self._on_role(item)
            case LeaderSeen():
                self.leader = item.leader
            case Refused():
                self._settle(item.proposal, why(item))
            case BarrierPassed() | ProbePassed():
                self._end_probe(item, None)
            case ProbeFailed():
                self._end_probe(item, NotLeader(item.leader))
            case Installed():
                self._paused = True
                self._reloading = asyncio.ensure_future(self._reload())
            case Stopped():
                self._on_stop(item.reason)

    def _on_applied(self, item: Applied) -> None:
        committed = self._clocks.boot()
        try:
            known = self._made_here(item)
            outcome = self._machine.apply(item.index, item.term, item.payload, known)
        except CodecError as error:
            self._on_stop(f"entry {item.index} cannot be read: {error}; upgrade this node")
            return
        self._term = item.term
        self._snapshots.note(outcome, len(item.payload))
        self._digests.note(item.index, self._machine)
        if outcome.records and not self.leading_term:
            self._log_time.continue_from(self.state.log_time_ms)
        if outcome.records:
            records = [stored.record for stored in outcome.records]
            self.record_bytes += sum(len(stored.content) for stored in outcome.records)
            self._callbacks.applied(records, item.index)
        if item.proposal is not None:
            self._commit(item.proposal, item, outcome, committed)

    def _made_here(self, item: Applied) -> LogEntry | None:
        """Return the own entry that these bytes encode, to spare decoding; None if another node's.

        Decoding would give an equal value (S4).
        """
        offered = _NOTHING if item.proposal is None else self._waiting.get(item.proposal, _NOTHING)
        return offered.entry if offered.content == item.payload else None

    def _commit(
        self, proposal: ProposalId, item: Applied, outcome: AppliedEntry, committed: float
    ) -> None:
        """Tell each part its fate; the records of applied parts follow one another."""
        self._node_changes.applied(proposal)
        offered = self._waiting.pop(proposal, _NOTHING)
        first, now = Position(item.index, 0), self._clocks.boot()
        passage = Passage(offered.sent, committed, now)
        for since in offered.since:
            self.commits.add(now - since)
        for place, future in enumerate(offered.futures):
            applied = bool(item.payload) and place not in outcome.skipped
            if not future.done():
                impossible = outcome.skipped.get(place) == "S6"
                future.set_result(Committed(first, applied, impossible, passage))
            if applied:
                count = len(offered.entry.parts[place].events)
                first = Position(first.index, first.ordinal + count)

    def _on_role(self, item: RoleChanged) -> None:
        self.leader = item.leader
        for proposal in item.unknown:
            self._settle(proposal, OutcomeUnknown("leadership was lost before the commit was seen"))
        was = self.leading_term
        self.leading_term = item.term if item.role == "leader" else 0
        if was:
            self._callbacks.not_leading()
        if self.leading_term:
            self._log_time.continue_from(self._log_time_to_go_on_from())
            self._callbacks.leading(self.leading_term)

    def _log_time_to_go_on_from(self) -> int:
        """Return the last log time, or the wall time at the bootstrap, in milliseconds (S8)."""
        formed = bool(self.state.cluster_id)
        return self.state.log_time_ms if formed else int(self._clocks.wall() * 1000)

    def _settle(self, proposal: ProposalId, error: Exception) -> None:
        self._node_changes.failed(proposal, error)
        for future in self._waiting.pop(proposal, _NOTHING).futures:
            _fail(future, error)

    def _end_probe(
        self, item: BarrierPassed | ProbePassed | ProbeFailed, error: Exception | None
    ) -> None:
        number = item.barrier if isinstance(item, BarrierPassed) else item.probe
        future = self._probes.pop(number, None)
        if future is None or future.done():
            return
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)

    async def _reload(self) -> None:
        """Read the snapshot that was installed and continue from it."""
        try:
            self._machine = await self._snapshots.reload()
            self._digests.forget()
            self._log_time.continue_from(self.state.log_time_ms)
        except Exception as error:  # noqa: BLE001 - a state that cannot be read stops the node
            self._on_stop(f"an installed snapshot cannot be read: {error}")
            return
        self._paused = False
        self._drain()

    def _on_stop(self, reason: str) -> None:
        if self.stopped_because is not None:
            return
        self.stopped_because, self._paused = reason, True
        for proposal in (*self._waiting, *self._node_changes.waiting):
            self._settle(proposal, OutcomeUnknown(reason))
        for number in list(self._probes):
            self._end_probe(ProbeFailed(number, None), NotLeader(None))
        self._callbacks.stopped(reason)
        self.leading_term = 0  # nothing that is asked from here on would ever be answered


def _fail(future: asyncio.Future[Committed], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
