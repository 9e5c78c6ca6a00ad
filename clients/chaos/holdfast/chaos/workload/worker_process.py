"""One process of the workload: `python -m holdfast.chaos.workload.worker_process TASK.json`.

It ends on SIGTERM, when everybody has left, and by itself when the process that started it is gone.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from pathlib import Path
from typing import Final

from holdfast.chaos.workload.member_scripts import MemberScripts
from holdfast.chaos.workload.recorder import Recorder
from holdfast.chaos.workload.tasks import Task

_LOOK_S: Final = 1.0


async def run(task: Task) -> None:
    """Live until told to end."""
    recorder = Recorder(Path(task.history), task.number)
    scripts = MemberScripts(task, recorder)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, scripts.end)
    watch = asyncio.create_task(_end_with_parent(scripts, os.getppid()))
    try:
        await scripts.run()
    finally:
        watch.cancel()
        recorder.close()


async def _end_with_parent(scripts: MemberScripts, parent: int) -> None:
    while os.getppid() == parent:  # noqa: ASYNC110 - nothing tells of a parent's end
        await asyncio.sleep(_LOOK_S)
    scripts.end()


def main() -> None:
    """Be the worker of the task in the file that is named."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    asyncio.run(run(Task.read(Path(sys.argv[1]))))


if __name__ == "__main__":
    main()
