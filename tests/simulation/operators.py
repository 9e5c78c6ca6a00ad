"""Those who ask and administer: an operator, readers of groups and offsets, and watchers.

Each is a process with the real `Admin` or the real stubs; what they do and when is drawn from their
own chance. An error is the answer of a broken cluster and goes into the history like any other.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import grpc
import grpc.aio

from holdfast.chaos.history import happenings as h
from holdfast.client.aio import Admin
from holdfast.client.errors import HoldfastError, TopicExists
from holdfast.v1 import admin_pb2, extras_pb2, log_pb2, offset_pb2
from holdfast.v1.log_pb2_grpc import LogServiceStub
from holdfast.v1.offset_pb2_grpc import OffsetServiceStub
from simulation.channel import SimChannel
from simulation.nodes import ADDRESSES, PAUSE
from simulation.populations import PAUSES_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from simulation.client_side import Net
    from simulation.process import Process
    from simulation.recorder import Recorder

ENDPOINTS: Final = tuple(ADDRESSES.values())
CALL_MS: Final = 3_000
PACED_S: Final = (2.0, 8.0)
"""After so long a setting is changed again."""
SEALED_S: Final = (0.3, 6.0)
"""After so long the log is sealed again."""
SCRATCH_CALLS: Final = 24
SCRATCH_S: Final = 0.01
"""So many calls in so short a time: some wait behind a batch, others come when it goes on."""


class Operator:
    """Makes the topics, looks at groups, and removes members now and then."""

    def __init__(
        self,
        process: Process,
        topics: Mapping[str, int],
        groups: Sequence[str],
        removable: Callable[[str], list[str]],
    ) -> None:
        """`removable`: instance ids of a group that may be removed by hand."""
        self._process, self._random = process, process.random
        self._topics, self._groups, self._removable = dict(topics), groups, removable
        self.ready = False
        self.active = True
        process.start(self._life())

    async def _life(self) -> None:
        admin = Admin(ENDPOINTS, client_id="operator", timeout_ms=CALL_MS)
        while not self.ready:
            try:
                await admin.create_topics(self._topics)
                self.ready = True
            except TopicExists:  # the only one there is, made by a call whose answer was lost
                self.ready = True
            except HoldfastError:
                await asyncio.sleep(0.2)
        while True:
            await asyncio.sleep(self._random.uniform(0.15, 0.5))
            try:
                await self._act(admin)
            except HoldfastError:
                continue

    async def _act(self, admin: Admin) -> None:
        group = self._random.choice(self._groups)
        chance = self._random.random()
        if chance < 0.75 or not self.active:
            await self._describe(admin, group)
        elif chance < 0.85:
            await admin.list_groups()
        elif chance < 0.91:
            await self._remove(admin, group)
        elif chance < 0.94:
            await admin.trigger_rebalance(group, reason="the operator wants it")
        elif chance < 0.97:
            await self._grow(admin)
        else:
            await asyncio.gather(*(self._scratch(admin) for _ in range(SCRATCH_CALLS)))

    async def _describe(self, admin: Admin, group: str) -> None:
        """By the call of one protocol or the other: which it is of may be changing."""
        if self._random.random() < 0.5:
            await admin.describe_groups(group)
        else:
            await admin.consumer_group_describe(group)

    async def _remove(self, admin: Admin, group: str) -> None:
        """Two members in one call: one event, one rebalance."""
        instances = self._removable(group)
        if instances:
            count = min(len(instances), self._random.randint(1, 2))
            chosen = self._random.sample(instances, count)
            await admin.remove_members(group, instance_ids=chosen, reason="scaled down")

    async def _grow(self, admin: Admin) -> None:
        topic = self._random.choice(sorted(self._topics))
        if self._topics[topic] < 24:
            self._topics[topic] += 1
            await admin.create_partitions({topic: self._topics[topic]})

    async def _scratch(self, admin: Admin) -> None:
        """One of many small calls at once, some of which change nothing, for who waits is mixed."""
        await asyncio.sleep(self._random.uniform(0.0, SCRATCH_S))
        name, creates = f"scratch-{self._random.randrange(4)}", self._random.random() < 0.5
        try:
            await (admin.create_topics({name: 1}) if creates else admin.delete_topics(name))
        except HoldfastError:
            return


class Pacer:
    """Changes how far two targets of a group are apart at least, or of all that have no own."""

    def __init__(self, process: Process, groups: Sequence[str]) -> None:
        self._random, self._groups = process.random, groups
        self.active = True
        process.start(self._life())

    async def _life(self) -> None:
        admin = Admin(ENDPOINTS, client_id="pacer", timeout_ms=CALL_MS)
        while True:
            await asyncio.sleep(self._random.uniform(*PACED_S))
            if not self.active:
                return
            try:
                await admin._change(self._drawn(), admin_pb2.AlterSettingsResponse)
            except HoldfastError:
                continue

    def _drawn(self) -> admin_pb2.AlterSettingsRequest:
        """A value, or none of its own again."""
        value = self._random.choice((None, "0", *map(str, PAUSES_MS)))
        setting = admin_pb2.SettingToAlter(name=PAUSE, value=value)
        group_id = self._random.choice((None, *self._groups))
        return admin_pb2.AlterSettingsRequest(settings=[setting], group_id=group_id)


class Sealer:
    """Has the log sealed, at times by two calls at once: the second one may come to nothing."""

    def __init__(self, process: Process) -> None:
        self._random = process.random
        self.active = True
        process.start(self._life())

    async def _life(self) -> None:
        admin = Admin(ENDPOINTS, client_id="sealer", timeout_ms=CALL_MS)
        while True:
            await asyncio.sleep(self._random.uniform(*SEALED_S))
            if not self.active:
                return
            count = self._random.choice((1, 1, 2))
            await asyncio.gather(*(self._seal(admin) for _ in range(count)))

    async def _seal(self, admin: Admin) -> None:
        await asyncio.sleep(self._random.uniform(0.0, SCRATCH_S))
        try:
            await admin.seal_log()
        except HoldfastError:
            return


class Upgrader:
    """Asks again and again for the end of the upgrade, also while it must be refused."""

    def __init__(self, process: Process) -> None:
        self._random = process.random
        process.start(self._life())

    async def _life(self) -> None:
        admin = Admin(ENDPOINTS, client_id="upgrader", timeout_ms=CALL_MS)
        while True:
            await asyncio.sleep(self._random.uniform(0.2, 1.5))
            try:
                request = admin_pb2.FinishUpgradeRequest()
                await admin._change(request, admin_pb2.FinishUpgradeResponse)
            except HoldfastError:
                continue


class OffsetReader:
    """Fetches offsets from a node of its choice, linearizably or stale."""

    def __init__(
        self, process: Process, net: Net, groups: Sequence[str], topics: Mapping[str, int]
    ) -> None:
        self._process, self._random, self._net = process, process.random, net
        self._groups, self._topics = groups, dict(topics)
        process.start(self._life())

    async def _life(self) -> None:
        channels: dict[str, SimChannel] = {}
        while True:
            await asyncio.sleep(self._random.uniform(0.1, 0.5))
            address = self._random.choice(self._net.addresses)
            if address not in channels:
                channels[address] = SimChannel(self._net, self._process, address)
            channel = channels[address]
            if channel.get_state(try_to_connect=True) is grpc.ChannelConnectivity.READY:
                await self._fetch(channel)

    async def _fetch(self, channel: SimChannel) -> None:
        topic = self._random.choice(sorted(self._topics))
        wanted = offset_pb2.OffsetFetchRequestTopic(name=topic, partition_indexes=[0, 1, 2])
        group = self._random.choice(self._groups)
        asked = offset_pb2.OffsetFetchRequestGroup(group_id=group, topics=[wanted])
        extras = extras_pb2.RequestExtras(stale_ok=self._random.random() < 0.2)
        request = offset_pb2.OffsetFetchRequest(groups=[asked], holdfast=extras)
        try:
            stub = OffsetServiceStub(channel)  # type: ignore[call-overload]  # it has what a stub asks for
            await stub.OffsetFetch(request, timeout=1.0)
        except grpc.aio.AioRpcError:
            return


class LogWatcher:
    """Watches the log and goes on at another node where it was, whatever happens (INV-10)."""

    def __init__(self, process: Process, net: Net, recorder: Recorder, group: str) -> None:
        """`group` "" for all of them."""
        self._process, self._random, self._net = process, process.random, net
        self._recorder, self._group = recorder, group
        self._next: tuple[int, int] = (1, 0)
        process.start(self._life())

    async def _life(self) -> None:
        while True:
            address = self._random.choice(self._net.addresses)
            channel = SimChannel(self._net, self._process, address)
            for _ in range(20):
                if channel.get_state(try_to_connect=True) is grpc.ChannelConnectivity.READY:
                    await self._watch(channel)
                    break
                await asyncio.sleep(0.05)
            await channel.close()
            await asyncio.sleep(self._random.uniform(0.05, 0.3))

    async def _watch(self, channel: SimChannel) -> None:
        index, ordinal = self._next
        request = log_pb2.WatchRequest(start=extras_pb2.Position(index=index, ordinal=ordinal))
        if self._group:
            request.group_id = self._group
        name, recorder = self._process.name, self._recorder
        opened = (recorder.now_us, name, self._group, *_before(index, ordinal))
        recorder.add(h.WatchOpened(*opened))
        stub = LogServiceStub(channel)  # type: ignore[call-overload]  # it has what a stub asks for
        call = stub.Watch(request, timeout=self._random.uniform(4.0, 20.0))
        try:
            async for message in call:
                self._take(message)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.OUT_OF_RANGE:
                recorder.add(h.WatchGap(recorder.now_us, name))
                self._next = (recorder.last_index, 0)

    def _take(self, message: log_pb2.WatchResponse) -> None:
        name, recorder = self._process.name, self._recorder
        for record in message.records:
            kind = _class_of(str(record.event.WhichOneof("body")))
            place = (record.position.index, record.position.ordinal)
            numbers = (*place, record.group_seq, record.group_id)
            recorder.add(h.Watched(recorder.now_us, name, *numbers, kind))
        self._next = (message.next.index, message.next.ordinal)


def _class_of(field: str) -> str:
    """`member_joined` is the record of a `MemberJoined`."""
    return "".join(word.capitalize() for word in field.split("_"))


def _before(index: int, ordinal: int) -> tuple[int, int]:
    """The position behind which a watch begins whose first record may be this one."""
    return (index, ordinal - 1) if ordinal else (index - 1, 1 << 30)
