"""How much of the event loop's time one caller's long calls may take.

Bounds keep one call short; a caller that sends the largest there is again and again would still
have the loop for itself. So each caller's long calls take a part of the loop's time at most. What
they took beyond it is waited for: by the call itself where it gives way (`slices`), so that nobody
meets more than one slice of it, and by the caller's next one before anything is done for it. Calls
of a usual length cost nobody anything and never wait. The rule is the generic cell rate algorithm
(ITU-T I.371): of each caller one number is kept, when it has paid for what it took. Knows no calls.
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
"""Of the loop's time, for one caller's long calls."""
WAIT_S_MAX: Final = 5.0
"""Seconds that a call waits at most when its turn has come, whatever its caller took."""
REFUSED_S: Final = 0.002
REFUSED_S_MAX: Final = 0.5
"""Seconds of the loop that a refusal counts for: it is dear in gRPC, and a long message that is
refused has been received in one go. Each one after the first counts twice the last, up to the
second number, until a call is served again: who repeats what is refused is not helped by speed."""
FREE_S: Final = 0.001
"""Seconds of the loop that any call may take for nothing: several times what a usual one takes."""
AHEAD_S: Final = 0.02
"""Seconds of the loop that a caller may take at once after a rest: who calls seldom never waits."""
BYTE_S: Final = 3e-8
"""Seconds a byte of a request counts beside the call's own steps: by then it has been received,
decrypted and copied, in part by threads that the loop shares a processor with."""
KEPT_MAX: Final = 1_024
"""Callers that are remembered, before those that owe nothing are forgotten."""
_DOUBLED_MAX: Final = 16


class _Account:
    """One caller: when it has paid, and the queue of its calls until then."""

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
        """How many callers it has an account of."""
        return len(self._accounts)

    async def turn(self, who: str) -> None:
        """Wait until this caller has paid for what it took; in the order in which its calls came.

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

    async def timed(self, who: str, call: Coroutine[Any, Any, Result], size: int = 0) -> Result:
        """Carry out a call, and charge its caller for each of its steps on the loop.

        `size`: the bytes of its request. What it waits for between its steps costs nothing.
        """
        return await _Steps(self, who, call, FREE_S - size * BYTE_S)

    @contextlib.contextmanager
    def step(self, who: str, size: int) -> Iterator[None]:
        """A single step of a call, which the body is. `size`: as of `timed`."""
        began = self.now()
        try:
            yield
        finally:
            seconds = self.now() - began + size * BYTE_S - FREE_S
            if seconds > 0:
                self.charge(who, seconds)

    def charge(self, who: str, seconds: float) -> None:
        """Have this caller's next long call wait for so much of the loop that it has taken."""
        account = self._account(who)
        now = self.now()
        paid_at = max(account.paid_at, now - AHEAD_S / SHARE) + seconds / SHARE
        account.paid_at = min(paid_at, now + WAIT_S_MAX)

    def refused(self, who: str, size: int = 0) -> None:
        """One of this caller's calls was ended early, for what it asked. `size`: as of `timed`."""
        account = self._account(who)
        if account.paid_at + WAIT_S_MAX < self.now():
            account.refusals = 0  # the last one was long ago
        seconds = (REFUSED_S + size * BYTE_S) * 2.0**account.refusals
        self.charge(who, min(seconds, REFUSED_S_MAX))
        account.refusals += account.refusals < _DOUBLED_MAX

    def served(self, who: str) -> None:
        """One of this caller's calls was not."""
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
        """Those that owe nothing; whoever owes something was here a moment ago."""
        if len(self._accounts) >= KEPT_MAX:
            now = self.now()
            self._accounts = {
                who: account
                for who, account in self._accounts.items()
                if account.paid_at > now or account.queue.locked()
            }


class _Steps(Generic[Result]):
    """A coroutine whose steps are timed: from each time it goes on until it waits again.

    Where it gives way it waits until its caller has paid.
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
                if awaited is None:  # that is how a coroutine gives way
                    yield from self._pace.turn(self._who).__await__()
                resume = self._call.send
            except BaseException as error:  # noqa: BLE001 - a cancellation, too, is the call's own
                resume, value = self._call.throw, error

    def _took(self, seconds: float) -> None:
        self._free_s -= seconds
        if self._free_s < 0:
            self._pace.charge(self._who, -self._free_s)
            self._free_s = 0
