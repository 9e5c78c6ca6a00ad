"""Rows about durable changes: replacements of static members, commits, many changes in a call."""

from __future__ import annotations

import itertools
import time
from collections import deque

from bench.figures import Figure, Goal, least, most
from bench.group import Members
from bench.rig import Bench, Running, Watch, Work, shares
from bench.talk import OK, Line, Unexpected, read
from holdfast.v1 import group_pb2 as g
from holdfast.v1 import offset_pb2 as o

TOPIC = "work"
PARTITIONS = 1_000
MANY = 50


async def replacement(bench: Bench) -> None:
    """Static members that are started again, at growing sizes of the group."""
    rates: dict[int, float] = {}
    for count in bench.sizes.groups:
        async with bench.cluster(f"replace-{count}") as running:
            work = await _replace(bench, running, count)
        goal = least(1_500) if count == 1_000 else None
        if count == 10_000 and 1_000 in rates:
            goal = least(round(0.8 * rates[1_000]))
        rates[count] = work.rate
        what = f"join and sync in a group of {count:,}, {bench.sizes.callers} at a time"
        bench.add_work("replace", what, work, unit="pairs/s", goal=goal)


async def _replace(bench: Bench, running: Running, count: int) -> Work:
    members = Members("replaced", count)
    async with running.talk.lines(bench.sizes.connections) as lines:
        await members.form(lines)
        turns = [itertools.cycle(share) for share in shares(count, bench.sizes.callers)]

        async def one(caller: int) -> None:
            await members.replace(lines[caller % len(lines)], next(turns[caller]))

        return await bench.closed(running, bench.sizes.callers, one)


async def commits(bench: Bench) -> None:
    """One durable change a call: a commit of one partition's offset."""
    async with bench.cluster("commit") as running:
        await running.talk.create_topic(TOPIC, PARTITIONS)
        async with running.talk.lines(bench.sizes.connections) as lines:
            await _unary(bench, running, lines, 1, most(2.5))
            await _unary(bench, running, lines, bench.sizes.callers, least(3_000))
            await _streamed(bench, running, lines[0], 1)
            await _streamed(bench, running, lines[0], bench.sizes.callers)


async def _unary(
    bench: Bench, running: Running, lines: list[Line], callers: int, goal: Goal
) -> None:
    numbers = itertools.count()

    async def one(caller: int) -> None:
        line, request = lines[caller % len(lines)], commit(caller, next(numbers))
        check(await line.offset.OffsetCommit(request))

    work = await bench.closed(running, callers, one)
    if callers == 1:
        bench.add_work("commit", "unary, one caller", work, unit="changes/s")
        _add_p50(bench, work, "one sequential change, p50", goal)
        return
    bench.add_work("commit", f"unary, {callers} callers", work, unit="changes/s", goal=goal)
    p99 = bench.figures[-1].p99_ms
    assert p99 is not None
    what = f"p99 of unary, {callers} callers"
    bench.add(Figure("commit", what, p99, "ms", most(60), effort=work.effort))


def _add_p50(bench: Bench, work: Work, what: str, goal: Goal) -> None:
    p50 = bench.figures[-1].p50_ms
    assert p50 is not None
    bench.add(Figure("commit", what, p50, "ms", goal, effort=work.effort))


async def _streamed(bench: Bench, running: Running, line: Line, window: int) -> None:
    """Commits on one stream, so many in flight; answered in order."""
    await _stream(line, window, time.perf_counter() + bench.sizes.warm_up_s)
    watch = Watch(running)
    times = await _stream(line, window, time.perf_counter() + bench.sizes.seconds)
    work = Work(times, watch.effort())
    goal = least(6_000) if window > 1 else None
    bench.add_work("commit", f"one stream, {window} in flight", work, unit="changes/s", goal=goal)


async def _stream(line: Line, window: int, until: float) -> list[float]:
    call = line.offset.OffsetCommitStream()
    sent: deque[float] = deque()
    times: list[float] = []
    numbers = itertools.count()
    while sent or time.perf_counter() < until:
        while len(sent) < window and time.perf_counter() < until:
            number = next(numbers)
            sent.append(time.perf_counter())
            await call.write(commit(number % window, number))
        if sent:
            check(await read(call))
            times.append(time.perf_counter() - sent.popleft())
    await call.done_writing()
    return times


def commit(caller: int, number: int, partitions: int = 1) -> o.OffsetCommitRequest:
    """A commit by a caller's own group, which has no members."""
    offsets = [
        o.OffsetCommitRequestPartition(
            partition_index=(number + i) % PARTITIONS, committed_offset=number
        )
        for i in range(partitions)
    ]
    topic = o.OffsetCommitRequestTopic(name=TOPIC, partitions=offsets)
    return o.OffsetCommitRequest(group_id=f"commits-{caller}", topics=[topic])


def check(answer: o.OffsetCommitResponse) -> None:
    """Raise Unexpected unless every partition was committed."""
    for topic in answer.topics:
        for partition in topic.partitions:
            if partition.error_code != OK:
                raise Unexpected("a commit", partition.error_code, answer.holdfast.message)


async def many(bench: Bench) -> None:
    """Many changes in a call: fifty offsets, fifty members that leave."""
    async with bench.cluster("many") as running:
        await running.talk.create_topic(TOPIC, PARTITIONS)
        async with running.talk.lines(bench.sizes.connections) as lines:
            numbers = itertools.count()

            async def one(caller: int) -> None:
                request = commit(caller, next(numbers), MANY)
                check(await lines[caller % len(lines)].offset.OffsetCommit(request))

            work = await bench.closed(running, 16, one)
            what = f"commits of {MANY} partitions, 16 callers"
            bench.add_work("many", what, work, unit="changes/s", goal=least(20_000), each=MANY)
            await _leave(bench, running, lines)


async def _leave(bench: Bench, running: Running, lines: list[Line]) -> None:
    """Every member of a large group leaves, fifty a call, one call after another."""
    count = bench.sizes.members_max
    members = Members("leaving", count)
    await members.form(lines)
    watch = Watch(running)
    times: list[float] = []
    for first in range(0, count, MANY):
        began = time.perf_counter()
        leaving = [
            g.LeaveGroupRequestMember(group_instance_id=members.instance(number))
            for number in range(first, min(first + MANY, count))
        ]
        answer = await lines[0].group.LeaveGroup(
            g.LeaveGroupRequest(group_id=members.group_id, members=leaving)
        )
        for member in answer.members:
            if member.error_code != OK:
                raise Unexpected("a leave", member.error_code)
        times.append(time.perf_counter() - began)
    what = f"leaves of {MANY} members, one call after another, {count:,} in the group"
    work = Work(times, watch.effort())
    bench.add_work("many", what, work, unit="changes/s", goal=least(20_000), each=MANY)
