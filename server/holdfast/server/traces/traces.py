"""Follows calls that are traced, from their arrival to their answer, and keeps them for the export.

A node without [traces] has none of this: its methods are not wrapped. Of a call that is followed
the loop notes moments alone; spans are made of them in the thread that exports. What waits for that
thread is bounded: a call too many is left out and counted, and never waits. A call's group, members
and principal are not kept, since who reads traces may not read those. Knows no tracing library.
"""

from __future__ import annotations

import os
import random
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from holdfast.runtime.groups.moments import CURRENT, Moments
from holdfast.runtime.time.clock import boot_s
from holdfast.server.metrics.call_counts import UNKNOWN, code_of, name_of, status_of
from holdfast.server.traces.traceparent import parent_in

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import grpc

    from holdfast.server.traces.traceparent import Parent

    Context = grpc.aio.ServicerContext[Any, Any]
    Serve = Callable[[Any, Context], Any]

ResultT = TypeVar("ResultT")
WAITING_MAX: Final = 2_048
"""Calls that have ended and wait for the export; further ones are left out."""


class CallTrace(Moments):
    """One call that is followed."""

    __slots__ = (
        "_traces",
        "began",
        "code",
        "ended",
        "method",
        "parent",
        "span_id",
        "stream",
        "trace_id",
    )

    def __init__(self, traces: Traces, method: str, parent: Parent | None, stream: str) -> None:
        super().__init__(traces.now)
        self._traces, self.method, self.parent, self.stream = traces, method, parent, stream
        self.trace_id = parent.trace_id if parent else traces.chance.getrandbits(128) or 1
        self.span_id = traces.chance.getrandbits(64) or 1
        self.began = self.ended = self.now()
        """Seconds of the boot clock, as its moments."""
        self.code = ""

    async def follow(
        self, call: Awaitable[ResultT], status: Callable[[BaseException], str]
    ) -> ResultT:
        """Await a call in its own task, and end as it does; `status`: names what it raised."""
        current, code = CURRENT.set(self), cast("int | str", UNKNOWN)
        try:
            answer = await call
            code = code_of(answer)
        except BaseException as error:
            code = status(error)
            raise
        finally:
            CURRENT.reset(current)
            self.end(code)
        return answer

    def end(self, code: int | str) -> None:
        """Note how the call ended, and hand it to the export."""
        self.ended = self.now()
        self.code = name_of(code)
        self._traces.put(self)


class Traces:
    """What a node follows: which calls, and those that have ended."""

    def __init__(
        self,
        ratio: float,
        now: Callable[[], float] = boot_s,
        chance: random.Random | None = None,
    ) -> None:
        """`ratio`: the part of calls that is followed, of those whose caller does not say.

        `now`: the boot clock in seconds. `chance`: draws the calls and the ids of spans.
        """
        self.now, self._ratio = now, ratio
        self.chance = chance or random.Random(os.urandom(16))  # noqa: S311 - ids, no secrets
        self._ended: deque[CallTrace] = deque()
        self.exported = self.failed = self.dropped = 0
        """Calls that the collector took, that it did not take, and that found no room here."""

    def begin(self, method: str, parent: Parent | None, stream: str = "") -> CallTrace | None:
        """Follow a call of `service/method`, if its caller does, or by chance if that is silent.

        `stream`: the method of the stream that it came on; "" for a unary call.
        """
        sampled = parent.sampled if parent else self.chance.random() < self._ratio
        return CallTrace(self, method, parent, stream) if sampled else None

    def unary(self, method: str, serve: Serve) -> Serve:
        """Wrap a unary method, named as `service/method`."""

        async def run(raw: Any, context: Context) -> Any:  # noqa: ANN401 - of any method
            trace = self.begin(method, parent_in(context.invocation_metadata()))
            if trace is None:
                return await serve(raw, context)
            return await trace.follow(serve(raw, context), lambda error: status_of(error, context))

        return run

    def put(self, trace: CallTrace) -> None:
        """Keep a call that has ended until it is exported, or count it if there is no room."""
        if len(self._ended) < WAITING_MAX:
            self._ended.append(trace)
        else:
            self.dropped += 1

    def take(self, most: int) -> list[CallTrace]:
        """Remove and return the calls that ended first. Called in the thread that exports."""
        return [self._ended.popleft() for _ in range(min(most, len(self._ended)))]

    def gauges(self) -> dict[str, Callable[[], float]]:
        """Return what the metrics tell of it."""
        return {
            "holdfast_traces_exported_total": lambda: self.exported,
            "holdfast_traces_failed_total": lambda: self.failed,
            "holdfast_traces_dropped_total": lambda: self.dropped,
        }


def wall_ns(now: Callable[[], float] = boot_s) -> Callable[[float], int]:
    """Return what converts seconds of the boot clock to Unix time in ns, by both clocks now.

    Wall time that is set meanwhile moves whole calls; the times within a call stay in order.
    """
    difference = time.time() - now()
    return lambda at: int((difference + at) * 1e9)
