"""One caller with a certificate that sends the largest calls there are, one after another.

Each kind is one request, or what is a little larger than a node allows. Run as a program it keeps
one kind up until it is told to end, and then prints how its calls ended, by code:

    python -m harness.hostile_calls HOST:PORT KIND [CA CERTIFICATE KEY]
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import json
import signal
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import grpc
import grpc.aio

from holdfast.client._rpc.channel import OPTIONS
from holdfast.server.guard.item_bounds import ITEMS_MAX, LEAVING_MAX, MEMBERS_MAX, OFFSETS_MAX
from holdfast.server.guard.shares import WATCHES_EACH_MAX
from holdfast.server.translate.requests import SUBSCRIBED_MAX
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import group_pb2 as g
from holdfast.v1 import log_pb2 as lg
from holdfast.v1 import offset_pb2 as o

TOPIC: Final = "attacked"
GROUP: Final = "attacked"
EMPTY_BYTES: Final = 8 << 20

Channel = grpc.aio.Channel
Attack = Callable[[Channel], Awaitable[None]]


def _find(more: int = 0) -> Any:  # noqa: ANN401 - a request
    count = ITEMS_MAX["FindCoordinatorRequest.coordinator_keys"] + more
    return g.FindCoordinatorRequest(coordinator_keys=[""] * count)


def _fetch(more: int = 0) -> Any:  # noqa: ANN401 - as above
    count = ITEMS_MAX["OffsetFetchRequest.groups.topics.partition_indexes"] + more
    topic = o.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=range(count))
    return o.OffsetFetchRequest(groups=[o.OffsetFetchRequestGroup(group_id=GROUP, topics=[topic])])


def _describe(more: int = 0) -> Any:  # noqa: ANN401 - as above
    names = [f"g{number}" for number in range(ITEMS_MAX["DescribeGroupsRequest.groups"] + more)]
    return a.DescribeGroupsRequest(groups=names)


def _describe_one(more: int = 0) -> Any:  # noqa: ANN401 - as above
    return a.DescribeGroupsRequest(
        groups=[GROUP] * (ITEMS_MAX["DescribeGroupsRequest.groups"] + more)
    )


def _delete(more: int = 0) -> Any:  # noqa: ANN401 - as above
    count = ITEMS_MAX["DeleteGroupsRequest.groups_names"] + more
    return a.DeleteGroupsRequest(groups_names=[f"nosuch{number}" for number in range(count)])


def _commit(more: int = 0) -> Any:  # noqa: ANN401 - as above
    partitions = [
        o.OffsetCommitRequestPartition(partition_index=number, committed_offset=7)
        for number in range(OFFSETS_MAX + more)
    ]
    topic = o.OffsetCommitRequestTopic(name=TOPIC, partitions=partitions)
    return o.OffsetCommitRequest(group_id=GROUP, topics=[topic])


def _leave(more: int = 0) -> Any:  # noqa: ANN401 - as above
    ghosts = [
        g.LeaveGroupRequestMember(member_id=f"ghost-{number}")
        for number in range(LEAVING_MAX + more)
    ]
    return g.LeaveGroupRequest(group_id=GROUP, members=ghosts)


def _sync(more: int = 0) -> Any:  # noqa: ANN401 - as above
    given = [
        g.SyncGroupRequestAssignment(member_id=f"ghost-{number}", assignment=b"a" * 300)
        for number in range(MEMBERS_MAX + more)
    ]
    return g.SyncGroupRequest(group_id=GROUP, member_id="ghost-0", assignments=given)


def _join(more: int = 0) -> Any:  # noqa: ANN401 - as above
    half = [f"topic-{number}" for number in range(SUBSCRIBED_MAX // 2)]
    offered = [half, half, ["one"] * more]
    protocols = [
        g.JoinGroupRequestProtocol(
            name=f"p{number}",
            metadata=g.ConsumerProtocolSubscription(topics=topics).SerializeToString(),
        )
        for number, topics in enumerate(offered)
    ]
    return g.JoinGroupRequest(
        group_id="never-joined",
        session_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=protocols,
    )


def _beats(more: int = 0) -> g.HeartbeatBatch:
    count = ITEMS_MAX["HeartbeatBatch.requests"] + more
    nobody = g.HeartbeatRequest(group_id=GROUP, member_id="nobody", generation_id=1)
    return g.HeartbeatBatch(requests=[nobody] * count)


_UNARY: Final[dict[str, Callable[[int], Any]]] = {
    "GroupService/FindCoordinator": _find,
    "OffsetService/OffsetFetch": _fetch,
    "AdminService/DescribeGroups": _describe,
    "AdminService/DescribeGroups, one group": _describe_one,
    "AdminService/ListGroups": lambda _: a.ListGroupsRequest(),
    "AdminService/DeleteGroups": _delete,
    "OffsetService/OffsetCommit": _commit,
    "GroupService/LeaveGroup": _leave,
    "GroupService/SyncGroup": _sync,
    "GroupService/JoinGroup": _join,
}
_UNBOUNDED: Final = frozenset({"AdminService/ListGroups"})
"""Requests with nothing in them that could be too many."""


def _unary(channel: Channel, method: str) -> grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]:
    return channel.unary_unary(f"/holdfast.v1.{method.partition(',')[0]}")


def _largest(method: str) -> Attack:
    raw = _UNARY[method](0).SerializeToString()

    async def attack(channel: Channel) -> None:
        await _unary(channel, method)(raw)

    return attack


def _above() -> Attack:
    """All calls with one item more than is allowed, in turn."""
    methods = [method for method in _UNARY if method not in _UNBOUNDED]
    requests = itertools.cycle([(one, _UNARY[one](1).SerializeToString()) for one in methods])

    async def attack(channel: Channel) -> None:
        method, raw = next(requests)
        await _unary(channel, method)(raw)

    return attack


def _empties() -> Attack:
    """Bytes of which each two would be an item: some four million protocols of a join."""
    raw = b"\x3a\x00" * (EMPTY_BYTES // 2)

    async def attack(channel: Channel) -> None:
        await _unary(channel, "GroupService/JoinGroup")(raw)

    return attack


def _batches(more: int) -> Attack:
    """Batches of heartbeats of nobody."""
    raw = _beats(more).SerializeToString()

    async def attack(channel: Channel) -> None:
        path = "/holdfast.v1.GroupService/HeartbeatStream"
        stream: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(path)
        call = stream()
        while True:
            await call.write(raw)
            if await call.read() is grpc.aio.EOF:
                await _raise_end(call)
            _told("OK")

    return attack


async def _raise_end(call: Any) -> None:  # noqa: ANN401 - a stream
    code, details = await call.code(), await call.details()
    raise grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), details)


def _watches(count: int) -> Attack:
    """So many watches at once, each of which every event wakes; those that end come again."""

    async def attack(channel: Channel) -> None:
        await asyncio.gather(*(_watch(channel) for _ in range(count)))

    return attack


async def _watch(channel: Channel) -> None:
    path = "/holdfast.v1.LogService/Watch"
    watch: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream(path)
    while True:
        try:
            async for _ in watch(lg.WatchRequest().SerializeToString()):
                _told("OK")
        except grpc.aio.AioRpcError as error:
            _told(error.code().name)
        await asyncio.sleep(_PAUSE_S)


_COUNT: Final[Counter[str]] = Counter()
_FIRST: Final = asyncio.Event()
_PAUSE_S: Final = 0.05
PATIENCE_S: Final = 20.0
"""For the first call to end, on a machine that has much to do."""


def _told(code: str) -> None:
    """Count how a call ended."""
    _COUNT[code] += 1
    _FIRST.set()


Kinds = dict[str, tuple[str, Callable[[], Attack]]]
ABOVE: Final[Kinds] = {
    "one item more, ten calls in turn": ("INVALID_ARGUMENT", _above),
    "a batch of one heartbeat more": ("INVALID_ARGUMENT", lambda: _batches(1)),
    "8 MiB of empty items": ("INVALID_ARGUMENT", _empties),
    "watches above the limit": ("RESOURCE_EXHAUSTED", lambda: _watches(2 * WATCHES_EACH_MAX)),
}
"""What no node takes, with the code that it must end with."""
LARGEST: Final[Kinds] = {
    **{name: ("OK", functools.partial(_largest, name)) for name in _UNARY},
    "GroupService/HeartbeatStream": ("OK", lambda: _batches(0)),
    "LogService/Watch": ("OK", lambda: _watches(WATCHES_EACH_MAX)),
}
"""The largest of each kind that a node takes."""
CALLS: Final[Kinds] = LARGEST | ABOVE


def _opened(address: str, tls: tuple[str, ...]) -> Channel:
    if not tls:
        return grpc.aio.insecure_channel(address, options=OPTIONS)
    ca, certificate, key = (Path(file).read_bytes() for file in tls)
    shown = grpc.ssl_channel_credentials(ca, key, certificate)
    return grpc.aio.secure_channel(address, shown, options=OPTIONS)


async def _prepare(channel: Channel) -> None:
    """A topic and a group that the calls are about."""
    topic = a.CreatableTopic(name=TOPIC, num_partitions=OFFSETS_MAX)
    create = a.CreateTopicsRequest(topics=[topic]).SerializeToString()
    await _unary(channel, "AdminService/CreateTopics")(create)
    await _unary(channel, "OffsetService/OffsetCommit")(_commit().SerializeToString())


async def _keep_up(attack: Attack, channel: Channel) -> None:
    while True:
        try:
            await attack(channel)
            _told("OK")
        except grpc.aio.AioRpcError as error:
            _told(error.code().name)


async def main(address: str, kind: str, *tls: str) -> None:
    """Keep one kind up in a closed loop until SIGTERM, then print the codes."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    async with _opened(address, tls) as channel:
        await _prepare(channel)
        attacking = asyncio.create_task(_keep_up(CALLS[kind][1](), channel))
        print("under attack", flush=True)
        await ended.wait()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(_FIRST.wait(), PATIENCE_S)
        attacking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await attacking
    print(json.dumps(_COUNT), flush=True)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(*sys.argv[1:]))
