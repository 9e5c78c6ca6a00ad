"""A replica in memory, for one node: everything commits, unless a test says otherwise.

It applies with the core's own `apply_entry`, so versions, positions and skips are the real ones. A
test holds back commits (`hold`), has them fail (`fail_next`), or slips in a change of its own.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.coordinator.kernel.apply import apply_entry
from holdfast.coordinator.kernel.group_types import TYPES
from holdfast.coordinator.model.events import Cause, LogEntry, Part, Proposed
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.state import State
from holdfast.coordinator.projections.rebalances import followed
from holdfast.coordinator.structures.pmap import PMap
from holdfast.raft.api import NotLeader, PeerStatus, Role, Status
from holdfast.raft.membership import Membership, after
from holdfast.runtime.ports import Anchor, Committed, Passage
from holdfast.runtime.replica.callbacks import Callbacks
from holdfast.storage.codec.state_image import digest_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.coordinator.model.events import Event, Record
    from holdfast.coordinator.projections.history import Histories
    from holdfast.raft.membership import Change


BEGAN_MS = 1_700_000_000_000
"""The log time of a new replica."""


class FakeReplica:
    """One node's log; `hold` set: what is proposed waits for `release`."""

    def __init__(self) -> None:
        self.record_bytes = 0
        self.impossible_next = False
        self.passage = Passage(1.0, 2.0, 3.0)
        self.node_id = "node-1"
        self.leading_term = 0
        self.leader: str | None = None
        self.state = State()
        self.histories: Histories = PMap()
        self.chain_head = b""
        self.hold = False
        self.fail_next: Exception | None = None
        self.probes_pass = True
        self.lease = True
        self.barrier_passes = True
        self.barriers = 0
        self.probes = 0
        self.records: list[Record] = []
        self.proposed: list[Part] = []
        self.transferred_to: str | None = None
        self.callbacks = Callbacks()
        self.subscribe = self.callbacks.subscribe
        self.membership = Membership.of(("node-1", "node-2"))
        self.membership_listeners: list[Callable[[Membership], None]] = []
        self.on_membership = self.membership_listeners.append
        self._waiting: deque[tuple[Part, asyncio.Future[Committed]]] = deque()
        self._now_ms = BEGAN_MS

    async def anchor(self) -> Anchor:
        state = self.state
        digest = digest_of(state).to_bytes(8, "big")
        head = self.chain_head or bytes(32)
        place = state.applied_index, state.log_time_ms
        return Anchor(*place, head, digest, state.recovery_number)

    def lead(self, term: int = 1) -> None:
        """Win an election and apply the own no-op."""
        self.leading_term, self.leader = term, self.node_id
        self.state = self.state._replace(applied_index=self.state.applied_index + 1)
        self.callbacks.leading(term)

    def step_down(self, leader: str | None = None) -> None:
        """Lose the leadership; what was proposed and not committed stays undecided."""
        self.leading_term, self.leader = 0, leader
        self.callbacks.not_leading()

    def propose(self, part: Part) -> asyncio.Future[Committed]:
        future: asyncio.Future[Committed] = asyncio.get_running_loop().create_future()
        self.proposed.append(part)
        if self.fail_next is not None:
            future.set_exception(self.fail_next)
            self.fail_next = None
            return future
        self._waiting.append((part, future))
        if not self.hold:
            asyncio.get_running_loop().call_soon(self.release)
        return future

    @property
    def waits(self) -> bool:
        """Whether something is proposed and not committed."""
        return bool(self._waiting)

    def release(self) -> None:
        """Commit everything that waits."""
        while self._waiting:
            part, future = self._waiting.popleft()
            applied = self._apply(part)
            impossible, self.impossible_next = self.impossible_next, False
            if not future.done():
                first = Position(self.state.applied_index, 0)
                fate = applied and not impossible
                future.set_result(Committed(first, fate, impossible, self.passage))

    def settle(self, error: Exception) -> None:
        """End everything that waits with an error, as a lost leadership does."""
        while self._waiting:
            self._waiting.popleft()[1].set_exception(error)

    def slip_in(self, group_id: str, *events: Event) -> None:
        """Change a group behind its actor's back, so that what it has proposed is skipped (S2)."""
        made = tuple(Proposed(event, Cause("test", "test")) for event in events)
        version = self.state.version_of(group_id)
        assert self._apply(Part(group_id, self.leading_term, version, made))

    def _apply(self, part: Part) -> bool:
        self._now_ms += 1
        entry = LogEntry(self._now_ms, self._now_ms, (part,))
        index = self.state.applied_index + 1
        done = apply_entry(self.state, index, self.leading_term or part.term, entry)
        self.state = done.state
        self.histories = followed(self.histories, TYPES, done.steps)
        self.records.extend(done.records)
        if done.records:
            self.callbacks.applied(done.records, index)
        return not done.skipped

    async def change_nodes(self, change: Change) -> None:
        """Change the nodes by the real rules of a membership; a cluster of this one node agrees."""
        if not self.leading_term:
            raise NotLeader(self.leader)
        if self.fail_next is not None:
            error, self.fail_next = self.fail_next, None
            raise error
        self.membership = after(self.membership, change)
        for each in self.membership_listeners:
            each(self.membership)

    def lease_valid(self) -> bool:
        return self.lease and bool(self.leading_term)

    async def read_barrier(self) -> None:
        self.barriers += 1
        if not self.leading_term or not self.barrier_passes:
            raise NotLeader(self.leader)

    async def quorum_probe(self) -> None:
        self.probes += 1
        if not self.probes_pass:
            raise NotLeader(None)

    def log_time_ms(self) -> int:
        return self._now_ms

    def transfer(self, peer: str) -> None:
        self.transferred_to = peer

    def status(self) -> Status:
        peers = (
            PeerStatus(
                "node-2",
                connected=True,
                acked_index=5,
                next_index=6,
                streaming=False,
                counted=True,
            ),
        )
        index = self.state.applied_index
        role: Role = "leader" if self.leading_term else "follower"
        status = Status(
            role, self.leading_term, self.leader, "member", index, index, index, 1, index, peers
        )
        return replace(status, catch_up_index=index)
