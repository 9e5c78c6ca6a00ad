"""Disks that are full, slow, failing or damaged. Never more than one node's at a time.

Full by RLIMIT_FSIZE; slow and failing by the nodes' test hook (`--test-failpoints`), for which the
node is restarted, before and after; damage by flipping bits in the files of a node that is dead.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Final

from holdfast.chaos.clock import boot_us
from holdfast.chaos.cluster.target import NotHealed
from holdfast.chaos.nemesis.battle import Battle, Kind

_ROOM_LEAST: Final = 65_536
"""Bytes of each file that can be written at all: the pages that say which others are in use."""
_FULL_S: Final = 10.0
_LOOK_S: Final = 0.05
_FLIPS_MAX: Final = 8
_TRACEBACK: Final = "Traceback (most recent call last)"


async def disk_full(battle: Battle) -> None:
    """The next batch of a node finds no room; it stops, and what it accepted is there (S20).

    A journal that was cut has pages to use again, so a limit at its size would wait for long.
    """
    name, _ = await battle.someone()
    size = (battle.target.data(name) / "raft" / "data.mdb").stat().st_size
    with battle.fault("disk-full", name):
        battle.target.limit_files(name, max(size // 2, _ROOM_LEAST))
        stopped = await _ends_within(battle, name, _FULL_S)
        battle.target.limit_files(name, None)
        ended_us = boot_us()
        if stopped:
            await battle.served_again(ended_us)
            await battle.target.bring_back(name)


async def _ends_within(battle: Battle, name: str, seconds: float) -> bool:
    """Whether a node's process ends by itself in this time."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while loop.time() < until:
        if not battle.target.alive(name):
            return True
        await asyncio.sleep(_LOOK_S)
    return False


async def slow_sync(battle: Battle) -> None:
    """Each sync takes up to half a second: no session may expire for it (S9)."""
    name, _ = await battle.someone()
    file = await _with_failpoints(battle, name)
    delay_ms = battle.random.randint(20, 500)
    if battle.random.random() < 0.5:  # noqa: PLR2004 - half of the time
        await _lead(battle, name)
    with battle.fault("slow-sync", name, delay_ms=delay_ms):
        _wish(file, {"sync_delay_ms": delay_ms})
        await battle.hold(2.0, 5.0)
        file.unlink()
    await _without_failpoints(battle, name)


async def failing_sync(battle: Battle) -> None:
    """A sync fails: the node must stop at once, and never try again (the fsync lesson)."""
    name, _ = await battle.someone()
    file = await _with_failpoints(battle, name)
    with battle.fault("failing-sync", name) as moment:
        _wish(file, {"sync_fails": True})
        try:
            await battle.target.gone(name)
        except NotHealed:
            battle.wrong.append(f"{name} went on although its syncs failed")
            await battle.target.kill(name)
        file.unlink()
        await battle.served_again(moment)
        await battle.target.bring_back(name)


async def _with_failpoints(battle: Battle, name: str) -> Path:
    """Start a node again with the test hook; the file that it reads."""
    file = battle.folder / f"{name}.failpoints"
    file.unlink(missing_ok=True)
    await battle.target.stop(name)
    await battle.target.bring_back(name, options=("--test-failpoints", str(file)))
    await battle.target.whole()
    return file


def _wish(file: Path, what: dict[str, int | bool]) -> None:
    """By rename, so that the node never reads half of it."""
    draft = file.with_suffix(".new")
    draft.write_text(json.dumps(what))
    draft.replace(file)


async def _without_failpoints(battle: Battle, name: str) -> None:
    await battle.target.whole()
    await battle.target.stop(name)
    await battle.target.bring_back(name)


async def _lead(battle: Battle, name: str) -> None:
    """Hand the leadership to a node, if it can have it."""
    if await battle.target.leader() != name:
        await battle.admin.transfer_leadership(name)
        await battle.target.leader()


async def flip_bits(battle: Battle) -> None:
    """A few bits of a dead node's files are wrong: found at its start and healed from peers (S21).

    What it cannot heal by itself it must refuse with a sentence; then an operator gives it an empty
    directory, which it fills from its peers (S19).
    """
    name = await battle.follower()
    environment = battle.random.choice(("raft", "state"))
    file = battle.target.data(name) / environment / "data.mdb"
    with battle.fault("kill-follower", name):
        await battle.target.kill(name)
        places = [_flip(battle, file) for _ in range(battle.random.randint(1, _FLIPS_MAX))]
        battle.begin("flip-bits", name, file=f"{environment}/data.mdb", bits=places)
        try:
            await battle.target.bring_back(name)
        except NotHealed as refusal:
            await _replace_disk(battle, name, str(refusal))
        battle.end("flip-bits", name)


def _flip(battle: Battle, file: Path) -> int:
    """Turn one bit over; which one, counted from the beginning of the file."""
    bit = battle.random.randrange(file.stat().st_size * 8)
    with file.open("r+b") as stream:
        stream.seek(bit // 8)
        byte = stream.read(1)[0]
        stream.seek(bit // 8)
        stream.write(bytes([byte ^ 1 << bit % 8]))
    return bit


async def _replace_disk(battle: Battle, name: str, refusal: str) -> None:
    """What an operator does with a directory that is refused."""
    words = battle.target.log(name).read_text(errors="replace")[-4_000:]
    if _TRACEBACK in words:
        battle.wrong.append(f"{name} fell over damage instead of refusing it: {refusal}")
    data = battle.target.data(name)
    number = len(list(data.parent.glob(f"{data.name}.refused-*"))) + 1
    data.rename(data.with_name(f"{data.name}.refused-{number}"))
    await battle.target.bring_back(name, options=("--rebuild",))


KINDS = (
    Kind("disk-full", "a node finds no room to write (RLIMIT_FSIZE)", disk_full),
    Kind("slow-sync", "syncs of a node take 20 to 500 ms, by its test hook", slow_sync, slow=True),
    Kind("failing-sync", "a sync of a node fails, by its test hook", failing_sync, slow=True),
    Kind("flip-bits", "bits of a dead follower's files are turned over", flip_bits),
)
