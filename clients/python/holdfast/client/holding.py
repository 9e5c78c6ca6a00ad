"""The partitions that the user was handed, by what the session told. No IO, no clock."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from holdfast.client.partition import Partition
from holdfast.client.signals import Assigned, Lost, Revoke

if TYPE_CHECKING:
    from holdfast.client.protocol import TopicPartition
    from holdfast.client.session import Session


class Holding:
    """What a member's user holds, and what of it the user has not yet taken from `owned`."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._held: dict[TopicPartition, Partition] = {}
        self._fresh: deque[Partition] = deque()

    @property
    def owned(self) -> tuple[Partition, ...]:
        """What may be acted on at this moment."""
        return tuple(partition for partition in self._held.values() if partition.owned)

    def concerned(self, told: Assigned | Revoke | Lost) -> tuple[Partition, ...]:
        """The partitions that something told is about: new ones, or those that go."""
        if not isinstance(told, Assigned):
            return tuple(self._held[name] for name in told.partitions if name in self._held)
        return tuple(
            Partition(topic, number, told.grant, self._session) for topic, number in told.partitions
        )

    def begin(self, told: Assigned | Revoke | Lost, concerned: tuple[Partition, ...]) -> None:
        """Before the user hears of it: what is new is held, what goes is offered no more."""
        if isinstance(told, Assigned):
            self._held |= {partition.name: partition for partition in concerned}
        else:
            gone = {partition.name for partition in concerned}
            self._fresh = deque(one for one in self._fresh if one.name not in gone)

    def finish(self, told: Assigned | Revoke | Lost, concerned: tuple[Partition, ...]) -> None:
        """After the user has heard of it: what is new can be taken, what went is not held."""
        if isinstance(told, Assigned):
            self._fresh.extend(concerned)
        else:
            for partition in concerned:
                self._held.pop(partition.name, None)

    def take(self) -> Partition | None:
        """The next one for `owned`; None: nothing new. What is not owned any more is left out."""
        while self._fresh:
            partition = self._fresh.popleft()
            if partition.owned:
                return partition
        return None
