"""Starts the worker processes, freezes, kills and replaces them, and lets them leave at the end.

Knows tasks, and not what a worker does with one.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from holdfast.chaos.clock import boot_us
from holdfast.chaos.cluster.target import until

if TYPE_CHECKING:
    from holdfast.chaos.workload.tasks import Task

STOP_S: Final = 45.0


_ENDED_AS_ASKED: Final = (0, -signal.SIGTERM)
"""One that has just been started does not listen for the signal yet, and ends by it."""


class WorkerFailed(Exception):
    """A worker ended by itself: a defect in the client, or in the workload. Its log says which."""


@dataclass(slots=True)
class Worker:
    """One process."""

    task: Task
    process: subprocess.Popen[bytes]
    log: Path
    died_us: int = 0
    """When it was killed; 0 while it lives."""


@dataclass(slots=True)
class Workers:
    """All processes of the workload; files go into `folder`."""

    folder: Path
    _numbers: int = 0
    all: list[Worker] = field(default_factory=list)

    @property
    def running(self) -> list[Worker]:
        """The workers that were not killed."""
        return [worker for worker in self.all if not worker.died_us]

    def start(self, task: Task) -> Worker:
        """Start a worker for these slots, under a number of its own."""
        self._numbers += 1
        number = self._numbers
        base = self.folder / f"worker-{number}"
        task = replace(task, number=number, history=str(base.with_suffix(".jsonl")))
        file, log = base.with_suffix(".json"), base.with_suffix(".log")
        task.write(file)
        with log.open("ab") as stream:
            process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-P", "-m", "holdfast.chaos.workload.worker_process", str(file)],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                start_new_session=True,  # Ctrl-C is for the run: it lets them leave
            )
        worker = Worker(task, process, log)
        self.all.append(worker)
        return worker

    def refuse_dead(self) -> None:
        """Raise WorkerFailed if one has ended by itself."""
        for worker in self.running:
            if worker.process.poll() is not None:
                raise _failure(worker)

    async def freeze(self, worker: Worker, seconds: float) -> None:
        """Stop a process with SIGSTOP for so long."""
        os.kill(worker.process.pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            os.kill(worker.process.pid, signal.SIGCONT)

    async def kill(self, worker: Worker) -> None:
        """Kill a process with SIGKILL; start another with the same slots and other members."""
        worker.died_us = boot_us()
        worker.process.kill()
        await until(lambda: worker.process.poll() is not None, "a killed worker ended")
        seed = worker.task.seed + 1
        self.start(replace(worker.task, seed=seed))

    async def stop(self) -> None:
        """Let all members leave. Raises WorkerFailed if a worker does not end well."""
        for worker in self.running:
            worker.process.send_signal(signal.SIGTERM)
        for worker in self.running:
            try:
                await asyncio.to_thread(worker.process.wait, STOP_S)
            except subprocess.TimeoutExpired:
                worker.process.kill()
                raise WorkerFailed(
                    f"worker {worker.task.number} did not end within {STOP_S:.0f} s; see "
                    f"{worker.log}"
                ) from None
        for worker in self.running:
            if worker.process.returncode not in _ENDED_AS_ASKED:
                raise _failure(worker)

    def kill_all(self) -> None:
        """Kill all workers that still run."""
        for worker in self.all:
            if worker.process.poll() is None:
                worker.died_us = boot_us()
                worker.process.kill()
                worker.process.wait()


def _failure(worker: Worker) -> WorkerFailed:
    words = worker.log.read_text(errors="replace").splitlines()[-1:]
    return WorkerFailed(
        f"worker {worker.task.number} ended with code {worker.process.returncode}: "
        f"{' '.join(words)}; see {worker.log}"
    )
