"""A static member is killed, and another process takes its place at once (`consumer_takeover`)."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench.consumer_members import members
from bench.figures import Figure, most
from bench.rig import Bench, Running

PROGRAM: Final = Path(__file__).with_name("static_member.py")
GROUP: Final = "succeeding"
OTHERS: Final = 9
EACH: Final = 10
"""Partitions that each of them owns, the one that is killed as well."""
WITHIN_S: Final = 60.0


async def successors(bench: Bench, running: Running) -> None:
    """Kill a member, start the next process of its instance id; again and again."""
    await running.talk.create_topic(GROUP, (OTHERS + 1) * EACH)
    found: list[float] = []
    async with (
        running.talk.lines(OTHERS) as lines,
        members(GROUP, lines, [GROUP], OTHERS) as made,
    ):
        await asyncio.gather(*(each.join() for each in made))
        with _member(running) as first:
            await _owns(first)
        told = sum(each.pushes for each in made)
        for _ in range(bench.sizes.scale_ups):
            with _member(running) as process:
                found.append(await _owns(process))
        pushes = sum(each.pushes for each in made) - told
    what = "a killed static member's successor: from its start until it owns all that the other did"
    bench.add(Figure("consumer", what, max(found), "s", most(1), more={"all_s": found}))
    bench.add(Figure("consumer", "pushes to the other members for it", pushes, "", most(0)))


@contextmanager
def _member(running: Running) -> Iterator[subprocess.Popen[str]]:
    """A process of the instance id; killed with -9 at the end."""
    shown = running.cluster.credentials()
    orders = {
        "endpoint": running.talk.leader.address, "group": GROUP, "topic": GROUP,
        "instance_id": "i", "partitions": EACH,
        "ca": shown.ca.decode(), "key": shown.key.decode(),
        "certificate": shown.certificate.decode(),
    }  # fmt: skip
    command, pipe = (sys.executable, str(PROGRAM)), subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            assert process.stdin is not None
            print(json.dumps(orders), file=process.stdin, flush=True)
            yield process
        finally:
            process.kill()


async def _owns(process: subprocess.Popen[str]) -> float:
    """Wait until it owns its share; the seconds since it began. Raises TimeoutError, ValueError."""
    assert process.stdout is not None
    async with asyncio.timeout(WITHIN_S):
        return float(await asyncio.to_thread(process.stdout.readline))
