"""Reads: linearizable by lease or barrier on the leader, or stale on any node if so asked.

A node that was just started answers neither before it has caught up (docs/adr/0038).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.raft.api import NotLeader
from holdfast.runtime.errors import CatchingUp, NotCoordinator
from holdfast.runtime.time.clock import boot_ms
from holdfast.server.security.seen_addresses import for_caller
from holdfast.v1 import extras_pb2 as x

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.coordinator.model.events import Record
    from holdfast.coordinator.model.state import State
    from holdfast.coordinator.projections.history import Histories
    from holdfast.runtime.groups.actors import Actors
    from holdfast.runtime.ports import ReplicaLike
    from holdfast.runtime.replica.catch_up import CatchUp


class Reads:
    """Provides a state to answer from, and tells how fresh it is.

    As the replica's listener it notes when something was last applied. On a follower the leader's
    message that there is nothing newer counts as well, or an idle cluster's state would look old.
    """

    def __init__(
        self,
        replica: ReplicaLike,
        actors: Actors,
        catch_up: CatchUp,
        now_ms: Callable[[], int] = boot_ms,
    ) -> None:
        self._replica, self._actors, self._now_ms = replica, actors, now_ms
        self._catch_up = catch_up
        self._heard_ms = now_ms()

    async def state(self, extras: x.RequestExtras) -> tuple[State, x.ResponseExtras]:
        """Return a state to answer from, and the answer's extras; raises CommandFailed."""
        if extras.stale_ok:
            return self._stale()
        self._actors.check_serving()
        if not self._replica.lease_valid():
            await self._barrier()
        state = self._replica.state
        return state, x.ResponseExtras(
            applied_index=state.applied_index, log_time_ms=self._replica.log_time_ms()
        )

    @property
    def histories(self) -> Histories:
        """What is told of rebalances; of the moment of a state that was given in this turn."""
        return self._replica.histories

    async def _barrier(self) -> None:
        try:
            await self._replica.read_barrier()
        except NotLeader as error:
            raise NotCoordinator(self._actors.address_of(error.leader)) from error

    def check_caught_up(self) -> None:
        """Raise CommandFailed if this node was started and may have told of a newer state (S4)."""
        if not self._catch_up.is_done():
            raise CatchingUp

    def _stale(self) -> tuple[State, x.ResponseExtras]:
        self.check_caught_up()
        state = self._replica.state
        fresh = self._replica.lease_valid()
        return state, x.ResponseExtras(
            applied_index=state.applied_index,
            log_time_ms=self._replica.log_time_ms(),
            age_ms=0 if fresh else self._now_ms() - self._newest_ms(state),
            leader_hint=for_caller(self._actors.leader_address),
        )

    def _newest_ms(self, state: State) -> int:
        """Return when this state was last known to be the newest, in ms of the boot clock."""
        status = self._replica.status()
        if status.current_index > state.applied_index or status.current_at < 0:
            return self._heard_ms
        return max(self._heard_ms, int(status.current_at * 1000))

    def listen(self) -> None:
        """Subscribe to the replica."""
        self._replica.subscribe(
            on_leading=self.on_leading,
            on_not_leading=self.on_not_leading,
            on_applied=self.on_applied,
        )

    def on_leading(self, term: int) -> None:
        """Note the time: this node's own no-op was applied just now."""
        del term
        self._heard_ms = self._now_ms()

    def on_not_leading(self) -> None:
        """Note the time: until now the state was the newest."""
        self._heard_ms = self._now_ms()

    def on_applied(self, records: Sequence[Record], index: int) -> None:
        """Note the time: something newer was applied just now."""
        del records, index
        self._heard_ms = self._now_ms()
