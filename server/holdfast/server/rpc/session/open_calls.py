"""What a Session stream has open: its calls by number, and the bytes of their messages.

A call is open until its answer is written, or nobody wants it any more. While too many are open, or
too many bytes, the stream is not read. Parked calls count for neither: they wait for other members,
whose calls may stand behind them in the stream. What bounds the members of groups bounds them, for
a member has one parked join and one parked sync at most. Knows no kind of call, and neither reads
nor writes.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from google.protobuf.message import Message

    from holdfast.runtime.groups.actors import Call
    from holdfast.server.rpc.calls.member_call import MemberCall
    from holdfast.server.traces.traces import CallTrace

OPEN_MAX: Final = 4_096
"""Open calls, parked ones apart, from which a stream is not read."""
ANSWERED_MAX: Final = 512
"""Calls with answers that are not written, from which a stream is not read: more come together only
for a caller that does not read them. Short calls take 5 kB each and count for no bytes."""

PUSHES_MAX: Final = 10_000
"""Pushes that wait for a slow reader; above this, further ones (mere hints) are left out."""
_GIVEN_UP: Final = "CANCELLED"
"""How the trace of a call ends that nobody wants any more: as that of a unary one."""


class LongMessage:
    """The bytes of a message that has open calls: a request keeps all of its message in memory."""

    __slots__ = ("_calls", "_give_back")

    def __init__(self, calls: int, give_back: Callable[[], None]) -> None:
        """`give_back`: called when none of its calls is open any more."""
        self._calls, self._give_back = calls, give_back

    def answered(self, calls: int = 1) -> None:
        """Note that so many of its calls are open no more."""
        self._calls -= calls
        if not self._calls:
            self._give_back()


class OpenCall:
    """An open call. `made`: its response, or its end, if no actor was asked."""

    __slots__ = (
        *("answered", "call", "code", "kind", "made", "message", "number", "parked", "request"),
        "trace",
    )

    def __init__(
        self,
        number: int,
        kind: MemberCall[Any, Any] | None,
        request: Any,  # noqa: ANN401 - of any kind
        message: LongMessage | None,
    ) -> None:
        """`kind` None: a kind that this node does not know. `message` None: a short one."""
        self.number, self.kind, self.request, self.message = number, kind, request, message
        self.call: Call | None = None
        self.made: Message | Exception | None = None
        self.trace: CallTrace | None = None
        self.answered = self.parked = False
        self.code: int | str | None = None
        """How it ended: the error code of its answer, or the name of its status."""

    def close(self) -> None:
        """Let go of its message, for it needs nothing of it any more."""
        if self.message is not None:
            self.message.answered()
            self.message = None

    def traced(self, code: int | str) -> None:
        """End the trace of a call, if it has one: it has its answer, or gets none."""
        if self.trace is not None:
            self.trace.end(code)
            self.trace = None

    def give_up(self) -> None:
        """Close it without an answer; a join or sync is parked no more (S17)."""
        if self.call is not None:
            self.call.give_up()
        self.traced(_GIVEN_UP)
        self.close()


class OpenCalls:
    """The open calls of one stream."""

    def __init__(self) -> None:
        self._calls: dict[int, OpenCall] = {}
        self._answered = self._parked = 0
        self._room = asyncio.Event()

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def counted(self) -> int:
        """How many are open and not parked."""
        return len(self._calls) - self._parked

    def among(self, numbers: Iterable[int]) -> set[int]:
        """Return which of these are numbers of open calls."""
        return self._calls.keys() & numbers

    def add(self, one: OpenCall) -> None:
        """Note that a call is open."""
        self._calls[one.number] = one

    def park(self, one: OpenCall) -> None:
        """Note that a call waits for other members; it gives the bytes of its message back."""
        one.parked = True
        self._parked += 1
        if one.kind is not None:
            one.request = one.kind.kept(one.request)
        one.close()
        self._room.set()

    def done(self, one: OpenCall) -> None:
        """Note that a call has its answer, so that it is parked no more."""
        self._unpark(one)
        if self._calls.get(one.number) is one:  # not given up in this very turn of the loop
            one.answered = True
            self._answered += 1

    def _unpark(self, one: OpenCall) -> None:
        if one.parked:
            one.parked = False
            self._parked -= 1

    def take(self, one: OpenCall) -> bool:
        """Free the number of a call that is to be answered; False: it was given up meanwhile."""
        if self._calls.get(one.number) is not one:
            return False
        del self._calls[one.number]
        self._answered -= one.answered
        self._room.set()
        return True

    def give_up(self, number: int) -> OpenCall | None:
        """Give a call up that nobody wants any more; return it, if one has this number."""
        one = self._calls.pop(number, None)
        if one is None:
            return None
        self._unpark(one)
        self._answered -= one.answered
        one.give_up()
        self._room.set()
        return one

    def give_up_all(self) -> None:
        """Give up all of them: nobody would get the answers."""
        for number in tuple(self._calls):
            self.give_up(number)

    async def room(self) -> None:
        """Wait until fewer are open, and fewer answers wait, than a stream may have."""
        while self.counted >= OPEN_MAX or self._answered >= ANSWERED_MAX:
            self._room.clear()
            await self._room.wait()
