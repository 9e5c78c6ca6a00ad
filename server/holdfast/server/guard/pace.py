"""How much of the event loop's time one caller's long calls may take.

Bounds keep one call short; a caller that sends the largest allowed call again and again would still
keep the loop busy. So each caller's long calls take a part of the loop's time at most. For time
beyond its share a caller waits: the call itself where it yields to the loop (`slices`), so that
other calls wait for one slice at most, and the caller's next call before it is served. Calls of a
usual length cost nothing and never wait. The rule is the generic cell rate algorithm (ITU-T I.371):
one number is kept for each caller, the time at which it has paid for what it took. Knows no calls.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from holdfast.runtime.time.clock import boot_s

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator

Result = TypeVar("Result")

SHARE: Final = 0.1
"""Part of the loop's time that one caller's long calls may take."""
WAIT_S_MAX: Final = 5.0
"""Longest wait of a call at the head of its caller's queue, in seconds."""
REFUSED_S: Final = 0.002
REFUSED_S_MAX: Final = 0.5
"""Seconds of the loop that a refusal counts for: a refusal is expensive in gRPC, and a long message
that is refused was received in one go. Each further refusal counts twice as much as the last, up to
the second number, until a call is served again: to repeat a refused call quickly does not help."""
FREE_S: Final = 0.001
"""Seconds of the loop that each call has free: several times what a usual call takes."""
AHEAD_S: Final = 0.02
"""Seconds of the loop that a caller may take at once after a pause: rare calls never wait."""
BYTE_S: Final = 3e-8
"""Seconds that a byte of a request counts, in addition to the call's own steps: it was received,
decrypted and copied before, in part by threads that share a processor with the loop."""
KEPT_MAX: Final = 1_024
"""Accounts that are kept before those of callers that owe nothing are dropped."""
_DOUBLED_MAX: Final = 16


class _Account:
    """One caller: the time at which it has paid, and the queue of its calls until then."""

    __slots__ = ("paid_at", "queue", "refusals")

    def __init__(self) -> None:
        self.paid_at = 0.0
        self.refusals = 0
        self.queue = asyncio.Lock()


class Pace:
    """What callers took of the loop, and how long they wait for it."""

    def __init__(
        self,
        now: Callable[[], float] = boot_s,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`now`: a clock in seconds, which also measures the steps of calls."""
        self.now, self._sleep = now, sleep
        self._accounts: dict[str, _Account] = {}

    @property
    def remembered(self) -> int:
        """The number of callers with an account."""
        return len(self._accounts)

    async def turn(self, who: str) -> None:
        """Wait until this caller has paid for what it took; its calls go on in order of arrival.

        Costs nothing for a caller that owes nothing.
        """
        account = self._accounts.get(who)
        if account is None:
            return
        if account.paid_at <= self.now() and not account.queue.locked():
            return
        async with account.queue:
            until = min(account.paid_at, self.now() + WAIT_S_MAX)
            while (left := until - self.now()) > 0:
                await self._sleep(left)

    async def timed(
        self, who: str, call: Coroutine[Any, Any, Result], size: int = 0, calls: int = 1
    ) -> Result:
        """Carry out a call, and charge its caller for each of its steps on the loop.

        `size`: bytes of its request. `calls`: how many calls it carries out, each with time that is
        free. Time in which it waits between its steps costs nothing.
        """
        return await _Steps(self, who, call, FREE_S * calls - size * BYTE_S)

    @contextlib.contextmanager
    def step(self, who: str, size: int) -> Iterator[None]:
        """Charge the caller for the body as one step of a call. `size`: as of `timed`."""
        began = self.now()
        try:
            yield
        finally:
            seconds = self.now() - began + size * BYTE_S - FREE_S
            if seconds > 0:
                self.charge(who, seconds)

    def charge(self, who: str, seconds: float) -> None:
        """Charge this caller for time on the loop; its next long call waits for it."""
        account = self._account(who)
        now = self.now()
        paid_at = max(account.paid_at, now - AHEAD_S / SHARE) + seconds / SHARE
        account.paid_at = min(paid_at, now + WAIT_S_MAX)

    def refused(self, who: str, size: int = 0) -> None:
        """Charge this caller for a call refused for what it asked. `size`: as of `timed`."""
        account = self._account(who)
        if account.paid_at + WAIT_S_MAX < self.now():
            account.refusals = 0  # the last one was long ago
        seconds = (REFUSED_S + size * BYTE_S) * 2.0**account.refusals
        self.charge(who, min(seconds, REFUSED_S_MAX))
        account.refusals += account.refusals < _DOUBLED_MAX

    def served(self, who: str) -> None:
        """Reset the count of refusals: one of this caller's calls was served."""
        account = self._accounts.get(who)
        if account is not None:
            account.refusals = 0

    def _account(self, who: str) -> _Account:
        account = self._accounts.get(who)
        if account is None:
            self._forget()
            account = self._accounts[who] = _Account()
        return account

    def _forget(self) -> None:
        """Drop the accounts that owe nothing; one that owes something was used a moment ago."""
        if len(self._accounts) >= KEPT_MAX:
            now = self.now()
            self._accounts = {
                who: account
                for who, account in self._accounts.items()
                if account.paid_at > now or account.queue.locked()
            }


class _Steps(Generic[Result]):
    """A coroutine whose steps are timed: each from where it resumes until it waits again.

    Where it yields to the loop, it waits until its caller has paid.
    """

    __slots__ = ("_call", "_free_s", "_pace", "_who")

    def __init__(
        self, pace: Pace, who: str, call: Coroutine[Any, Any, Result], free_s: float
    ) -> None:
        self._pace, self._who, self._call, self._free_s = pace, who, call, free_s

    def __await__(self) -> Generator[Any, Any, Result]:
        resume: Callable[[Any], Any] = self._call.send
        value: Any = None
        clock = self._pace.now
        while True:
            began = clock()
            try:
                awaited = resume(value)
            except StopIteration as ended:
                return cast("Result", ended.value)
            finally:
                value = None  # an exception would keep the call's frames, and they its request
                self._took(clock() - began)
            try:
                value = yield awaited
                if awaited is None:  # asyncio.sleep(0): it yields to the loop
                    yield from self._pace.turn(self._who).__await__()
                resume = self._call.send
            except BaseException as error:  # noqa: BLE001 - a cancellation, too, is the call's own
                resume, value = self._call.throw, error

    def _took(self, seconds: float) -> None:
        self._free_s -= seconds
        if self._free_s < 0:
            self._pace.charge(self._who, -self._free_s)
            self._free_s = 0
