"""Rows about durable changes: replacements of static members, commits, many changes in a call."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from bench.figures import Figure, least, most, quantile
from bench.group import Members
from bench.rig import Bench, Measured, Running, Watch, Work, shares
from bench.sessions import response_of, sessions
from bench.shapes import Shape
from bench.talk import OK, Line, Unexpected, read, served
from holdfast.v1 import group_pb2 as g
from holdfast.v1 import offset_pb2 as o

TOPIC = "work"
PARTITIONS = 1_000
MANY = 50
LARGE_CALLERS = 16


class Lists(NamedTuple):
    """Commits in lists on one Session stream: how many are in flight, and how many in a list."""

    in_flight: int
    length: int
    shape: Shape

    @property
    def what(self) -> str:
        """The name of its figure."""
        return f"one Session, {self.in_flight} in flight, lists of {self.length}"


LISTS = (Lists(64, 16, Shape.LISTS_OF_16), Lists(256, 64, Shape.LISTS_OF_64))


async def replacement(bench: Bench) -> None:
    """Static members that are started again, at growing sizes of the group."""
    rates: dict[int, float] = {}
    for count in bench.sizes.groups:
        what = f"join and sync in a group of {count:,}, {bench.sizes.callers} at a time"
        async with bench.cluster(f"replace-{count}") as running:
            members = Members("replaced", count)
            async with running.talk.lines(bench.sizes.connections) as lines:
                await members.form(lines)
                work = await replacements(bench, running, members, lines)
                bench.add_work("replace", what, work, unit="pairs/s", shape=Shape.PAIRS)
                part = _by_session(bench, running, members, lines, rates, what)
                await bench.attempt("replace", f"{what}, Session", part)


async def _by_session(
    bench: Bench,
    running: Running,
    members: Members,
    lines: Sequence[Line],
    rates: dict[int, float],
    unary: str,
) -> None:
    """The same members once more, on Session streams. `rates`: by size of the group."""
    work = await session_pairs(bench, running, members, lines)
    goal = least(1_500) if members.count == 1_000 else None
    if members.count == 10_000 and 100 in rates:
        goal = least(round(0.9 * rates[100]))
    rates[members.count] = work.rate
    bench.add_work(
        "replace", f"{unary}, Session", work, unit="pairs/s", goal=goal,
        shape=Shape.SESSION_PAIRS, instead=unary,
    )  # fmt: skip


async def session_pairs(
    bench: Bench, running: Measured, members: Members, lines: Sequence[Line]
) -> Work:
    """Joins and syncs as in `replacements`, each line's on one Session stream."""
    turns = [itertools.cycle(share) for share in shares(members.count, bench.sizes.callers)]
    async with sessions(lines) as on:

        async def one(caller: int) -> None:
            await members.replace_on(on[caller % len(on)].ask, next(turns[caller]))

        return await bench.closed(running, bench.sizes.callers, one)


async def replacements(
    bench: Bench, running: Measured, members: Members, lines: Sequence[Line]
) -> Work:
    """Joins and syncs of static members, many at a time."""
    turns = [itertools.cycle(share) for share in shares(members.count, bench.sizes.callers)]

    async def one(caller: int) -> None:
        await members.replace(lines[caller % len(lines)], next(turns[caller]))

    return await bench.closed(running, bench.sizes.callers, one)


async def commits(bench: Bench) -> None:
    """One durable change a call: a commit of one partition's offset."""
    async with bench.cluster("commit") as running:
        await running.talk.create_topic(TOPIC, PARTITIONS)
        async with running.talk.lines(bench.sizes.connections) as lines:
            await _alone(bench, running, lines)
            await _by_many(bench, running, lines)
            for window in (1, bench.sizes.callers):
                what = f"one stream, {window} in flight"
                await bench.attempt("commit", what, _streamed(bench, running, lines[0], window))
            for each in LISTS:
                await bench.attempt("commit", each.what, _listed(bench, running, lines[0], each))


async def _alone(bench: Bench, running: Running, lines: Sequence[Line]) -> None:
    work = await unary(bench, running, lines, 1)
    shape = Shape.COMMIT_ALONE
    bench.add_work("commit", "unary, one caller", work, unit="changes/s", shape=shape)
    p50 = quantile(work.times, 0.5) * 1000
    what = "one sequential change, p50"
    bench.add(Figure("commit", what, p50, "ms", most(2.5), effort=work.effort))


async def _by_many(bench: Bench, running: Running, lines: Sequence[Line]) -> None:
    callers = bench.sizes.callers
    work = await unary(bench, running, lines, callers)
    what, goal = f"unary, {callers} callers", least(3_000)
    bench.add_work("commit", what, work, unit="changes/s", goal=goal, shape=Shape.COMMITS)
    p99 = quantile(work.times, 0.99) * 1000
    bench.add(Figure("commit", f"p99 of {what}", p99, "ms", most(60), effort=work.effort))


async def unary(bench: Bench, running: Measured, lines: Sequence[Line], callers: int) -> Work:
    """Commits of one partition, each caller for a group of its own."""
    numbers = itertools.count()

    async def one(caller: int) -> None:
        line, request = lines[caller % len(lines)], commit(caller, next(numbers))
        check(await line.offset.OffsetCommit(request))

    return await bench.closed(running, callers, one)


async def _streamed(bench: Bench, running: Running, line: Line, window: int) -> None:
    work = await streamed(bench, running, line, window)
    goal, shape = (
        (least(6_000), Shape.COMMIT_STREAM) if window > 1 else (None, Shape.COMMIT_STREAM_ALONE)
    )
    what = f"one stream, {window} in flight"
    bench.add_work("commit", what, work, unit="changes/s", goal=goal, shape=shape)


async def streamed(bench: Bench, running: Measured, line: Line, window: int) -> Work:
    """Commits on one stream, so many in flight; answered in order."""
    await served(line.offset.OffsetCommitStream(iter(())))
    await _stream(line, window, time.perf_counter() + bench.sizes.warm_up_s)
    watch = Watch(running)
    times = await _stream(line, window, time.perf_counter() + bench.sizes.seconds)
    return Work(times, watch.spent())


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


async def _listed(bench: Bench, running: Running, line: Line, lists: Lists) -> None:
    work = await listed(bench, running, line, lists)
    goal = least(6_000) if lists.length > LARGE_CALLERS else None
    bench.add_work(
        "commit", lists.what, work, unit="changes/s", goal=goal, each=lists.length,
        shape=lists.shape, instead=f"one stream, {bench.sizes.callers} in flight",
    )  # fmt: skip


async def listed(bench: Bench, running: Measured, line: Line, lists: Lists) -> Work:
    """Each list is sent when one before it is answered as a whole."""
    numbers = itertools.count()
    async with sessions([line]) as (on,):

        async def one(caller: int) -> None:
            first, number = caller * lists.length, next(numbers)
            requests = [commit(first + place, number) for place in range(lists.length)]
            for answer in await on.ask_all(requests):
                check(response_of(answer))

        return await bench.closed(running, lists.in_flight // lists.length, one)


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
            work = await large(bench, running, lines)
            bench.add_work(
                "many", f"commits of {MANY} partitions, {LARGE_CALLERS} callers", work,
                unit="changes/s", goal=least(20_000), each=MANY, shape=Shape.LARGE_COMMITS,
            )  # fmt: skip
            await _leave(bench, running, lines)


async def large(bench: Bench, running: Measured, lines: Sequence[Line]) -> Work:
    """Commits of many partitions."""
    numbers = itertools.count()

    async def one(caller: int) -> None:
        request = commit(caller, next(numbers), MANY)
        check(await lines[caller % len(lines)].offset.OffsetCommit(request))

    return await bench.closed(running, LARGE_CALLERS, one)


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
    work = Work(times, watch.spent())
    bench.add_work("many", what, work, unit="changes/s", goal=least(20_000), each=MANY)
