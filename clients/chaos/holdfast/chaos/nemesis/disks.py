"""Disks that are full, slow, failing or damaged. Never more than one node's at a time.

A disk is full by RLIMIT_FSIZE. It is slow or failing by the node's test hook (`--test-failpoints`),
for which the node is restarted before and after. It is damaged by flipped bits in the files of a
dead node; of its journal's tail it is known which of them must be told. Knows no client.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from holdfast.chaos.clock import boot_us
from holdfast.chaos.cluster.target import NotHealed
from holdfast.chaos.nemesis.fault_context import FaultContext, Kind
from holdfast.chaos.nemesis.journal_tail import Span, acknowledged, tail_files, written
from holdfast.storage.journal.tail_file import BLOCK

_ROOM_LEAST: Final = 65_536
"""Bytes of each file that stay writable: the pages that record which others are in use. A file of
the journal's tail that was just begun takes some more batches, then."""
_FULL_S: Final = 10.0
_LOOK_S: Final = 0.05
_FLIPS_MAX: Final = 8
_JOURNAL: Final = "raft"
_ENVIRONMENTS: Final = (f"{_JOURNAL}/data.mdb", "state/data.mdb")
_TRACEBACK: Final = "Traceback (most recent call last)"


async def disk_full(context: FaultContext) -> None:
    """Leave a node's next batch no room: it stops, and what it accepted is kept (S20).

    Neither the journal's tail nor its environment can take another batch. An environment that was
    cut reuses pages, so a limit at its size would take effect late.
    """
    name, _ = await context.someone()
    with context.fault("disk-full", name):
        context.target.limit_files(name, _room(context.target.data(name) / _JOURNAL))
        stopped = await _ends_within(context, name, _FULL_S)
        context.target.limit_files(name, None)
        ended_us = boot_us()
        if stopped:
            await context.served_again(ended_us)
            await context.target.bring_back(name)


def _room(journal: Path) -> int:
    environment = (journal / "data.mdb").stat().st_size // 2
    return max(min(environment, written(journal)), _ROOM_LEAST)


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


class Flips(NamedTuple):
    """Bits to turn over in one file, and what must come of it."""

    file: Path
    bits: list[int]
    """Their numbers, counted from the beginning of the file."""
    must_be_told: bool | None
    """Whether the next start must tell of damage, or must not; None: it may."""


async def flip_bits(context: FaultContext) -> None:
    """Flip bits in a dead node's files: it finds them at its start and heals from peers (S21).

    Damage that it cannot heal it must refuse with a sentence; then an operator gives it an empty
    directory, which it fills from its peers (S19).
    """
    name = await context.follower()
    data, random = context.target.data(name), context.random
    with context.fault("kill-follower", name):
        await context.target.kill(name)
        count = random.randint(1, _FLIPS_MAX)
        part = random.choice((*_ENVIRONMENTS, _JOURNAL))
        if part == _JOURNAL:
            flips = flips_in_tail(data / _JOURNAL, random, count)
        else:
            flips = Flips(data / part, _bits_of(data / part, random, count), None)
        turn_over(flips)
        place = str(flips.file.relative_to(data))
        context.begin("flip-bits", name, file=place, bits=flips.bits)
        await _start_on_flips(context, name, flips)
        context.end("flip-bits", name)


def flips_in_tail(journal: Path, random: Random, count: int) -> Flips:
    """Choose bits of a stopped node's tail: three times out of four one that was acknowledged.

    The head of a file, the last batch or any other; the rest of the bits lie anywhere in its file.
    """
    spans = acknowledged(journal)
    if random.random() < 0.25:  # noqa: PLR2004 - a quarter of the time
        return _harmless_flips(random.choice(tail_files(journal)), spans, random, count)
    span = random.choice((spans[0], spans[-1], random.choice(spans)))
    first = random.randrange(span.begin * 8, span.end * 8)
    more = _bits_of(span.file, random, count - 1)
    return Flips(span.file, sorted({first, *more}), must_be_told=True)


def _harmless_flips(file: Path, spans: list[Span], random: Random, count: int) -> Flips:
    """Choose bits outside the spans: one anywhere, the others near them half of the time."""
    kept = [span for span in spans if span.file == file]
    near = max((span.end + BLOCK for span in kept), default=0)
    most = near if random.random() < 0.5 else 0  # noqa: PLR2004 - half of the time
    bits = {*_bits_of(file, random, 1), *_bits_of(file, random, count - 1, most)}
    free = [bit for bit in bits if not any(s.begin * 8 <= bit < s.end * 8 for s in kept)]
    return Flips(file, sorted(free), must_be_told=False)


def _bits_of(file: Path, random: Random, count: int, most: int = 0) -> list[int]:
    """Choose bits of a file, or of its first `most` bytes, if a number is given."""
    size = file.stat().st_size
    return sorted(random.sample(range(min(most or size, size) * 8), count))


def turn_over(flips: Flips) -> None:
    """Turn the bits over where they lie."""
    with flips.file.open("r+b") as stream:
        for bit in flips.bits:
            stream.seek(bit // 8)
            byte = stream.read(1)[0]
            stream.seek(bit // 8)
            stream.write(bytes([byte ^ 1 << bit % 8]))


async def _start_on_flips(context: FaultContext, name: str, flips: Flips) -> None:
    """Start the node on damaged files; note if it did not tell damage, or told what is none."""
    data = context.target.data(name)
    before, is_told = _set_aside(data), False
    try:
        await context.target.bring_back(name)
        is_told = _set_aside(data) != before
    except NotHealed as refusal:
        is_told = True
        await _replace_disk(context, name, str(refusal))
    if flips.must_be_told not in {None, is_told}:
        did = "called its disk damaged" if is_told else "started as if its disk were sound"
        was = "nothing that counts" if is_told else "what it had acknowledged"
        context.wrong.append(
            f"{name} {did}, but {was} was turned over: bits {flips.bits} of {flips.file.name}"
        )


def _set_aside(data: Path) -> set[Path]:
    return set(data.glob("*.damaged-*"))


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
