"""Rows about heartbeats: how many a leader can hear, and what ten thousand members cost it."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterator, Sequence

from bench import machine
from bench.figures import Figure, least, most
from bench.group import Members
from bench.rig import Bench, Measured, Running, Watch, Work, shares
from bench.shapes import BARE_ROW, Shape, floors, to_floor
from bench.talk import OK, Line, Unexpected, read, served
from holdfast.v1 import group_pb2 as g

A_MESSAGE = 100
"""Members whose heartbeats share a message."""
STREAMS = 4
INTERVAL_S = 5.0
BESIDE_BARE = most(1.25)
"""A rate of 8,000 a second is more than an empty server of ours reaches on 2 cores."""


async def unary_and_streamed(bench: Bench) -> None:
    """Heartbeats of a quiet group, one a call and a hundred a message."""
    members = Members("beating", bench.sizes.beating_members)
    async with (
        bench.cluster("heartbeat") as running,
        running.talk.lines(bench.sizes.connections) as lines,
    ):
        await members.form(lines)
        work = await unary(bench, running, lines, members, bench.sizes.callers)
        bench.add_work(
            "heartbeat", f"unary, {bench.sizes.callers} callers, {members.count:,} members", work,
            unit="heartbeats/s", shape=Shape.HEARTBEATS,
        )  # fmt: skip
        for figure in beside_bare(bench.figures):
            bench.add(figure)
        what = f"{A_MESSAGE} members a message, {STREAMS} streams"
        await bench.attempt("heartbeat", what, _streamed(bench, running, lines, members, what))


def beside_bare(figures: Sequence[Figure]) -> list[Figure]:
    """Set the last figure against the empty server's, if that ran: a rate is mostly gRPC's."""
    ratio = to_floor(figures[-1], floors(figures))
    what = f"processor time of a unary one, against the row `{BARE_ROW}`"
    return [] if ratio is None else [Figure("heartbeat", what, ratio, "times", BESIDE_BARE)]


async def unary(
    bench: Bench, running: Measured, lines: Sequence[Line], members: Members, callers: int
) -> Work:
    """A heartbeat a call, of all members in turn."""
    requests = [members.heartbeat(number) for number in range(members.count)]
    numbers = itertools.count()

    async def one(caller: int) -> None:
        request = requests[next(numbers) % len(requests)]
        check(await lines[caller % len(lines)].group.Heartbeat(request))

    return await bench.closed(running, callers, one)


async def _streamed(
    bench: Bench, running: Running, lines: Sequence[Line], members: Members, what: str
) -> None:
    work = await streams(bench, running, lines, members)
    bench.add_work(
        "heartbeat", what, work, unit="heartbeats/s", goal=least(100_000), each=A_MESSAGE,
        shape=Shape.HEARTBEAT_STREAMS,
    )  # fmt: skip


async def streams(bench: Bench, running: Measured, lines: Sequence[Line], members: Members) -> Work:
    """Each stream sends its next message when the last one is answered."""
    await served(lines[0].group.HeartbeatStream(iter(())))
    requests = [members.heartbeat(number) for number in range(members.count)]
    calls = [lines[number % len(lines)].group.HeartbeatStream() for number in range(STREAMS)]
    batches = in_turn(
        [
            g.HeartbeatBatch(batch=1, requests=requests[first : first + A_MESSAGE])
            for first in range(0, len(requests), A_MESSAGE)
        ]
    )

    async def one(caller: int) -> None:
        call = calls[caller]
        await call.write(next(batches[caller]))
        check_batch(await read(call))

    work = await bench.closed(running, STREAMS, one)
    for call in calls:
        await call.done_writing()
    return work


def in_turn(batches: Sequence[g.HeartbeatBatch]) -> Sequence[Iterator[g.HeartbeatBatch]]:
    """Share batches out among the streams, each of which sends its own in turn, without end.

    So every member is heard, as long as it takes; one that is not heard expires.
    """
    return [itertools.cycle(batches[number::STREAMS]) for number in range(STREAMS)]


def check(answer: g.HeartbeatResponse) -> None:
    """Raise Unexpected unless all is as before."""
    if answer.error_code != OK:
        raise Unexpected("a heartbeat", answer.error_code, answer.holdfast.message)


def check_batch(answer: g.HeartbeatBatchResponse) -> None:
    """Raise Unexpected unless all is as before for every member."""
    for response in answer.responses:
        check(response)


async def crowd(bench: Bench) -> None:
    """A full group at rest: memory of a node, and the leader's time for heartbeats each 5 s."""
    members = Members("crowd", bench.sizes.members_max)
    async with bench.cluster("crowd") as running:
        leader = running.talk.leader
        empty = machine.memory_bytes(leader.pid)
        async with running.talk.lines(bench.sizes.burst_connections) as lines:
            connected = machine.memory_bytes(leader.pid)
            await members.form(lines)
            await _at_rest(bench, running, lines, members)
            _memory(bench, running, len(lines), (empty, connected))


async def _at_rest(bench: Bench, running: Running, lines: Sequence[Line], members: Members) -> None:
    """Every member's heartbeat each five seconds, spread evenly, a message for each connection."""
    answered = 0
    shared = list(shares(members.count, len(lines)))
    until = time.monotonic() + INTERVAL_S + bench.sizes.steady_s

    async def keep(number: int) -> None:
        nonlocal answered
        call = lines[number].group.HeartbeatStream()
        requests = [members.heartbeat(member) for member in shared[number]]
        batch = g.HeartbeatBatch(batch=1, requests=requests)
        await asyncio.sleep(INTERVAL_S * number / len(lines))
        while time.monotonic() < until:
            await call.write(batch)
            check_batch(await read(call))
            answered += len(requests)
            await asyncio.sleep(INTERVAL_S)
        await call.done_writing()

    keeping = [asyncio.create_task(keep(number)) for number in range(len(lines))]
    await asyncio.sleep(INTERVAL_S)
    watch, before = Watch(running), answered
    await asyncio.sleep(bench.sizes.steady_s - INTERVAL_S)
    spent, heard = watch.spent(), answered - before
    await asyncio.gather(*keeping)
    what = f"{members.count:,} members, a heartbeat each {INTERVAL_S:.0f} s, shared streams"
    cost, share = spent.cost(heard), 100 * spent.effort.leader
    figure = Figure("crowd", what, share, "% of a core", most(10), cost=cost, effort=spent.effort)
    bench.add(figure)


def _memory(bench: Bench, running: Running, connections: int, before: tuple[int, int]) -> None:
    empty, connected = before
    leader = running.talk.leader.name
    mib = {n.name: machine.memory_bytes(n.pid) / 2**20 for n in running.cluster.nodes}
    followers = max(used for name, used in mib.items() if name != leader)
    for whose, used in (("the leader", mib[leader]), ("the larger follower", followers)):
        what = f"RssAnon of {whose}, {bench.sizes.members_max:,} members"
        bench.add(Figure("crowd", what, used, "MiB", most(200), more={"all_mib": mib}))
    each = (connected - empty) / connections / 1024
    bench.add(Figure("crowd", f"of it, a connection (of {connections})", each, "KiB"))
