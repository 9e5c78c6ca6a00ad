"""The audit of a running node: notes who was refused and what was read, and writes it behind.

A note costs a call about a microsecond and never waits. Each principal has so many records at once
and so many a second; what is left out is counted, and the count is written. What waits for a disk
is bounded; what finds no room is counted, too. Up to a second of records is lost with a crash.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import TYPE_CHECKING, Any, Final

from holdfast.coordinator.model.text import truncate

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.server.audit.files import AuditFiles

logger = logging.getLogger(__name__)

DENIED: Final = "denied"
READ: Final = "read"
CHANGED: Final = "changed"
LEFT_OUT: Final = "left-out"
"""So many records of a principal were not written, since it made too many."""
LOST: Final = "lost"
"""So many records of anybody were not written, since the disk did not take them."""

BURST: Final = 20.0
"""Records of one principal that are written at once."""
A_SECOND: Final = 1.0
"""Records of one principal that are written each second after that."""
PRINCIPALS_MAX: Final = 1_000
"""Principals that are followed one by one; any more share an account."""
OTHERS: Final = "(others)"
WAITING_MAX: Final = 2_000
"""Records that wait for the disk."""
FLUSH_S: Final = 1.0
AGAIN_S: Final = 60.0
"""Seconds until the log tells again that the files cannot be written."""
LAST_S: Final = 1.0
"""How long a stop waits for the last records."""


class _Account:
    """What one principal may still have written, and what was left out since."""

    __slots__ = ("at", "left_out", "tokens")

    def __init__(self, now: float) -> None:
        self.tokens, self.at, self.left_out = BURST, now, 0

    def refill(self, now: float) -> None:
        """Add what has come since."""
        self.tokens = min(BURST, self.tokens + (now - self.at) * A_SECOND)
        self.at = now


class Trail:
    """Notes, and what becomes of them. The loop's thread only; the files are another's."""

    def __init__(
        self,
        files: AuditFiles | None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """`files` None: nothing is kept."""
        self._files, self._clock, self._wall = files, clock, wall
        self._accounts: dict[str, _Account] = {}
        self._waiting: list[dict[str, Any]] = []
        self._lost = 0
        self._told_at = -AGAIN_S
        self._task: asyncio.Task[None] | None = None
        self._ending = asyncio.Event()

    # --- notes ---

    def denied(self, principal: str, call: str, thing: str, why: str) -> None:
        """Note that a call, or a part of one, was refused."""
        self._note(DENIED, principal, call, thing, why)

    def read(self, principal: str, call: str, thing: str) -> None:
        """Note that an administrator reads what leaves nothing on the log."""
        self._note(READ, principal, call, thing, "")

    def changed(self, principal: str, call: str, thing: str, fate: str) -> None:
        """Note a change of which the log does not tell who asked for it."""
        self._note(CHANGED, principal, call, thing, fate)

    def _note(self, kind: str, principal: str, call: str, thing: str, why: str) -> None:
        if self._files is None:
            return
        now = self._clock()
        account = self._accounts.get(principal)
        if account is None:
            account = self._opened(principal, now)
        account.refill(now)
        if account.tokens < 1:
            account.left_out += 1
            return
        account.tokens -= 1
        told = {"principal": truncate(principal), "call": call, "on": truncate(thing), "why": why}
        self._put(kind, {name: text for name, text in told.items() if text})

    def _opened(self, principal: str, now: float) -> _Account:
        key = principal if len(self._accounts) < PRINCIPALS_MAX else OTHERS
        return self._accounts.setdefault(key, _Account(now))

    def _put(self, kind: str, told: dict[str, Any]) -> None:
        if len(self._waiting) >= WAITING_MAX:
            self._lost += 1
            return
        at_ms = int(self._wall() * 1000)
        self._waiting.append({"at_ms": at_ms, "kind": kind, **told})

    # --- writing ---

    def start(self) -> None:
        """Begin to write."""
        if self._files is not None:
            self._task = asyncio.create_task(self._write_for_ever())

    async def stop(self) -> None:
        """Write what waits, unless the disk takes too long, and end."""
        self._ending.set()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=LAST_S)
            self._task.cancel()

    async def _write_for_ever(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_S):
                    await self._ending.wait()
            try:
                await self.flush()
            except Exception:
                logger.exception("a defect: the audit could not be written; it goes on")
            if self._ending.is_set():
                return

    async def flush(self) -> None:
        """Write what waits, in a thread of the loop's pool."""
        self._count()
        if not self._waiting or self._files is None:
            return
        waiting, self._waiting = self._waiting, []
        try:
            await asyncio.to_thread(self._files.append, waiting)
        except OSError as error:
            self._lost += sum(each.get("count", 1) for each in waiting)
            self._tell(error)

    def _count(self) -> None:
        """Put down how much was left out of each principal, as soon as it may have a record."""
        now = self._clock()
        for principal, account in list(self._accounts.items()):
            account.refill(now)
            if account.left_out and account.tokens >= 1:
                account.tokens -= 1
                self._put(LEFT_OUT, {"principal": principal, "count": account.left_out})
                account.left_out = 0
            elif account.tokens >= BURST and not account.left_out:
                del self._accounts[principal]
        if self._lost and len(self._waiting) < WAITING_MAX:
            lost, self._lost = self._lost, 0
            self._put(LOST, {"count": lost})

    def _tell(self, error: OSError) -> None:
        now = self._clock()
        if now - self._told_at >= AGAIN_S:
            self._told_at = now
            logger.error(
                "the audit in %s cannot be written: %s. %d records are lost so far; correct the "
                "disk or its permissions, or set audit.bytes_max = 0 to keep none",
                error.filename or "the data directory", error.strerror or error, self._lost,
            )  # fmt: skip


NO_TRAIL: Final = Trail(None)
"""Notes nothing."""
