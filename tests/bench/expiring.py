"""Row about members that die together, and what other groups notice when all of them expire.

A data centre's switch fails, and the sessions of everybody behind it end within the same second.
Each end is a change on the log and begins or shortens a rebalance of its group.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from bench.figures import Figure, most
from bench.group import Members
from bench.heartbeats import A_MESSAGE, check_batch
from bench.honest import Part, commit_until, passed
from bench.rig import Bench, Running, shares
from bench.talk import Line, read
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import group_pb2 as g

SESSION_S: Final = 60.0
EACH: Final = 1_000
"""Members of a group."""
LOOK_S: Final = 0.25
EARLY_S: Final = 1.0
"""How long before the first session ends the watching begins."""
PATIENCE_S: Final = 120.0


async def expire(bench: Bench) -> None:
    """Members of many groups die at once: their sessions end, and other groups commit meanwhile."""
    count = bench.sizes.expiring
    groups = [Members(f"dying-{n}", EACH, int(SESSION_S * 1000)) for n in range(count // EACH)]
    calm, during = Part(), Part()
    async with bench.cluster("expire") as running:
        await running.talk.create_topic("work", EACH)
        async with running.talk.lines(bench.sizes.burst_connections) as lines:
            for group in groups:
                await group.form(lines)
            heard = await _hear(lines[0], groups)
            await commit_until(passed(bench.sizes.seconds), running, calm)
            await asyncio.sleep(heard + SESSION_S - EARLY_S - time.monotonic())
            seconds = await _watch(running, lines[0], {group.group_id for group in groups}, during)
    _add(bench, count, (calm, during), seconds)


async def _hear(line: Line, groups: Sequence[Members]) -> float:
    """The last sign of life of everybody, within a second or so; when the first one was sent."""
    call, began = line.group.HeartbeatStream(), time.monotonic()
    for group in groups:
        for share in shares(group.count, group.count // A_MESSAGE):
            requests = [group.heartbeat(number) for number in share]
            await call.write(g.HeartbeatBatch(batch=1, requests=requests))
            check_batch(await read(call))
    await call.done_writing()
    return began


async def _watch(running: Running, line: Line, dying: set[str], during: Part) -> float:
    """Commit until all groups are empty; seconds from the first empty one to the last."""
    empty_at: dict[str, float] = {}
    given_up = passed(PATIENCE_S)

    async def look() -> None:
        while len(empty_at) < len(dying):
            if given_up():
                raise TimeoutError(f"{len(dying) - len(empty_at)} groups still have members")
            answer = await line.admin.ListGroups(a.ListGroupsRequest(states_filter=["Empty"]))
            for group in answer.groups:
                if group.group_id in dying:
                    empty_at.setdefault(group.group_id, time.monotonic())
            await asyncio.sleep(LOOK_S)

    looking = asyncio.create_task(look())
    await commit_until(looking.done, running, during)
    await looking
    return max(empty_at.values()) - min(empty_at.values())


def _add(bench: Bench, count: int, parts: tuple[Part, Part], seconds: float) -> None:
    calm, during = parts
    ratio = during.p99_ms / calm.p99_ms
    more: dict[str, object] = {"calm_p50_ms": calm.p50_ms, "calm_p99_ms": calm.p99_ms}
    p50, p99, effort = during.p50_ms, during.p99_ms, during.effort
    what = f"p99 of other groups' commits, {count:,} members expire / none do"
    bench.add(Figure("expire", what, ratio, "times", most(2.0), p50, p99, effort=effort, more=more))
    bench.add(Figure("expire", "from the first empty group to the last", seconds, "s"))
