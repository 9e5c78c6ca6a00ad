"""A node starts its children without fork handlers: gRPC's own abort the child now and then."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.runtime.event_log.child import run_child

# In a process of its own: a handler that is registered once stays. `__register_atfork` is what
# pthread_atfork calls; a library such as gRPC has registered its handlers there.
PROGRAM = """
import ctypes, sys
import uvloop
from holdfast.runtime.event_log.child import run_child

ran = []
Handler = ctypes.CFUNCTYPE(None)
handler = Handler(lambda: ran.append(1))
register = ctypes.CDLL(None).__register_atfork
register.argtypes = [Handler, Handler, Handler, ctypes.c_void_p]
register(handler, Handler(), Handler(), None)
ended = uvloop.run(run_child("platform"))
print(len(ran), ended.code, bool(ended.output))
"""


def test_s22_a_child_is_started_without_running_fork_handlers() -> None:
    """Seen under load on real nodes: `ev_epoll1_linux.cc Check failed`, a segment not sealed."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, timeout=60
    )

    assert done.stdout.split() == ["0", "0", "True"], done.stdout + done.stderr


def test_a_child_imports_nothing_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sealing runs in a child, wherever its node was started."""
    (tmp_path / "lmdb.py").write_text("import pathlib; pathlib.Path('ran').touch()\n")
    monkeypatch.chdir(tmp_path)

    ended = asyncio.run(run_child("holdfast.storage.directory.check", str(tmp_path / "nowhere")))

    assert not (tmp_path / "ran").exists(), ended
