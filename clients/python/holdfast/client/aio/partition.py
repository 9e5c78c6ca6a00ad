"""A partition as the user holds it: its name, its token, and whether it may still be acted on.

Asks the session and the clock at each look, from any thread, and remembers only why it
was lost. `sync` adds its own way to wait.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, cast

from holdfast.client._rpc.clock import boot_ms
from holdfast.client._rpc.fork_guard import is_this_process, this_process
from holdfast.client._session.session_io import TopicPartition
from holdfast.client.errors import OwnershipLost

if TYPE_CHECKING:
    from holdfast.client._session.loss import LostReason
    from holdfast.client._session.member_session import MemberSession
    from holdfast.client._session.session_io import Grant


class _Event(Protocol):
    def is_set(self) -> bool: ...
    def set(self) -> None: ...


class Revocation:
    """Whether a partition is revoked or lost, and why; the member sets it, any thread reads it."""

    def __init__(self, event: _Event) -> None:
        self.event = event
        self.reason: LostReason | None = None
        self.process = this_process()

    def begin(self, reason: LostReason | None = None) -> None:
        """Tell the user to let go of it, or, with a reason, that it is lost. In the loop."""
        self.reason = self.reason or reason
        self.event.set()


@dataclass(frozen=True, slots=True)
class HeldPartition:
    """One partition under one grant, in either shell. Safe to use from any thread.

    `fencing_token`: pass it to the storage that you write to, and let that refuse a lower one for
    this (group, partition): only this excludes a process that is late by any length of time (S13).
    `predecessor_ms`: how long after the grant an old holder may still have run (S12). `revocation`
    is the member's own.
    """

    topic: str
    number: int
    grant: Grant = field(repr=False)
    _session: MemberSession = field(repr=False, compare=False)
    revocation: Revocation = field(repr=False, compare=False)

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
        """Whether this process may act on the partition at this moment, by the clock (S11).

        Still true while `on_revoked` runs, for the work in hand; a loop asks `revoking`. False for
        good once it was lost: what comes back, comes as another one with `on_assigned`.
        """
        session, lost = self._session, self.revocation.reason is not None
        held = session.may_act(self.name, self.grant, boot_ms())
        return held and not lost and is_this_process(self.revocation.process)

    @property
    def revoking(self) -> bool:
        """Whether to stop working on it: it is to be let go of, or it is not owned any more.

        True from before `on_revoked` is called, and for good.
        """
        asked = self.revocation.event.is_set() or self._session.lets_go_of(self.name)
        return asked or not self.owned

    @property
    def lost_reason(self) -> LostReason | None:
        """Why it was lost, from `on_lost` on; None: it was not, or was let go of as asked."""
        return self.revocation.reason

    def check(self) -> None:
        """Call before each write. Raises OwnershipLost when the partition is not ours any more.

        A process can be frozen between this check and the write: only the token that the storage
        compares closes that gap.
        """
        if self.owned:
            return
        about = f"Partition {self.number} of {self.topic!r} is not owned under token "
        if not is_this_process(self.revocation.process):
            raise OwnershipLost(
                f"{about}{self.fencing_token} here: this process was forked from the one that "
                "owns it."
            )
        why = "" if self.lost_reason is None else f" ({self.lost_reason})"
        raise OwnershipLost(
            f"{about}{self.fencing_token} any more{why}. Drop the work in hand; the session "
            "rejoins by itself and says so with on_assigned."
        )


@dataclass(frozen=True, slots=True)
class Partition(HeldPartition):
    """One partition under one grant, of a member for asyncio."""

    revocation: Revocation = field(
        repr=False, compare=False, default_factory=lambda: Revocation(asyncio.Event())
    )

    async def wait_revoked(self, timeout_ms: int | None = None) -> bool:
        """Wait until `revoking`; False: that was not so within `timeout_ms` (None: no limit)."""
        timeout_s = None if timeout_ms is None else timeout_ms / 1000
        event = cast("asyncio.Event", self.revocation.event)
        try:
            async with asyncio.timeout(timeout_s):
                while not self.revoking:
                    await event.wait()
        except TimeoutError:
            return self.revoking
        return True
