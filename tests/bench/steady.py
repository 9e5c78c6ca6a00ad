"""Callers that go on at an even pace whatever happens, and follow the leader.

An election lengthens their calls instead of ending the row: it is what the row is about.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, Self

import grpc.aio

from bench import changes
from bench.rig import Running
from bench.talk import Line, Unexpected
from holdfast.v1 import offset_pb2 as o

CALL_S: Final = 5.0
"""A call without an answer for so long is made anew."""
GIVE_UP_S: Final = 60.0
"""Calls that nobody serves for so long end the row."""


class Following:
    """One caller's connection to whoever leads."""

    def __init__(self, running: Running) -> None:
        self._talk = running.talk
        self._line = self._talk.line(self._talk.leader.address)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._line.channel.close()

    async def until_served(self, act: Callable[[Line], Awaitable[None]]) -> None:
        """Do it on the connection; if that fails, again on one to whoever leads by then."""
        until = time.perf_counter() + GIVE_UP_S
        while True:
            try:
                async with asyncio.timeout(CALL_S):
                    return await act(self._line)
            except (Unexpected, grpc.aio.AioRpcError, EOFError, TimeoutError):
                if time.perf_counter() > until:
                    raise
            await self._line.channel.close()
            self._line = self._talk.line((await self._talk.find_leader()).address)


class Steady:
    """So many callers that commit, each for a group of its own, until the context ends."""

    def __init__(self, running: Running, callers: int, pace_s: float) -> None:
        """`pace_s`: seconds from an answer to a caller's next call."""
        self.times: list[float] = []
        """Seconds of every commit so far, repetitions included."""
        self._running, self._callers, self._pace_s = running, callers, pace_s
        self._numbers = itertools.count()
        self._ending = False
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(self._caller(at)) for at in range(self._callers)]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._ending = True
        await asyncio.gather(*self._tasks)

    async def during(self, seconds: float) -> list[float]:
        """The commits that end within so many seconds from now. Raises what ended a caller."""
        first = len(self.times)
        done, _ = await asyncio.wait(
            self._tasks, timeout=max(0.0, seconds), return_when=asyncio.FIRST_EXCEPTION
        )
        for task in done:
            task.result()
        return self.times[first:]

    async def _caller(self, at: int) -> None:
        async with Following(self._running) as following:
            while not self._ending:
                began = time.perf_counter()
                request = changes.commit(at, next(self._numbers))
                await following.until_served(partial(_commit, request=request))
                self.times.append(time.perf_counter() - began)
                await asyncio.sleep(self._pace_s)


async def _commit(line: Line, request: o.OffsetCommitRequest) -> None:
    changes.check(await line.offset.OffsetCommit(request))
