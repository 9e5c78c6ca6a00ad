"""Everything that would otherwise come from outside, pinned at its source.

Chance: the kernel's (`os.urandom`, and with it `secrets`, `uuid4` and `SystemRandom`) and the
shared `random` module's. Time: the clocks that Holdfast asks, answered by the running process's.
Channels: what the client library opens. Children: those that seal (sealing.py). Hashes are pinned
by the interpreter's start (run.py).
"""

from __future__ import annotations

import os
import random
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any
from unittest import mock

from simulation.process import BOOTED_AT_S, running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.runtime.event_log.child import Ended

WALL_S = 1_700_000_000.0
"""What everybody's wall clock shows when the simulation begins."""


def boot_seconds() -> float:
    """The running process's boot clock."""
    process = running.process
    return process.clock.seconds() if process is not None else BOOTED_AT_S


async def run_child(module: str, *arguments: str) -> Ended:
    """What stands for a child process of the running process."""
    process = running.process
    if process is None or process.child is None:
        raise RuntimeError(f"{module} is started by nobody")
    return await process.child(module, *arguments)


@contextmanager
def pinned(seed: int, open_channel: Callable[..., Any]) -> Iterator[None]:
    """Nothing comes from outside while this is open."""
    kernel = random.Random(f"{seed} kernel")
    shared = random.getstate()

    def clock_gettime(_clock: int) -> float:
        return boot_seconds()

    def clock_gettime_ns(_clock: int) -> int:
        return round(boot_seconds() * 1e9)

    def wall() -> float:
        return WALL_S + boot_seconds() - BOOTED_AT_S

    def wall_ns() -> int:
        return round(wall() * 1e9)

    patches = (
        mock.patch.object(os, "urandom", kernel.randbytes),
        mock.patch.object(random, "_urandom", kernel.randbytes),
        mock.patch.object(time, "clock_gettime", clock_gettime),
        mock.patch.object(time, "clock_gettime_ns", clock_gettime_ns),
        mock.patch.object(time, "time", wall),
        mock.patch.object(time, "time_ns", wall_ns),
        mock.patch("holdfast.client._rpc.caller.open_channel", open_channel),
        mock.patch("holdfast.runtime.event_log.seal.run_child", run_child),
    )
    with ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        random.seed(f"{seed} shared")
        try:
            yield
        finally:
            random.setstate(shared)
