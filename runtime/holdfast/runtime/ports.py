"""What runtime and server need of a log: a replica and its history, or a test's stand-ins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio

    from holdfast.coordinator.events import Part
    from holdfast.coordinator.ids import Position
    from holdfast.coordinator.state import State
    from holdfast.raft.api import Committed, Status
    from holdfast.raft.history import Page
    from holdfast.raft.replica import Listener


class ReplicaLike(Protocol):
    """One node's view of the cluster's state. All in one event loop (S4)."""

    node_id: str
    leading_term: int
    leader: str | None
    record_bytes: int

    @property
    def state(self) -> State:
        """The newest evolved state."""

    @property
    def chain_head(self) -> bytes:
        """The head of the hash chain over all records (S3); empty before the first."""

    def propose(self, part: Part) -> asyncio.Future[Committed]:
        """Have a part committed."""

    def lease_valid(self) -> bool:
        """Whether a linearizable read may be answered right now."""

    async def read_barrier(self) -> None:
        """Return when the state holds all that was committed before."""

    async def quorum_probe(self) -> None:
        """Return when a majority has heard this leader after the call (S9)."""

    def log_time_ms(self) -> int:
        """The cluster's log time now."""

    def subscribe(self, listener: Listener) -> None:
        """Tell `listener` about everything from now on."""

    def transfer(self, peer: str) -> None:
        """Hand the leadership over."""

    def status(self) -> Status:
        """The engine's moment."""


class HistoryLike(Protocol):
    """One node's event log: `holdfast.raft.history.History`."""

    async def read(self, start: Position | None, limit: int) -> Page:
        """Read at most `limit` records from `start` (None: the first held) on. Raises NotHeld."""
