"""Rows about groups of the heartbeat protocol, beside those of the classic one in the same run."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Final

from bench import heartbeats, rebalances
from bench.consumer_members import Member, Tally, members, targets
from bench.figures import Figure, least, median, most
from bench.group import Members
from bench.rig import Bench, Running, Watch, Work
from bench.successors import successors
from bench.talk import Line, read, served
from holdfast.coordinator.consumer.assignors import ASSIGNORS, GroupSpec, MemberSpec
from holdfast.coordinator.consumer.assignors.spec import Target
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import group_pb2 as g

BEFORE: Final = 100
"""Members that one more joins."""
MANY: Final = 1_000
REMOVED: Final = 100
TOPICS: Final = 100
PARTITIONS: Final = 10_000
JOINED_TARGETS: Final = 50
TURNS: Final = 5
CONNECTIONS: Final = 50
"""Of the many: processes of twenty members each."""
A_MESSAGE: Final = heartbeats.A_MESSAGE
LIFE: Final = "01900000-0000-7000-8000-000000000001"
_NUMBERS: Final = itertools.count(1)
LOOK_S: Final = 0.2
LOOKS_MAX: Final = 300


async def consumer(bench: Bench) -> None:
    """Groups of the heartbeat protocol: beats, one more, a successor, many, assignors."""
    assignors(bench)
    async with bench.cluster("consumer") as running:
        await _beats(bench, running)
        await _one_more(bench, running)
        await successors(bench, running)
        await _many(bench, running)


# --- plain heartbeats ---


async def _beats(bench: Bench, running: Running) -> None:
    """Heartbeats that change nothing, a hundred a message, of either protocol in turn."""
    classic = Members("beating", bench.sizes.beating_members)
    await running.talk.create_topic("beats", bench.sizes.beating_members)
    async with running.talk.lines(bench.sizes.connections) as lines:
        await classic.form(lines)
        requests = await _joined(lines, "plain", bench.sizes.beating_members)
        numbered = await _joined(lines, "numbered", bench.sizes.beating_members, LIFE)
        found: dict[str, list[Work]] = {"classic": [], "consumer": [], "numbered": []}
        for _ in range(TURNS):
            found["classic"].append(await heartbeats.streams(bench, running, lines, classic))
            found["consumer"].append(await _streams(bench, running, lines, requests))
            found["numbered"].append(await _streams(bench, running, lines, numbered))
    rates = {kind: [each.rate * A_MESSAGE for each in works] for kind, works in found.items()}
    costs = {kind: [_leaders_us(each) for each in works] for kind, works in found.items()}
    more: dict[str, object] = {"rates": rates, "leader_us": costs}
    best = max(rates["consumer"])
    bench.add(Figure("consumer", "plain heartbeats, shared streams", best, "a second", more=more))
    what = "plain heartbeats for the leader's time, against the classic protocol"
    bench.add(Figure("consumer", what, _ratio(costs, "consumer"), "times", least(0.9)))
    what = "the same, numbered as `holdfast.client` does"
    bench.add(Figure("consumer", what, _ratio(costs, "numbered"), "times"))


def _ratio(costs: Mapping[str, Sequence[float]], kind: str) -> float:
    """The ratio of what the classic protocol costs, turn by turn: the median."""
    return median(
        [classic / own for classic, own in zip(costs["classic"], costs[kind], strict=True)]
    )


def _leaders_us(work: Work) -> float:
    """Processor time of the leader for a heartbeat: neighbours and the load hardly touch it."""
    return work.spent.cost(len(work.times) * A_MESSAGE).leader_us


async def _joined(
    lines: Sequence[Line], group_id: str, count: int, life: str = ""
) -> list[g.ConsumerGroupHeartbeatRequest]:
    """Let members join, one partition each; the heartbeat of each, once it has all that it gets.

    `life`: of their processes, if they number their heartbeats.
    """
    wants = g.ConsumerGroupTopicNames(names=["beats"])
    joins = [
        g.ConsumerGroupHeartbeatRequest(
            group_id=group_id, member_id=f"m-{number:05}", rebalance_timeout_ms=60_000,
            subscribed_topic_names=wants, topic_partitions=g.ConsumerGroupAssignment(),
        )
        for number in range(count)
    ]  # fmt: skip
    call = lines[0].group.HeartbeatStream()
    for _ in range(20):  # each says what it owns, until nobody is given anything else
        _number(joins, life)
        await call.write(g.HeartbeatBatch(batch=1, consumer_requests=joins))
        message = await read(call)
        while message.pushes:
            message = await read(call)
        news = [each.HasField("assignment") for each in message.consumer_responses]
        joins = [_next(*pair) for pair in zip(joins, message.consumer_responses, strict=True)]
        if not any(news):
            break
    await call.done_writing()
    for request in joins:
        request.ClearField("topic_partitions")
    _number(joins, life)
    return joins


def _number(requests: Iterable[g.ConsumerGroupHeartbeatRequest], life: str) -> None:
    """Give heartbeats the next number of their process (S26), if they have any."""
    number = next(_NUMBERS)
    for request in requests if life else ():
        request.holdfast.life, request.holdfast.beat = life, number


def _next(
    request: g.ConsumerGroupHeartbeatRequest, answer: g.ConsumerGroupHeartbeatResponse
) -> g.ConsumerGroupHeartbeatRequest:
    owned = answer.assignment if answer.HasField("assignment") else request.topic_partitions
    return g.ConsumerGroupHeartbeatRequest(
        group_id=request.group_id, member_id=request.member_id, member_epoch=answer.member_epoch,
        topic_partitions=owned,
    )  # fmt: skip


async def _streams(
    bench: Bench,
    running: Running,
    lines: Sequence[Line],
    requests: Sequence[g.ConsumerGroupHeartbeatRequest],
) -> Work:
    """Each stream sends its next message when the last one is answered."""
    await served(lines[0].group.HeartbeatStream(iter(())))
    life = requests[0].holdfast.life
    calls = [
        lines[number % len(lines)].group.HeartbeatStream() for number in range(heartbeats.STREAMS)
    ]
    batches = heartbeats.in_turn(
        [
            g.HeartbeatBatch(batch=1, consumer_requests=requests[at : at + A_MESSAGE])
            for at in range(0, len(requests), A_MESSAGE)
        ]
    )

    async def one(caller: int) -> None:
        call, batch = calls[caller], next(batches[caller])
        _number(batch.consumer_requests, life)
        await call.write(batch)
        for answer in (await read(call)).consumer_responses:
            if answer.error_code:
                raise RuntimeError(f"a heartbeat that changes nothing was answered {answer}")

    work = await bench.closed(running, heartbeats.STREAMS, one)
    for call in calls:
        await call.done_writing()
    return work


# --- one more ---


async def _one_more(bench: Bench, running: Running) -> None:
    """One more member into a hundred, of either protocol in turn; and how many are pushed to."""
    await running.talk.create_topic("shared", BEFORE * 10)
    classic, found, over = list[float](), list[float](), list[int]()
    for attempt in range(bench.sizes.scale_ups):
        classic.append(await rebalances.one_more(running, f"classic-{attempt}", BEFORE))
        seconds, pushes, moved = await _one_more_into(running, f"growing-{attempt}")
        found.append(seconds)
        over.append(pushes - moved)
        bench.say(f"one more: {classic[-1]:.3f} s, {seconds:.3f} s, {pushes} pushes, {moved} moved")
    what = f"one more member: until all {BEFORE} have let go, and it owns its share"
    bench.add(Figure("consumer", what, median(found), "s", more={"all_s": found}))
    ratio = median(found) / median(classic)
    what = "one more member, against the classic protocol"
    bench.add(Figure("consumer", what, ratio, "times", most(0.5), more={"classic_s": classic}))
    what = "pushes for it above one for each that gives or takes"
    bench.add(Figure("consumer", what, max(over), "", most(1)))


async def _one_more_into(running: Running, group_id: str) -> tuple[float, int, int]:
    """Seconds until one more owns its share; how many pushes, and how many gave or took."""
    async with (
        running.talk.lines(BEFORE + 1) as lines,
        members(group_id, lines, ["shared"], BEFORE + 1) as made,
    ):
        *before, new = made
        tally: Tally = new.tally
        await asyncio.gather(*(each.join() for each in before))
        await tally.all_owned(BEFORE * 10)
        await _at_rest(lines[0], group_id)
        held, told = [each.owned for each in before], sum(each.pushes for each in made)
        watch = Watch(running)
        await new.join()
        await tally.all_owned(BEFORE * 10)
        seconds = watch.spent().seconds
        await _at_rest(lines[0], group_id)
        gave = sum(was != each.owned for was, each in zip(held, before, strict=True))
        return seconds, sum(each.pushes for each in made) - told, gave + 1


async def _at_rest(line: Line, group_id: str) -> None:
    """Wait until every member owns what it is to own, so that nothing of before is counted."""
    asked = a.ConsumerGroupDescribeRequest(group_ids=[group_id])
    for _ in range(LOOKS_MAX):
        if await _arrived(line, asked):
            return
        await asyncio.sleep(LOOK_S)
    raise TimeoutError(f"{group_id}: somebody still does not own what it is to own")


async def _arrived(line: Line, asked: a.ConsumerGroupDescribeRequest) -> bool:
    (group,) = (await line.admin.ConsumerGroupDescribe(asked)).groups
    known = group.group_epoch == group.assignment_epoch
    return known and all(each.assignment == each.target_assignment for each in group.members)


# --- many ---


async def _many(bench: Bench, running: Running) -> None:
    """A thousand join at once; then an operator removes a hundred of them."""
    topics = [f"many-{number:03}" for number in range(TOPICS)]
    for name in topics:
        await running.talk.create_topic(name, PARTITIONS // TOPICS)
    async with (
        running.talk.lines(CONNECTIONS) as lines,
        members("many", lines, topics, MANY) as made,
    ):
        tally = made[0].tally
        began = time.perf_counter()
        await asyncio.gather(*(each.join() for each in made))
        await tally.all_owned(PARTITIONS)
        seconds = time.perf_counter() - began
        await _at_rest(lines[0], "many")
        count = await targets(lines[0], "many")
        what = f"targets for {MANY:,} members that join at once"
        more: dict[str, object] = {"seconds": seconds}
        bench.add(Figure("consumer", what, count, "", most(JOINED_TARGETS), more=more))
        removed, left = made[:REMOVED], made[REMOVED:]
        told = sum(each.pushes for each in left)
        began = time.perf_counter()
        await _remove(lines[0], removed)
        await tally.all_owned(PARTITIONS)
        seconds = time.perf_counter() - began
        await _at_rest(lines[0], "many")
        more = {"pushes": sum(each.pushes for each in left) - told}
        what = f"{REMOVED} of {MANY:,} members removed: until {PARTITIONS:,} partitions are owned"
        bench.add(Figure("consumer", what, seconds, "s", most(2), more=more))
        moved = await targets(lines[0], "many") - count
        bench.add(Figure("consumer", "targets for it", moved, "", most(1)))


async def _remove(line: Line, removed: Sequence[Member]) -> None:
    for each in removed:
        each.forget()
    gone = [a.MemberToRemove(member_id=each.member_id) for each in removed]
    answer = await line.admin.RemoveMembers(a.RemoveMembersRequest(group_id="many", members=gone))
    if answer.error_code:
        raise RuntimeError(f"members could not be removed: {answer.holdfast.message}")


# --- assignors ---


def assignors(bench: Bench) -> None:
    """Processor time of a target: from nothing, then for fewer and for more members."""
    for name in ASSIGNORS:
        what = f"{name}, {MANY:,} members, {PARTITIONS:,} partitions, processor time"
        bench.add(Figure("consumer", what, _slowest(name), "s", most(0.1)))


def _slowest(name: str) -> float:
    sizes = {f"many-{number:03}": PARTITIONS // TOPICS for number in range(TOPICS)}
    wanted, fate, worst = frozenset(sizes), Random(MANY), 0.0
    held: Target = {}
    for count in (MANY, MANY - REMOVED, MANY + REMOVED):
        ids = [f"m-{number:05}" for number in range(count)]
        fate.shuffle(ids)
        specs = {each: MemberSpec(None, None, wanted, held.get(each, ())) for each in ids}
        began = time.process_time()
        held = ASSIGNORS[name](GroupSpec(specs, homogeneous=True), sizes)
        worst = max(worst, time.process_time() - began)
    return worst
