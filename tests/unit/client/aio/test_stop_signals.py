"""A worker that is told to stop restarts as planned (S12): processes of their own, real signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
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
        while len(sys.argv) > 2:
            await asyncio.sleep(0.05)

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
    while len(sys.argv) > 2:
        threading.Event().wait(0.05)
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


# --- a worker that hangs ---

HANG_AIO = """
    import asyncio, sys, threading, time
    from holdfast.client import Member, restart_on_signals

    how, asked = sys.argv[2:4]

    async def on_revoked(_):
        print("hangs", flush=True)
        if how == "awaiting":
            await asyncio.Event().wait()
        elif how == "blocking":
            time.sleep(600)
        elif how == "in a thread":
            await asyncio.to_thread(time.sleep, 600)

    async def handler(partition):
        if partition.number == 3:
            print("ready", flush=True)
        await partition.wait_revoked()
        if partition.number == 3:
            print("hangs", flush=True)
            while True:
                try:
                    await asyncio.sleep(600)
                except asyncio.CancelledError:
                    pass

    async def main():
        settings = {"group": "g", "topics": ["t"], "instance_id": "i-1"}
        listener = None if how == "in a handler" else on_revoked
        async with Member(sys.argv[1], on_revoked=listener, **settings) as member:
            if asked == "restart":
                restart_on_signals(member)
            if how == "in a handler":
                await member.run(handler)
            async for partition in member.owned():
                if partition.number == 3:
                    print("ready", flush=True)

    asyncio.run(main())
"""
HANG_SYNC = """
    import sys, threading, time
    from holdfast.client import sync

    how, asked = sys.argv[2:4]

    def on_revoked(_):
        print("hangs", flush=True)
        threading.Event().wait()

    def handler(partition):
        if partition.number == 3:
            print("ready", flush=True)
        partition.wait_revoked()
        if partition.number == 3:
            print("hangs", flush=True)
            threading.Event().wait()

    settings = {"group": "g", "topics": ["t"], "instance_id": "i-1"}
    listener = None if how == "in a handler" else on_revoked
    with sync.Member(sys.argv[1], on_revoked=listener, **settings) as member:
        if asked == "restart":
            sync.restart_on_signals(member)
        if how == "in a handler":
            member.run(handler)
        for partition in member.owned():
            if partition.number == 3:
                print("ready", flush=True)
"""
HANGS = [
    *((HANG_AIO, how) for how in ("awaiting", "blocking", "in a thread", "in a handler")),
    *((HANG_SYNC, how) for how in ("waiting", "in a handler")),
]
hangs = pytest.mark.parametrize(
    ("program", "how"),
    HANGS,
    ids=[f"{'aio' if program == HANG_AIO else 'sync'} {how}" for program, how in HANGS],
)


@hangs
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_a_worker_that_hangs_while_it_lets_go(
    program: str, how: str, number: signal.Signals
) -> None:
    """Without a word to the group: code of the user may still act."""
    with worker(program, how, "restart") as (running, group):
        running.send_signal(number)
        assert running.stdout is not None
        assert running.stdout.readline() == "hangs\n"
        running.send_signal(number)
        assert running.wait(WITHIN_S) == -number
        assert group.requests["Heartbeat"] == group.requests["LeaveGroup"] == []


@pytest.mark.parametrize(
    ("program", "how"),
    [(HANG_AIO, "awaiting"), (HANG_SYNC, "waiting"), (HANG_SYNC, "in a handler")],
    ids=["aio", "sync", "sync in a handler"],
)
def test_a_second_ctrl_c_ends_it_also_without_our_handlers(program: str, how: str) -> None:
    """The first leaves the block, whose end waits for on_revoked; the second leaves that.

    Python drops a KeyboardInterrupt that arrives while it tidies up after an object ("Exception
    ignored in …"): then a person presses once more, and so does the test.
    """
    with worker(program, how, "nothing") as (running, group):
        running.send_signal(signal.SIGINT)
        assert running.stdout is not None
        assert running.stdout.readline() == "hangs\n"
        errors = pressed_until_it_ends(running)
        assert running.returncode != 0
        assert "KeyboardInterrupt" in errors
        assert group.requests["Heartbeat"] == group.requests["LeaveGroup"] == []


def pressed_until_it_ends(running: Worker) -> str:
    """Ctrl-C, and once more whenever Python dropped it; what the program printed."""
    dropped, until = -1, time.monotonic() + WITHIN_S
    errors = ""
    while time.monotonic() < until:
        if errors.count("Exception ignored in") > dropped:
            dropped = errors.count("Exception ignored in")
            running.send_signal(signal.SIGINT)
        try:
            return running.communicate(timeout=0.2)[1]
        except subprocess.TimeoutExpired as still:
            errors = (still.stderr or b"").decode()
    raise AssertionError(f"it goes on after Ctrl-C: {errors}")


OWN_HANDLER = """
    import os, signal, sys, threading
    from holdfast.client import sync

    def mine(number, frame):
        print("mine", flush=True)
        os._exit(7)

    def on_revoked(_):
        print("hangs", flush=True)
        threading.Event().wait()

    signal.signal(signal.SIGTERM, mine)
    with sync.Member(sys.argv[1], group="g", topics=["t"], on_revoked=on_revoked) as member:
        sync.restart_on_signals(member)
        for partition in member.owned():
            if partition.number == 3:
                print("ready", flush=True)
"""


def test_a_second_signal_goes_to_the_handler_that_the_program_had_set() -> None:
    with worker(OWN_HANDLER) as (running, _):
        running.send_signal(signal.SIGTERM)
        assert running.stdout is not None
        assert running.stdout.readline() == "hangs\n"
        running.send_signal(signal.SIGTERM)
        out, _ = running.communicate(timeout=WITHIN_S)
        assert (out, running.returncode) == ("mine\n", 7)
