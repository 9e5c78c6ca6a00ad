"""The worker processes at the end of a run: who ends as asked, and whose end is a finding."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast.chaos.workload.workers import Worker, WorkerFailed, Workers

LIVES = "import signal; print('up', flush=True); signal.pause()"
DIES = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)); "


def workers_of(folder: Path, *programs: str) -> Workers:
    """Stand-ins for workers, each up and running."""
    workers = Workers(folder)
    for number, program in enumerate(programs, start=1):
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
        assert process.stdout is not None
        with process.stdout as words:
            assert words.readline() == b"up\n"
        log = folder / f"worker-{number}.log"
        log.write_text(f"the words of {number}\n")
        task: Any = SimpleNamespace(number=number)
        workers.all.append(Worker(cast("Any", task), process, log))
    return workers


def test_one_that_does_not_listen_yet_ends_as_asked(tmp_path: Path) -> None:
    """A worker that was started a moment ago ends by the signal itself."""
    asyncio.run(workers_of(tmp_path, LIVES).stop())


def test_whoever_ends_badly_is_named_and_nobody_else(tmp_path: Path) -> None:
    workers = workers_of(tmp_path, LIVES, DIES + LIVES)

    with pytest.raises(WorkerFailed, match="worker 2 ended with code 7: the words of 2"):
        asyncio.run(workers.stop())
