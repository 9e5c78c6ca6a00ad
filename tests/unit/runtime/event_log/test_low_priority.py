"""A node's children have the lowest priority from their first import on, and end with it (S22)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.disk_class import IDLE, NORMAL, disk_class
from harness.poll import until
from holdfast.runtime.event_log.child import run_child
from holdfast.storage.disk import priority

# A module that a child runs. It says what it was given before any import of its own.
TELLS = """
import ctypes, json, os, resource, sys
get = {"x86_64": 252, "aarch64": 31, "riscv64": 31}[os.uname().machine]
group = "/proc/self/autogroup"
print(json.dumps({
    "niceness": os.getpriority(os.PRIO_PROCESS, 0),
    "batch": os.sched_getscheduler(0) == os.SCHED_BATCH,
    "disk_class": ctypes.CDLL(None).syscall(get, 1, 0) >> 13,
    "own_session": os.getsid(0) == os.getpid(),
    "session": open(group).read().split()[-1] if os.path.exists(group) else "",
    "processor_s": resource.getrlimit(resource.RLIMIT_CPU)[0],
    "imported": [name for name in sys.modules if name.startswith(("pyarrow", "lmdb", "grpc"))],
    "arguments": sys.argv[1:],
}))
"""

WAITS = """
import os, signal, sys
from pathlib import Path
made = Path(sys.argv[1])
made.with_suffix(".new").write_text(str(os.getpid()))
made.with_suffix(".new").rename(made)
signal.pause()
"""

NODE = """
import asyncio, sys
from holdfast.runtime.event_log.child import run_child
asyncio.run(run_child("waits", sys.argv[1]))
"""


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tells.py").write_text(TELLS)
    (tmp_path / "waits.py").write_text(WAITS)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path)
    return tmp_path


def told(*arguments: str) -> dict[str, Any]:
    ended = asyncio.run(run_child("tells", *arguments))
    assert ended.code == 0, ended.complaint
    found: dict[str, Any] = json.loads(ended.output)
    return found


@pytest.mark.usefixtures("modules")
def test_s22_a_child_has_the_lowest_priority_before_it_imports_anything() -> None:
    """Sealing's imports are half a second of processor time, at the same moment on all nodes."""
    found = told("a", "b c")

    assert found["niceness"] == 19
    assert found["batch"]
    assert found["disk_class"] == 3
    assert found["imported"] == []
    assert found["arguments"] == ["a", "b c"]


@pytest.mark.usefixtures("modules")
def test_s22_a_child_s_niceness_counts_against_other_sessions_too() -> None:
    """Linux divides the processor among sessions: each node may be one, and a client another."""
    found = told()

    assert found["own_session"]
    if found["session"]:
        assert found["session"] == str(priority.SESSION_NICENESS)


@pytest.mark.usefixtures("modules")
def test_a_child_that_goes_round_in_circles_is_ended_by_the_kernel() -> None:
    """Of wall time it may need any amount, so only its processor time can tell."""
    assert told()["processor_s"] == 600


def test_s22_a_child_ends_with_its_node(modules: Path) -> None:
    """Or the node's next process would write the same segment beside it."""
    made = modules / "pid"
    node = subprocess.Popen([sys.executable, "-c", NODE, str(made)])
    until(made.exists, "the child runs")
    child = int(made.read_text())

    node.send_signal(signal.SIGKILL)
    node.wait()

    until(lambda: not runs(child), "the child has ended")


def runs(pid: int) -> bool:
    """Whether a process runs; one that nobody has reaped yet does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_a_child_of_a_process_that_is_gone_does_not_begin() -> None:
    with pytest.raises(SystemExit, match="has ended"):
        priority.die_with(2**22 + 1)


def test_a_thread_s_disk_requests_wait_for_others_only_during_the_work() -> None:
    with priority.idle_disk():
        assert disk_class() == IDLE
    assert disk_class() == NORMAL
