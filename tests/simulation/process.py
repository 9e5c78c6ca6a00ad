"""A process on the virtual clock: its own boot clock, and an event loop that never sleeps.

The loop is asyncio's interface over the one schedule: tasks, futures and timers are the real ones,
only time and the order of things come from here. A process can stand still (SIGSTOP: what arrives
waits, and is found before the timers that ran out meanwhile, as a real loop finds its sockets
first), and it can die between any two callbacks. Knows neither Holdfast nor the network.
"""

from __future__ import annotations

import asyncio
import contextvars
from contextlib import suppress
from heapq import heappop, heappush
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from simulation.schedule import US

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Executor
    from random import Random

    from holdfast.runtime.event_log.child import Ended
    from simulation.computing import Assigner
    from simulation.schedule import Planned, Schedule

BOOTED_AT_S: Final = 1000.0
"""What every boot clock shows at the beginning; not zero, as on a real machine."""
TURN_US: Final = 40
"""How long it takes at most until a loop gets to what has become ready."""
BATCHES: Final = 4
"""How often in a row a loop looks for more that is ready before others have their turn."""
DISK_WORK_US: Final = (50, 2_000)
"""How long what is handed to a thread takes."""

Complaint = dict[str, Any]


class Running:
    """Which process is running at the moment: whose clock and chance are asked for (pinned.py)."""

    process: Process | None = None


running: Final = Running()


class Clock:
    """A machine's boot clock: the true one at a rate of its own."""

    def __init__(self, schedule: Schedule, rate: float = 1.0) -> None:
        self._schedule, self.rate = schedule, rate
        self._base_s, self._origin_us = BOOTED_AT_S + schedule.now_us / US, schedule.now_us

    def seconds(self) -> float:
        """What it shows now."""
        return self._base_s + (self._schedule.now_us - self._origin_us) * self.rate / US

    def set_rate(self, rate: float) -> None:
        """Run at another rate from here on."""
        self._base_s, self._origin_us = self.seconds(), self._schedule.now_us
        self.rate = rate

    def true_us(self, seconds: float) -> int:
        """When, on the true clock, this one shows `seconds`, if its rate stays as it is."""
        return self._origin_us + ceil((seconds - self._base_s) * US / self.rate)


class Process:
    """Something that runs, stands still, and dies."""

    def __init__(
        self, name: str, machine: str, schedule: Schedule, clock: Clock, random: Random
    ) -> None:
        """`machine`: where it runs, which is what the network knows."""
        self.name, self.machine, self.schedule = name, machine, schedule
        self.clock, self.random = clock, random
        self.alive, self.paused = True, False
        self.died_at_us: int | None = None
        self.loop = ProcessLoop(self)  # type: ignore[abstract]  # what nobody calls is left out
        self.on_turn: Callable[[], None] = lambda: None
        self.assigner: Assigner | None = None
        """What runs an assignor for the member in this process, if that does so itself."""
        self.child: Callable[..., Coroutine[Any, Any, Ended]] | None = None
        """What runs the child processes of the node in this process that seal."""
        self.on_resume: list[Callable[[], None]] = []
        self.on_death: list[Callable[[], None]] = []

    @property
    def runs(self) -> bool:
        """Whether it does anything at the moment."""
        return self.alive and not self.paused

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin with this."""
        self.loop.call_soon(self.loop.create_task, work)

    def pause(self) -> None:
        """SIGSTOP."""
        self.paused = True

    def resume(self) -> None:
        """SIGCONT."""
        if self.paused and self.alive:
            self.paused = False
            self.loop.wake()
            for act in self.on_resume:
                act()

    def kill(self) -> None:
        """It does nothing any more, not even clean up."""
        if not self.alive:
            return
        self.alive = False
        self.died_at_us = self.schedule.now_us
        for act in self.on_death:
            act()

    def bury(self) -> None:
        """Let go of whatever a dead process was doing; the last call."""
        self.kill()
        for task in asyncio.all_tasks(self.loop):
            coroutine = task.get_coro()
            assert coroutine is not None
            with suppress(RuntimeError):  # a coroutine that goes on after it was closed
                coroutine.close()
        self.loop.forget()


class ProcessLoop(asyncio.AbstractEventLoop):
    """The part of asyncio's interface that Holdfast and asyncio's own classes use."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._ready: list[asyncio.Handle] = []
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._number = 0
        self._turn: Planned | None = None
        self._turn_at_us = 0
        self.complaints: list[Complaint] = []

    # --- time and callbacks ---

    def time(self) -> float:
        """The process's own clock, in seconds."""
        return self._process.clock.seconds()

    def call_soon(
        self,
        callback: Callable[..., object],
        *args: object,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        """Call in the next turn."""
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        if self._turn is None or self._turn_at_us > self._process.schedule.now_us + TURN_US:
            self.wake()
        return handle

    def call_soon_threadsafe(
        self,
        callback: Callable[..., object],
        *args: object,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        """The same: there are no threads."""
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self,
        delay: float,
        callback: Callable[..., object],
        *args: object,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call after so many seconds of the process's clock."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: object,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call when the process's clock shows this."""
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        self._number += 1
        heappush(self._timers, (when, self._number, timer))
        if self._timers[0][2] is timer:
            self._plan()
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Nothing: cancelled ones are left out when their time comes."""

    # --- turns ---

    def wake(self) -> None:
        """Have a turn as soon as possible."""
        process = self._process
        self._plan_turn(process.schedule.now_us + int(process.random.random() * TURN_US) + 1)

    def _plan(self) -> None:
        """Have the next turn when something is due."""
        if self._ready:
            self.wake()
        elif self._timers:
            self._plan_turn(self._process.clock.true_us(self._timers[0][0]))

    def _plan_turn(self, at_us: int) -> None:
        if self._turn is not None:
            if self._turn_at_us <= at_us:
                return
            self._turn.cancel()
        self._turn_at_us = at_us
        self._turn = self._process.schedule.at(at_us, self._run_turn)

    def _run_turn(self) -> None:
        self._turn = None
        process = self._process
        if not process.runs:
            return
        now, timers = self.time() + 1e-7, self._timers  # floats
        while timers and timers[0][0] <= now:
            self._ready.append(heappop(timers)[2])
        asyncio._set_running_loop(self)
        running.process = process
        try:
            for _ in range(BATCHES):
                if not self._ready:
                    break
                self._run_ready(process)
        finally:
            asyncio._set_running_loop(None)
        if process.alive:
            process.on_turn()
            self._plan()
        running.process = None

    def _run_ready(self, process: Process) -> None:
        ready, self._ready = self._ready, []
        for handle in ready:
            if handle.cancelled():
                continue
            if process.alive and not process.paused:
                handle._run()
            elif process.alive:
                self._ready.append(handle)  # it was stopped in the middle of its turn

    def clock_changed(self) -> None:
        """The rate of the clock has changed, and with it when the timers run out."""
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None
        self._plan()

    def forget(self) -> None:
        """Nothing is called any more."""
        self._ready.clear()
        self._timers.clear()

    # --- tasks, futures, threads ---

    def create_future(self) -> asyncio.Future[Any]:
        """A future of this loop."""
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]  # a generator is no coroutine any more
        self,
        coro: Coroutine[Any, Any, Any],
        *,
        name: str | None = None,
        context: contextvars.Context | None = None,
    ) -> asyncio.Task[Any]:
        """A task of this loop."""
        return asyncio.Task(coro, loop=self, name=name or "task", context=context)

    def run_in_executor(
        self, executor: Executor | None, func: Callable[..., Any], *args: object
    ) -> asyncio.Future[Any]:
        """What a thread would do is done in one step, a little later."""
        del executor
        future = self.create_future()

        def work() -> None:
            if self._process.alive and not future.done():
                self._finish(future, func, args)

        self._process.schedule.after(self._process.random.randint(*DISK_WORK_US), work)
        return future

    def _finish(
        self, future: asyncio.Future[Any], func: Callable[..., Any], args: tuple[object, ...]
    ) -> None:
        running.process = self._process
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - whoever waits is told
            future.set_exception(error)
        finally:
            running.process = None

    # --- what asyncio asks ---

    def get_debug(self) -> bool:
        """No."""
        return False

    def is_running(self) -> bool:
        """As far as anybody inside can tell."""
        return True

    def is_closed(self) -> bool:
        """A dead process's loop takes nothing any more."""
        return not self._process.alive

    def call_exception_handler(self, context: Complaint) -> None:
        """Something was raised where nobody could handle it: a defect, kept for the judge."""
        if self._process.alive:
            self.complaints.append(context)

    def default_exception_handler(self, context: Complaint) -> None:
        """The same."""
        self.call_exception_handler(context)
