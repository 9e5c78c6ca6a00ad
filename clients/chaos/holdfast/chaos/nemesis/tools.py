"""Faults that need tools which not all machines have: strace to inject errors, libfaketime.

strace fails or delays single system calls of a running node; libfaketime moves the wall clock of a
node that is restarted under it, and no other clock (no lease may depend on the wall: S8, FAULT-9).
"""

from __future__ import annotations

import asyncio
import ctypes.util
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from holdfast.chaos.cluster.target import NotHealed
from holdfast.chaos.nemesis.fault_context import FaultContext, Kind

STRACE: Final = "strace"
FAKETIME: Final = "libfaketime"
_SYNCS: Final = "fsync,fdatasync"
_ATTACH_S: Final = 10.0
_DETACH_S: Final = 2.0
_LOOK_S: Final = 0.05
_HOUR: Final = 3_600
_JUMPS: Final = (-_HOUR, _HOUR, -365 * 24 * _HOUR, 365 * 24 * _HOUR)


async def sync_error(context: FaultContext) -> None:
    """Fail a sync with EIO in the kernel: the node must stop, and never retry it."""
    name, _ = await context.someone()
    with context.fault("sync-error", name) as moment:
        async with _traced(context, name, f"inject={_SYNCS}:error=EIO:when=1+"):
            try:
                await context.target.gone(name)
            except NotHealed:
                context.wrong.append(f"{name} went on although its syncs failed")
                await context.target.kill(name)
        await context.served_again(moment)
        await context.target.bring_back(name)


async def sync_delay(context: FaultContext) -> None:
    """Delay each sync in the kernel."""
    name, _ = await context.someone()
    delay_us = context.random.randint(20_000, 300_000)
    with context.fault("sync-delay", name, delay_us=delay_us):
        async with _traced(context, name, f"inject={_SYNCS}:delay_enter={delay_us}"):
            await context.hold(2.0, 4.0)


@asynccontextmanager
async def _traced(context: FaultContext, name: str, inject: str) -> AsyncIterator[None]:
    """Trace a running node while the body runs."""
    log = context.folder / f"{name}.strace"
    command = [STRACE, "-f", "-p", str(context.target.pid(name)), "-e", f"trace={_SYNCS}"]
    with log.open("wb") as stream:
        process = subprocess.Popen(  # noqa: ASYNC220, S603 - ended below; fixed arguments
            [*command, "-e", inject], stdin=subprocess.DEVNULL, stdout=stream, stderr=stream
        )
    try:
        await _attached(process, log)
        yield
    finally:
        process.terminate()  # it detaches and lets the node go on
        try:
            await asyncio.to_thread(process.wait, _DETACH_S)
        except subprocess.TimeoutExpired:
            process.kill()  # it waits for threads of a node that has ended
            process.wait()


async def _attached(process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until strace reports that it is attached."""
    loop = asyncio.get_running_loop()
    until = loop.time() + _ATTACH_S
    while "attached" not in (said := _words(log)):
        if process.poll() is not None or loop.time() > until:
            raise NotHealed(f"strace attaches to a node: {said}")
        await asyncio.sleep(_LOOK_S)


def _words(log: Path) -> str:
    return log.read_text(errors="replace")


async def wall_clock(context: FaultContext) -> None:
    """Set a node's wall clock an hour or a year off; it may lead with it."""
    name, _ = await context.someone()
    jump_s = context.random.choice(_JUMPS)
    variables = {
        "LD_PRELOAD": _faketime(),
        "FAKETIME": f"{jump_s:+d}s",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }
    with context.fault("wall-clock", name, jump_s=jump_s):
        await context.target.stop(name)
        await context.target.bring_back(name, variables=variables)
        await context.target.whole()
        if await context.target.leader() != name:
            await context.admin.transfer_leadership(name)
        await context.hold(2.0, 4.0)
        await context.target.whole()
        await context.target.kill(name)  # asked to, it may wait a faked year for a thread to end
        await context.target.bring_back(name)


def _faketime() -> str:
    """Find the library: the system's, or that of the Python package; empty: not found."""
    found = ctypes.util.find_library("faketime")
    if found:
        return found
    spec = find_spec("libfaketime")
    places = [Path(folder) for folder in (spec.submodule_search_locations or ())] if spec else []
    places += [Path("/usr/lib/x86_64-linux-gnu/faketime"), Path("/usr/lib/faketime")]
    files = [file for place in places for file in place.rglob("libfaketime*.so*")]
    return str(files[0]) if files else ""


def has_strace() -> bool:
    """Return whether strace is installed and may trace a process of ours."""
    if shutil.which(STRACE) is None:
        return False
    done = subprocess.run(  # noqa: S603 - fixed arguments
        [STRACE, "-e", f"inject={_SYNCS}:delay_enter=1", "true"],
        capture_output=True,
        check=False,
    )
    return done.returncode == 0


def has_faketime() -> bool:
    """Return whether libfaketime is installed; it works on Linux only."""
    return os.name == "posix" and bool(_faketime())


KINDS = (
    Kind("sync-error", "the kernel fails a node's syncs (EIO)", sync_error, (STRACE,)),
    Kind("sync-delay", "the kernel delays a node's syncs by 20 to 300 ms", sync_delay, (STRACE,)),
    Kind(
        "wall-clock",
        "a node's wall clock is an hour or a year off",
        wall_clock,
        (FAKETIME,),
        slow=True,
    ),
)
