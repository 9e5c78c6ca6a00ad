"""Run a module in a child process of low priority, for long work beside that of the node (S22).

Knows processes only.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from typing import Final, NamedTuple

CHILD_SECONDS_MAX: Final = 6 * 3600.0
"""Long, since a busy machine leaves little to a child; `low_priority` bounds its processor time."""
LAUNCHER: Final = "holdfast.runtime.event_log.low_priority"
"""The program that runs the module in the child."""


class Ended(NamedTuple):
    """How a child process ended, and what it printed."""

    code: int
    output: str
    complaint: str

    @property
    def reason(self) -> str:
        """The last line of what it complained of: the message of a traceback."""
        return self.complaint.strip().rpartition("\n")[2] or "it said nothing"


async def run_child(module: str, *arguments: str, given: bytes | None = None) -> Ended:
    """Run `python -P -m module arguments` to its end. Raises TimeoutError, OSError.

    `given`: what it reads from its standard input; None: it has the node's. The child has ended
    afterwards in any case. It ends with the thread that calls this.
    """
    launcher = ["-m", LAUNCHER, str(os.getpid())]
    command = [sys.executable, "-P", *launcher, module, *arguments]
    # Not by the event loop: uvloop's fork runs gRPC's fork handlers, which abort the child if
    # another thread is in gRPC. CPython starts a child by vfork, which runs no handlers.
    child = subprocess.Popen(  # noqa: ASYNC220, S603 - waited for in a thread; our own module, no shell
        command,
        stdin=None if given is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # so that the niceness of a session can be its own
    )
    try:
        output, complaint = await asyncio.to_thread(child.communicate, given, CHILD_SECONDS_MAX)
    except subprocess.TimeoutExpired as error:
        child.kill()
        await asyncio.to_thread(child.communicate)
        raise TimeoutError(str(error)) from error
    except BaseException:
        child.kill()  # the thread that reads its output reaps it
        raise
    texts = (output.decode(errors="replace"), complaint.decode(errors="replace"))
    return Ended(child.returncode, *texts)
