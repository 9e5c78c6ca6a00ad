"""The interfaces that the runtime needs: a log, its replica, history, and work beside its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    from holdfast.coordinator.consumer.assignors import Target
    from holdfast.coordinator.model.effects import ComputeTarget
    from holdfast.coordinator.model.events import Part, Record
    from holdfast.coordinator.model.ids import Position
    from holdfast.coordinator.model.state import State
    from holdfast.coordinator.projections.history import Histories
    from holdfast.raft.api import Item, ProposalId, Status
    from holdfast.raft.membership import Change, Membership
    from holdfast.runtime.event_log.history import Page


class Engine(Protocol):
    """The replicated log, as the replica uses it; `holdfast.raft` implements it."""

    def propose(self, payload: bytes, term: int) -> ProposalId:
        """Propose an entry that was decided in `term` (S1)."""

    def change(self, change: Change, term: int) -> ProposalId:
        """Propose a change of nodes, as leader of `term` (S25)."""

    @property
    def membership(self) -> Membership:
        """The membership in force (S25 a)."""

    def on_membership(self, tell: Callable[[Membership], None]) -> None:
        """Have `tell` called, from any thread, when another membership comes into force."""

    def take(self, limit: int) -> list[Item]:
        """Return the oldest items of the FIFO."""

    def on_items(self, notify: Callable[[], None]) -> None:
        """Have `notify` called, from any thread, when the FIFO stops being empty."""

    def lease_valid(self, now: float) -> int:
        """Return the term whose state may be read at `now`, or 0 (S10 c)."""

    def read_barrier(self) -> int:
        """Begin a linearizable read; its number comes back in an item of the FIFO."""

    def begin_probe(self) -> int:
        """Begin a check that a majority hears this leader after now (S9 b); as `read_barrier`."""

    def transfer(self, to: str) -> None:
        """Transfer the leadership (S10 d)."""

    def evolved(self, index: int) -> None:
        """Report that entries up to `index` are part of the state now (S4)."""

    def publish(self, index: int, digest: bytes) -> None:
        """Have the digest of the state at `index` compared with the peers' (S3)."""

    def status(self) -> Status:
        """Describe this moment, for people."""


class Passage(NamedTuple):
    """When an entry went to the engine, came back committed, and was applied: boot clock, s."""

    sent: float
    committed: float
    applied: float


class Committed(NamedTuple):
    """The fate of a committed part."""

    first: Position  # of its first record; the others follow without a gap
    applied: bool  # False: every replica skipped it; decide again (S2)
    impossible: bool = False  # skipped since it cannot be applied (S6); deciding again is useless
    passage: Passage | None = None  # the way of its entry, for traces


class Anchor(NamedTuple):
    """What a node tells of its log after entry `index`, for a replay to compare."""

    index: int  # type: ignore[assignment]  # `tuple.index` is not missed
    log_time_ms: int
    """Of its state (S8)."""
    chain: bytes
    """Head of the chain over all records (S3)."""
    digest: bytes
    """Of its state alone."""
    recovery_number: int
    """Of its state (S13): a restore drops entries, and what was told of them holds no more."""


class ReplicaLike(Protocol):
    """One node's view of the cluster's state. All methods belong to one event loop (S4)."""

    node_id: str
    leading_term: int
    leader: str | None
    record_bytes: int

    @property
    def state(self) -> State:
        """The newest applied state."""

    @property
    def histories(self) -> Histories:
        """What is told of rebalances, at the same moment as `state`."""

    @property
    def chain_head(self) -> bytes:
        """The head of the hash chain over all records (S3); empty before the first."""

    async def anchor(self) -> Anchor:
        """Return chain and digest at an index that is applied now (S3). Raises EngineStopped."""

    def propose(self, part: Part) -> asyncio.Future[Committed]:
        """Propose a part; the future has its fate."""

    @property
    def membership(self) -> Membership:
        """The nodes of the cluster: what is in force, committed or not (S25 a)."""

    async def change_nodes(self, change: Change) -> None:
        """Return when a change of nodes is applied (S25). Raises ChangeRefused, RaftError."""

    def on_membership(self, listener: Callable[[Membership], None]) -> None:
        """Have `listener` called in the loop when another membership comes into force."""

    def lease_valid(self) -> bool:
        """Return whether a linearizable read may be answered right now."""

    async def read_barrier(self) -> None:
        """Wait until the state holds all that was committed before."""

    async def quorum_probe(self) -> None:
        """Wait until a majority has heard this leader after the call (S9)."""

    def log_time_ms(self) -> int:
        """Return the cluster's log time now, in ms."""

    def subscribe(
        self,
        *,
        on_leading: Callable[[int], None] | None = None,
        on_not_leading: Callable[[], None] | None = None,
        on_applied: Callable[[Sequence[Record], int], None] | None = None,
        on_stopped: Callable[[str], None] | None = None,
    ) -> None:
        """Register callbacks; they are called in the loop, between two items, and must not block.

        `on_leading`, with the term: this node leads, and its state holds everything that was
        committed before. `on_not_leading`: it leads no longer; nothing decided here may be answered
        any more. `on_applied`, with the entry's index: these records are part of the state now.
        `on_stopped`, with the reason: the node's log stopped; the process should end.
        """

    def transfer(self, peer: str) -> None:
        """Transfer the leadership."""

    def status(self) -> Status:
        """Return the engine's state at this moment."""


class ComputesTargets(Protocol):
    """Computes targets beside a node's work; `holdfast.runtime.groups.target_maker.in_child`."""

    async def __call__(self, asked: ComputeTarget) -> Target:
        """Compute what was asked for. Raises OSError or ValueError; may be cancelled."""


class HistoryLike(Protocol):
    """One node's event log: `holdfast.runtime.event_log.history.History`."""

    async def read(self, start: Position | None, limit: int) -> Page:
        """Read at most `limit` records from `start` (None: the first held) on. Raises NotHeld."""

    async def live(self, start: Position, limit: int) -> Page:
        """Read the same from a place behind the last boundary on; no segment is opened."""
