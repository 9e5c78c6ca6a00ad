"""A partition as the user holds it: its name, its token, and whether it may still be acted on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from holdfast.client.clock import boot_ms
from holdfast.client.errors import OwnershipLost
from holdfast.client.protocol import TopicPartition

if TYPE_CHECKING:
    from holdfast.client.session import Session
    from holdfast.client.signals import Grant


class Offset(NamedTuple):
    """How far a partition's work has come, with words of the application's own."""

    value: int
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition under one grant. Safe to use from any thread.

    `fencing_token`: hand it to the storage that you write to, and let it refuse a lower one for
    this (group, partition): that is what excludes a process that is late by any length of time
    (S13). `predecessor_ms`: how long after the grant an old holder may still have run (S12).
    """

    topic: str
    number: int
    grant: Grant = field(repr=False)
    _session: Session = field(repr=False, compare=False)

    @property
    def fencing_token(self) -> int:
        """The token of the grant."""
        return self.grant.fencing_token

    @property
    def predecessor_ms(self) -> int:
        """How long, in milliseconds from the grant, an old holder may still have acted."""
        return self.grant.predecessor_ms

    @property
    def name(self) -> TopicPartition:
        """Topic and number."""
        return TopicPartition(self.topic, self.number)

    @property
    def owned(self) -> bool:
        """Whether this process may act on the partition at this moment, by the clock (S11)."""
        session = self._session
        return session.ownership.held.get(self.name) is self.grant and session.owns(boot_ms())

    def check(self) -> None:
        """Call before each write. Raises OwnershipLost when the partition is not ours any more.

        A process can be frozen between this check and the write: only the token that the storage
        compares closes that gap.
        """
        if not self.owned:
            raise OwnershipLost(
                f"Partition {self.number} of {self.topic!r} is not owned under token "
                f"{self.fencing_token} any more. Drop the work in hand; the session rejoins by "
                "itself and says so with on_assigned."
            )
