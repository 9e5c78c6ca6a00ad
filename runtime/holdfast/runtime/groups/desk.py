"""What an actor needs of its node: calls, the state, the log, the deadlines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio

    from holdfast.coordinator.model.effects import Effect, Renew
    from holdfast.coordinator.model.events import Part
    from holdfast.coordinator.model.ids import GroupId
    from holdfast.coordinator.model.state import State
    from holdfast.coordinator.model.usage import Usage
    from holdfast.runtime.groups.pending_calls import Calls
    from holdfast.runtime.ports import Committed


class Desk(Protocol):
    """The part of the node that an actor needs."""

    calls: Calls

    @property
    def state(self) -> State:
        """The newest applied state."""

    @property
    def term(self) -> int:
        """The term in which this node leads."""

    @property
    def log_time_ms(self) -> int:
        """The cluster's log time now (S8)."""

    @property
    def leader_address(self) -> str:
        """`host:port` of the node that leads, for clients; "" if unknown."""

    def propose(self, part: Part) -> asyncio.Future[Committed]:
        """Propose a part; the future has its fate."""

    def used(self) -> Usage:
        """Return the usage of the whole cluster, with the growth that groups have proposed."""

    def claim(self, group_id: GroupId, growth: Usage, handed_out: int) -> None:
        """Count the growth that a group has proposed, and its unused member ids."""

    def carry_out(self, group_id: GroupId, effect: Effect) -> None:
        """Start, stop or renew a deadline, look topics up, or compute a target."""

    def renew(self, group_id: GroupId, renewal: Renew) -> None:
        """Renew a session; the same as to carry the effect out, for the most frequent one."""

    def address_of(self, node: str | None) -> str:
        """Return the `host:port` at which clients reach a node; "" if unknown."""

    def idle(self, group_id: GroupId) -> None:
        """Take note that the actor is idle; it may be dropped if it keeps nothing."""
