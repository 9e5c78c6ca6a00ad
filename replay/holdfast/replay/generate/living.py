"""A member as its group's clients know it, whatever the protocol. A plain value."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.coordinator.model.commands import Command
    from holdfast.coordinator.model.ids import InstanceId, MemberId


class Living(NamedTuple):
    """One member."""

    member_id: MemberId
    instance_id: InstanceId | None
    epoch: int
    """What it commits with: the generation, or its epoch."""
    away: bool
    """It was released, and has not returned (S12)."""


class Clients(Protocol):
    """The clients of one group at one moment, by the group's protocol."""

    @property
    def living(self) -> tuple[Living, ...]:
        """The members, oldest first."""

    def unsettled(self) -> list[Command]:
        """Return what has to be sent until the group is stable; nothing: it is, or has nobody."""

    def joins(self, instances: Sequence[InstanceId | None]) -> list[Command]:
        """Return the joins of newcomers; None: a dynamic one."""

    def return_of(self, instance_id: InstanceId) -> Command:
        """Return the join of another process of a static member."""

    def release(self, member: Living) -> Command:
        """Return what a static member says before a planned restart."""

    def leave(self, member: Living) -> Command:
        """Return a member's goodbye."""
