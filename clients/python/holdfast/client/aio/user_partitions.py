"""The partitions that the user has, and those not yet taken from `owned`.

Follows what the session says; decides nothing about ownership. No IO, no clock.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

from holdfast.client._session.session_io import Assigned, Lost, Revoke

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.client._session.member_session import MemberSession
    from holdfast.client._session.session_io import Grant, TopicPartition
    from holdfast.client.aio.partition import HeldPartition


PartitionT = TypeVar("PartitionT", bound="HeldPartition")


class UserPartitions(Generic[PartitionT]):
    """What a member's user holds, and what of it the user has not yet taken from `owned`.

    `make`: partitions as the user's shell knows them.
    """

    def __init__(
        self, session: MemberSession, make: Callable[[str, int, Grant, MemberSession], PartitionT]
    ) -> None:
        self._session = session
        self._make = make
        self._held: dict[TopicPartition, PartitionT] = {}
        self._fresh: deque[PartitionT] = deque()
        self._overtaken: set[TopicPartition] = set()
        """Lost while on_revoked runs for them or is due, and yet to be told by on_lost."""

    @property
    def owned(self) -> tuple[PartitionT, ...]:
        """Return the partitions that are owned at this moment; from any thread."""
        held = tuple(self._held.values())  # in one step: the loop's thread may change it meanwhile
        return tuple(partition for partition in held if partition.owned)

    def warn(self, told: Revoke | Lost) -> None:
        """Mark partitions that go at once: work on them has to stop before the callback's turn."""
        reason = told.reason if isinstance(told, Lost) else None
        for name in told.partitions:
            if name in self._held:
                self._held[name].revocation.begin(reason)
        if isinstance(told, Lost) and told.after_revoked:
            self._overtaken.update(told.partitions)

    def concerned(self, told: Assigned | Revoke | Lost) -> tuple[PartitionT, ...]:
        """Return the partitions of an output: new ones, or those that go."""
        if not isinstance(told, Assigned):
            return tuple(self._held[name] for name in told.partitions if name in self._held)
        return tuple(
            self._make(topic, number, told.grant, self._session)
            for topic, number in told.partitions
        )

    def begin(self, told: Assigned | Revoke | Lost, concerned: tuple[PartitionT, ...]) -> None:
        """Update before the callback: add new partitions, stop to offer those that go."""
        if isinstance(told, Assigned):
            self._held |= {partition.name: partition for partition in concerned}
        else:
            self.warn(told)  # also what was not told to the user yet when it was lost
            gone = {partition.name for partition in concerned}
            self._fresh = deque(one for one in self._fresh if one.name not in gone)

    def finish(self, told: Assigned | Revoke | Lost, concerned: tuple[PartitionT, ...]) -> None:
        """Update after the callback: offer new partitions, remove those that went."""
        if isinstance(told, Assigned):
            self._fresh.extend(concerned)
            return
        if isinstance(told, Lost):
            self._overtaken.difference_update(told.partitions)
        for partition in concerned:
            if partition.name not in self._overtaken:
                self._held.pop(partition.name, None)

    def take(self) -> PartitionT | None:
        """Return the next partition for `owned`, None if there is none; skip those not owned."""
        while self._fresh:
            partition = self._fresh.popleft()
            if not partition.revoking:
                return partition
        return None
