"""Low priority for work that nobody waits for: of a process, or of one thread's disk requests.

Linux only. Where the kernel refuses or has no such thing, nothing changes: a low priority spares
others and is no condition of the work. Threads of a node keep their processor priority: one that
has to wait for a processor while it holds the interpreter's lock delays all others. Standard
library only, since a child calls this before it imports anything else.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

NICENESS: Final = 19
"""The lowest. Not SCHED_IDLE: on a busy machine its processes stand still, with whatever lock of
LMDB they hold."""

SESSION_NICENESS: Final = 10
"""Of the session, where Linux divides the processor among sessions: a tenth of another's share.
The lowest would be a seventieth, by which a busy machine never gets done."""

AUTOGROUP: Final = Path("/proc/self/autogroup")
AUTOGROUP_TRIES: Final = 10
AUTOGROUP_AGAIN_S: Final = 0.15
"""Linux changes the niceness of one session each 0.1 s, and refuses more with EAGAIN."""

_IOPRIO_SET: Final = {"x86_64": 251, "aarch64": 30, "riscv64": 30}
"""The number of the system call, for which the C library has no function."""
_WHO_PROCESS, _CALLING_THREAD = 1, 0
_CLASS_SHIFT, _CLASS_NONE, _CLASS_IDLE = 13, 0, 3
_PR_SET_PDEATHSIG: Final = 1


def lower_process() -> None:
    """Give this process the lowest priority, for processor and disk, before it starts threads."""
    if sys.platform != "linux":
        return
    os.setpriority(os.PRIO_PROCESS, 0, NICENESS)
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    if os.getsid(0) == os.getpid():
        _lower_session()
    _set_disk_class(_CLASS_IDLE)


def die_with(parent: int) -> None:
    """End this process when the thread ends that started it; at once if it has ended already.

    Or the next process of a node would find work under way that nobody waits for.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("the process that started this one has ended")


def idle_disk_for_good() -> None:
    """Let the calling thread's disk requests wait for all others' from now on."""
    _set_disk_class(_CLASS_IDLE)


@contextmanager
def idle_disk() -> Iterator[None]:
    """Let the calling thread's disk requests wait for all others' during the body."""
    _set_disk_class(_CLASS_IDLE)
    try:
        yield
    finally:
        _set_disk_class(_CLASS_NONE)


def _lower_session() -> None:
    """Lower the whole session as well: with autogroups Linux divides the processor among sessions.

    A niceness alone then counts only against processes of the same session.
    """
    for _ in range(AUTOGROUP_TRIES):
        try:
            AUTOGROUP.write_text(str(SESSION_NICENESS))
        except BlockingIOError:
            time.sleep(AUTOGROUP_AGAIN_S)
        except OSError:
            return
        else:
            return


def _set_disk_class(number: int) -> None:
    call = _IOPRIO_SET.get(os.uname().machine) if sys.platform == "linux" else None
    if call is not None:
        priority = number << _CLASS_SHIFT
        ctypes.CDLL(None).syscall(call, _WHO_PROCESS, _CALLING_THREAD, priority)
