"""The run on a cluster that serves: load, one fault after another, healing, and the history.

Safety phase: one fault after another, each healed before the next. Healing: no fault; all members
leave, the nodes come to rest at one index, and the logs of all nodes are read. Judges nothing.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Final

import grpc.aio

from holdfast.chaos import collect
from holdfast.chaos.clock import US_PER_S, boot_us, wall_behind_us
from holdfast.chaos.cluster import segments
from holdfast.chaos.cluster.proxy import Network
from holdfast.chaos.cluster.target import PATIENCE_S, NotHealed, Target, until
from holdfast.chaos.history.happenings import FORMAT, Began, Happening, Phase
from holdfast.chaos.nemesis import FaultContext, Kind
from holdfast.chaos.runner.cleanup import clean_up
from holdfast.chaos.runner.plan import Plan, schedule
from holdfast.chaos.runner.report import Report
from holdfast.chaos.workload.anchors import ANCHORS, Anchors
from holdfast.chaos.workload.callers import RecordedAdmin
from holdfast.chaos.workload.observer import Observer
from holdfast.chaos.workload.prober import Prober
from holdfast.chaos.workload.recorder import Recorder
from holdfast.chaos.workload.sealer import Sealer
from holdfast.chaos.workload.store import Store
from holdfast.chaos.workload.tasks import (
    OFFSETS,
    PARTITIONS,
    PREFIX,
    STATIC,
    Task,
    Times,
    dealt,
    group_name,
    groups,
    slots,
)
from holdfast.chaos.workload.workers import WorkerFailed, Workers
from holdfast.client import HoldfastError

CONDUCTOR: Final = "conductor.jsonl"
CLOCK_ERROR: Final = 0.05
"""Seconds. All processes share one host's clock; the rest is for the wait for a processor."""
_PAUSE_S: Final = (0.2, 1.0)
_WARM_CHANGES: Final = 20
_REST_S: Final = 1.0
_SEALED_S_MAX: Final = 3 * PATIENCE_S
"""A child of the lowest priority seals, which has to wait for all else on a busy machine."""
_INJECT_S_MAX: Final = 3 * PATIENCE_S
"""Bound of a fault of several steps, each of which may wait for `PATIENCE_S`."""


class Runner:
    """The run on a cluster that serves."""

    def __init__(
        self,
        plan: Plan,
        target: Target,
        network: Network | None,
        endpoints: tuple[str, ...],
        recorder: Recorder,
        report: Report,
        say: Callable[[str], None],
    ) -> None:
        self._plan, self._target, self._network = plan, target, network
        self._endpoints, self._recorder, self._report = endpoints, recorder, report
        self._say = say
        self._prefix = f"{PREFIX}{boot_us() & 0xFFFFFF:06x}"
        self._groups = groups(self._prefix, heartbeats=network is not None)
        self._slots = slots(self._prefix, heartbeats=network is not None)
        self._socket = plan.folder / "store.sock"
        self._workers = Workers(plan.folder)
        self._observer = Observer(target, recorder)
        self._anchors = Anchors(target, plan.folder / ANCHORS)
        offsets = group_name(self._prefix, OFFSETS)
        self._prober = Prober(endpoints, target.tls, recorder, offsets)
        self._sealer = Sealer(endpoints, target.tls, recorder, plan.seed)
        self._admin = RecordedAdmin(endpoints, target.tls, recorder, "conductor")
        self._began_us = boot_us()
        self._wall_behind_us = wall_behind_us()
        self._first = 0
        self._asked_to_end = asyncio.Event()
        self._logs = collect.CollectedLog([], [])

    async def run(self, kinds: Sequence[Kind]) -> list[Happening]:
        """Run everything from the first topic to the last digest; return the history."""
        self._end_on_signal()
        try:
            async with self._admin, Store(self._socket, self._recorder):
                times = await self._prepare()
                await self._work(times)
                await self._safety(kinds, times)
                await self._healing()
        except (NotHealed, WorkerFailed, HoldfastError, grpc.aio.AioRpcError) as error:
            self._went_wrong(error)
            self._workers.kill_all()
            await self._end(self._prober)  # what it is told from now on, the log below lacks
            await self._end(self._sealer)
            self._logs = await collect.read_any_log(self._target, self._first)
        else:
            await self._clean_up()
        finally:
            self._workers.kill_all()
            await self._end(self._prober)
            await self._end(self._sealer)
            await self._end(self._observer)
            await self._end(self._anchors)
            self._name_brought_back()
            self._leave_signals_alone()
        self._report.seconds = (boot_us() - self._began_us) / US_PER_S
        self._report.elections = self._observer.elections
        self._report.wrong += self._logs.differences
        return self._history()

    def _end_on_signal(self) -> None:
        """End the run in order at the first SIGINT or SIGTERM, the process at the second."""
        loop = asyncio.get_running_loop()

        def ask(number: signal.Signals) -> None:
            self._say("ending after this fault; once more ends at once")
            self._asked_to_end.set()
            loop.remove_signal_handler(number)

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, ask, number)

    def _leave_signals_alone(self) -> None:
        """Restore the signals: from here on nothing checks for a request, so a signal must kill."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)

    async def _end(self, part: Prober | Sealer | Observer | Anchors) -> None:
        """Stop a part; its error fails the run, and the report stays complete."""
        try:
            await part.stop()
        except Exception as error:  # noqa: BLE001 - told in the report, whatever it is
            self._went_wrong(error)

    def _went_wrong(self, error: Exception) -> None:
        """Note an error once: a part may raise the same error again."""
        what = f"{type(error).__name__}: {error}"
        if what not in self._report.wrong:
            self._report.wrong.append(what)

    # --- phases ---

    async def _prepare(self) -> Times:
        """Create the topics, and record the cluster's state."""
        await self._target.whole()
        seen = await self._target.seen()
        self._first = 1 if self._network else max(s.applied_index for s in seen.values()) + 1
        await self._admin.create_topics(dict.fromkeys(self._groups, PARTITIONS))
        (least,) = await self._admin.describe_settings("group.min_session_timeout_ms")
        times = Times()
        session = max(times.session, int(least.value))
        if self._network is not None:
            await self._shorten_heartbeats(session, times.heartbeat)
        return Times(session=session, rebalance=max(times.rebalance, session))

    async def _shorten_heartbeats(self, session_ms: int, interval_ms: int) -> None:
        """Have the groups of the heartbeat protocol live by the times of the others."""
        bounds = {
            "group.consumer_min_session_timeout_ms": session_ms,
            "group.consumer_min_heartbeat_interval_ms": interval_ms,
        }
        wanted = {
            "group.consumer_session_timeout_ms": session_ms,
            "group.consumer_heartbeat_interval_ms": interval_ms,
        }
        for settings in (bounds, wanted):
            refusals = await self._admin.alter_settings(settings)
            for refusal in refusals.values():
                if refusal is not None:
                    raise refusal

    async def _work(self, times: Times) -> None:
        """Start all workers, and wait until there are changes."""
        self._observer.start(self._first - 1, group_name(self._prefix, STATIC))
        self._anchors.start()
        tls = self._target.tls
        for number, own in enumerate(dealt(self._slots, self._plan.workers), 1):
            task = Task(
                number=0,
                seed=self._plan.seed * 1_000 + number,
                endpoints=self._endpoints,
                tls=(str(tls.ca), str(tls.certificate), str(tls.key)) if tls else None,
                store=str(self._socket.resolve()),
                history="",
                slots=own,
                times=times,
            )
            self._workers.start(task)
        self._prober.start()
        if self._network is not None:
            self._sealer.start()
        await until(lambda: self._prober.accepted >= _WARM_CHANGES, "the first changes")
        await until(self._all_have_members, "every group has members")

    async def _all_have_members(self) -> bool:
        self._workers.refuse_dead()
        named = {name for name in self._groups if not name.endswith(OFFSETS)}
        classic = await self._admin.describe_groups(*sorted(named))
        full = {
            n for n, each in classic.items() if not isinstance(each, Exception) and each.members
        }
        if self._network is not None:
            beating = await self._admin.consumer_group_describe(*sorted(named))
            full |= {
                n for n, each in beating.items() if not isinstance(each, Exception) and each.members
            }
        return full == named

    async def _safety(self, kinds: Sequence[Kind], times: Times) -> None:
        random = Random(self._plan.seed)  # noqa: S311 - a seed gives the same schedule
        context = FaultContext(
            self._target, self._network, self._workers, self._prober, self._admin, random,
            self._recorder, self._plan.folder, times.session / 1_000, self._report.wrong,
        )  # fmt: skip
        self._recorder.note(Phase(boot_us(), "safety"))
        loop = asyncio.get_running_loop()
        until_s = loop.time() + self._plan.seconds
        for number, kind in enumerate(schedule(kinds, random, self._plan.rounds)):
            if not self._plan.rounds and number and loop.time() > until_s:
                return
            if self._asked_to_end.is_set():
                self._report.cut_short = self._plan.length
                return
            await self._inject(context, kind)
            await context.hold(*_PAUSE_S)

    async def _inject(self, context: FaultContext, kind: Kind) -> None:
        """Inject one fault, and measure how the cluster heals from it (INV-15)."""
        began_us = boot_us()
        self._report.faults[kind.name] += 1
        try:
            async with asyncio.timeout(_INJECT_S_MAX):
                leaderless_us = await kind.inject(context)
        except TimeoutError:
            raise NotHealed(f"the fault {kind.name} was struck and mended") from None
        mended_us = boot_us()
        await self._target.whole()
        await self._prober.accepted_after(mended_us)
        healing = (boot_us() - mended_us) / US_PER_S
        self._report.healings.append(healing)
        told = f"healed in {healing:.2f} s"
        if leaderless_us:
            failover = await self._prober.accepted_after(leaderless_us)
            self._report.failovers.setdefault(kind.name, []).append(failover)
            told += f", next change after {failover:.2f} s"
        self._workers.refuse_dead()
        lasted = (mended_us - began_us) / US_PER_S
        self._say(
            f"{(boot_us() - self._began_us) / US_PER_S:7.1f} s  {kind.name:<27} lasted "
            f"{lasted:5.2f} s, {told}; {self._report.faults.total()} faults, "
            f"{self._prober.accepted} probes accepted, {self._observer.elections} elections"
        )

    async def _healing(self) -> None:
        """Let all members leave and the nodes come to rest without faults, and read their logs.

        Recording ends before the reading: a change acknowledged after it would be in no log that
        was read, and look lost (INV-2).
        """
        self._recorder.note(Phase(boot_us(), "healing"))
        if self._network is not None:
            self._network.clear()
        await self._target.whole()
        await self._prober.accepted_after(boot_us())
        await self._workers.stop()
        await self._prober.stop()
        await self._sealer.stop()
        await until(lambda: collect.digests_agree(self._target), "all nodes rest at one index")
        await self._observer.look()
        await self._anchors.stop()
        await self._anchors.ask(*self._target.names)
        await asyncio.sleep(_REST_S)  # the watches have what was committed last
        self._recorder.note(Phase(boot_us(), "end"))
        await self._observer.stop()
        self._logs = await collect.read_logs(self._target, self._first)
        self._report.boundaries_asked_for = segments.asked_for(self._logs.records)
        await self._compare_segments()

    async def _compare_segments(self) -> None:
        """Wait until all nodes have sealed up to the last boundary; compare what they have (S22).

        Only of a cluster of our own: another one may have been sealed by older versions.
        """
        if self._network is None:
            return
        boundary = segments.last_boundary(self._logs.records)
        nodes: dict[str, list[segments.Sealed]] = {}

        def all_sealed() -> bool:
            for name in self._target.names:
                own = segments.sealed_in(self._target.data(name) / "segments")
                nodes[name] = segments.through(own, boundary)
            return not segments.late(nodes, boundary)

        try:
            what = "every node has sealed up to the last boundary"
            await until(all_sealed, what, _SEALED_S_MAX)
        except (NotHealed, OSError, ValueError) as error:
            self._went_wrong(error)
            return
        self._report.segments = len(nodes[self._target.names[0]])
        self._report.wrong += segments.differences(nodes)

    async def _clean_up(self) -> None:
        """Remove the run's groups and topics from a cluster that goes on."""
        if self._network is not None:
            return
        try:
            await clean_up(self._endpoints, self._target.tls, self._groups, self._say)
        except* HoldfastError as errors:
            names = ", ".join(self._groups)
            why = "; ".join(dict.fromkeys(map(str, errors.exceptions)))
            self._report.wrong.append(f"{names} could not be cleaned up: {why}")

    def _name_brought_back(self) -> None:
        """Print how to stop the nodes that the run has brought back."""
        if self._network is not None:
            return  # of a cluster of our own nothing is left
        for name, process in self._target.brought_back.items():
            if process.poll() is None:
                self._say(
                    f"{name} was brought back by this run: `holdfast cluster start` will not stop "
                    f"it, `kill {process.pid}` does"
                )

    # --- the end ---

    def _history(self) -> list[Happening]:
        details = {"seed": self._plan.seed, "session": self._prefix}
        first = Began(self._began_us, FORMAT, "cluster", self._target.names, CLOCK_ERROR, details)
        files = {Path(w.task.history): w.died_us for w in self._workers.all}
        files[self._plan.folder / CONDUCTOR] = 0
        records = collect.records_of(self._logs, self._observer, self._wall_behind_us)
        merged = collect.merged(files, records)
        merged = [each for each in merged if each.at_us >= self._began_us]
        return [first, *merged]
