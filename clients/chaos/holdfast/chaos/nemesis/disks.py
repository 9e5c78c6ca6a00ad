"""Disks that are full, slow, failing or damaged. Never more than one node's at a time.

A disk is full by RLIMIT_FSIZE. It is slow or failing by the node's test hook (`--test-failpoints`),
for which the node is restarted before and after. It is damaged by flipped bits in the files of a
dead node. Knows no client.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Final

from holdfast.chaos.clock import boot_us
from holdfast.chaos.cluster.target import NotHealed
from holdfast.chaos.nemesis.fault_context import FaultContext, Kind

_ROOM_LEAST: Final = 65_536
"""Bytes of each file that stay writable: the pages that record which others are in use."""
_FULL_S: Final = 10.0
_LOOK_S: Final = 0.05
_FLIPS_MAX: Final = 8
_TRACEBACK: Final = "Traceback (most recent call last)"


async def disk_full(context: FaultContext) -> None:
    """Leave a node's next batch no room: it stops, and what it accepted is kept (S20).

    A journal that was cut reuses pages, so a limit at its size would take effect late.
    """
    name, _ = await context.someone()
    size = (context.target.data(name) / "raft" / "data.mdb").stat().st_size
    with context.fault("disk-full", name):
        context.target.limit_files(name, max(size // 2, _ROOM_LEAST))
        stopped = await _ends_within(context, name, _FULL_S)
        context.target.limit_files(name, None)
        ended_us = boot_us()
        if stopped:
            await context.served_again(ended_us)
            await context.target.bring_back(name)


async def _ends_within(context: FaultContext, name: str, seconds: float) -> bool:
    """Return whether a node's process ends by itself in this time."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while loop.time() < until:
        if not context.target.alive(name):
            return True
        await asyncio.sleep(_LOOK_S)
    return False


async def slow_sync(context: FaultContext) -> None:
    """Delay each sync by up to half a second: no session may expire because of it (S9)."""
    name, _ = await context.someone()
    file = await _with_failpoints(context, name)
    delay_ms = context.random.randint(20, 500)
    if context.random.random() < 0.5:  # noqa: PLR2004 - half of the time
        await _lead(context, name)
    with context.fault("slow-sync", name, delay_ms=delay_ms):
        _wish(file, {"sync_delay_ms": delay_ms})
        await context.hold(2.0, 5.0)
        file.unlink()
    await _without_failpoints(context, name)


async def failing_sync(context: FaultContext) -> None:
    """Fail a sync: the node must stop at once, and never retry it (after a failed fsync)."""
    name, _ = await context.someone()
    file = await _with_failpoints(context, name)
    with context.fault("failing-sync", name) as moment:
        _wish(file, {"sync_fails": True})
        try:
            await context.target.gone(name)
        except NotHealed:
            context.wrong.append(f"{name} went on although its syncs failed")
            await context.target.kill(name)
        file.unlink()
        await context.served_again(moment)
        await context.target.bring_back(name)


async def _with_failpoints(context: FaultContext, name: str) -> Path:
    """Restart a node with the test hook; return the file that it reads."""
    file = context.folder / f"{name}.failpoints"
    file.unlink(missing_ok=True)
    await context.target.stop(name)
    await context.target.bring_back(name, options=("--test-failpoints", str(file)))
    await context.target.whole()
    return file


def _wish(file: Path, what: dict[str, int | bool]) -> None:
    """Write the hook's file by rename, so that the node never reads half of it."""
    draft = file.with_suffix(".new")
    draft.write_text(json.dumps(what))
    draft.replace(file)


async def _without_failpoints(context: FaultContext, name: str) -> None:
    await context.target.whole()
    await context.target.stop(name)
    await context.target.bring_back(name)


async def _lead(context: FaultContext, name: str) -> None:
    """Transfer the leadership to a node, if it can take it."""
    if await context.target.leader() != name:
        await context.admin.transfer_leadership(name)
        await context.target.leader()


async def flip_bits(context: FaultContext) -> None:
    """Flip bits in a dead node's files: it finds them at its start and heals from peers (S21).

    Damage that it cannot heal it must refuse with a sentence; then an operator gives it an empty
    directory, which it fills from its peers (S19).
    """
    name = await context.follower()
    environment = context.random.choice(("raft", "state"))
    file = context.target.data(name) / environment / "data.mdb"
    with context.fault("kill-follower", name):
        await context.target.kill(name)
        places = [_flip(context, file) for _ in range(context.random.randint(1, _FLIPS_MAX))]
        context.begin("flip-bits", name, file=f"{environment}/data.mdb", bits=places)
        try:
            await context.target.bring_back(name)
        except NotHealed as refusal:
            await _replace_disk(context, name, str(refusal))
        context.end("flip-bits", name)


def _flip(context: FaultContext, file: Path) -> int:
    """Flip one bit; return its number, counted from the beginning of the file."""
    bit = context.random.randrange(file.stat().st_size * 8)
    with file.open("r+b") as stream:
        stream.seek(bit // 8)
        byte = stream.read(1)[0]
        stream.seek(bit // 8)
        stream.write(bytes([byte ^ 1 << bit % 8]))
    return bit


async def _replace_disk(context: FaultContext, name: str, refusal: str) -> None:
    """Replace a directory that is refused, as an operator would."""
    words = context.target.log(name).read_text(errors="replace")[-4_000:]
    if _TRACEBACK in words:
        context.wrong.append(f"{name} fell over damage instead of refusing it: {refusal}")
    data = context.target.data(name)
    number = len(list(data.parent.glob(f"{data.name}.refused-*"))) + 1
    data.rename(data.with_name(f"{data.name}.refused-{number}"))
    await context.target.bring_back(name, options=("--rebuild",))


KINDS = (
    Kind("disk-full", "a node finds no room to write (RLIMIT_FSIZE)", disk_full),
    Kind("slow-sync", "syncs of a node take 20 to 500 ms, by its test hook", slow_sync, slow=True),
    Kind("failing-sync", "a sync of a node fails, by its test hook", failing_sync, slow=True),
    Kind("flip-bits", "bits of a dead follower's files are turned over", flip_bits),
)
