"""A worker that is told to stop restarts as planned (S12): processes of their own, real signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from unit.client.both_shells import cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unit.client.fake_cluster import FakeGroup

AIO = """
    import asyncio, sys
    from holdfast.client import Member, restart_on_signals

    async def main():
        settings = {"group": "g", "topics": ["t"], "instance_id": "i-1"}
        async with Member(sys.argv[1], on_revoked=lambda _: print("let go"), **settings) as member:
            restart_on_signals(member)
            async for partition in member.owned():
                if partition.number == 3:
                    print("ready", flush=True)
                    if "leave" in sys.argv:
                        await member.leave()
        print("left", flush=True)
        if len(sys.argv) > 2:
            await asyncio.Event().wait()

    asyncio.run(main())
"""
SYNC = """
    import sys, threading
    from holdfast.client import sync

    settings = {"group": "g", "topics": ["t"], "instance_id": "i-1"}
    with sync.Member(sys.argv[1], on_revoked=lambda _: print("let go"), **settings) as member:
        sync.restart_on_signals(member)
        for partition in member.owned():
            if partition.number == 3:
                print("ready", flush=True)
                if "leave" in sys.argv:
                    member.leave()
    print("left", flush=True)
    if len(sys.argv) > 2:
        threading.Event().wait()
"""
WITHIN_S = 30
programs = pytest.mark.parametrize("program", [AIO, SYNC], ids=["aio", "sync"])
Worker = subprocess.Popen[str]


@contextmanager
def worker(program: str, *more: str) -> Iterator[tuple[Worker, FakeGroup]]:
    """A worker that owns all four partitions."""
    with cluster() as (group, node):
        running = subprocess.Popen(
            [sys.executable, "-c", dedent(program), node.address, *more],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert running.stdout is not None
            assert running.stdout.readline() == "ready\n"
            yield running, group
        finally:
            running.kill()
            running.communicate()


@programs
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_a_planned_restart_and_leaves_no_traceback(
    program: str, number: signal.Signals
) -> None:
    with worker(program) as (running, group):
        running.send_signal(number)
        out, errors = running.communicate(timeout=WITHIN_S)
        assert (out, errors, running.returncode) == ("let go\nleft\n", "", 0)
        (release,) = group.requests["Heartbeat"]
        assert release.holdfast.release
        assert group.requests["LeaveGroup"] == []


@programs
def test_a_signal_after_the_members_have_stopped_does_what_it_always_did(program: str) -> None:
    """Else a program that goes on without its member could not be stopped."""
    with worker(program, "go on") as (running, _):
        running.send_signal(signal.SIGINT)
        assert running.stdout is not None
        assert [running.stdout.readline() for _ in range(2)] == ["let go\n", "left\n"]
        running.send_signal(signal.SIGTERM)
        assert running.wait(WITHIN_S) == -signal.SIGTERM


@programs
def test_the_first_signal_does_so_too_if_the_members_have_stopped_by_themselves(
    program: str,
) -> None:
    with worker(program, "leave") as (running, _):
        assert running.stdout is not None
        assert [running.stdout.readline() for _ in range(2)] == ["let go\n", "left\n"]
        running.send_signal(signal.SIGTERM)
        assert running.wait(WITHIN_S) == -signal.SIGTERM
