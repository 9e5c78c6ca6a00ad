"""What the nodes show of themselves while the run goes on: roles, digests, and the watched log.

The moment at which a watch delivers a record is the latest at which it can have been committed;
the leader's wall clock in the record is the earliest. Observes only.
"""

from __future__ import annotations

import asyncio
from itertools import cycle
from typing import TYPE_CHECKING, Final

import grpc
import grpc.aio

from holdfast.chaos.clock import boot_us
from holdfast.chaos.history.happenings import Applied, Role, Watched, WatchGap, WatchOpened
from holdfast.storage.codec.event_codec import decode_record
from holdfast.v1 import log_pb2
from holdfast.v1.extras_pb2 import Position

if TYPE_CHECKING:
    from holdfast.chaos.cluster.target import Target
    from holdfast.chaos.workload.recorder import Recorder
    from holdfast.v1.admin_pb2 import DescribeClusterResponse
    from holdfast.v1.events_pb2 import EventRecord

_LOOK_S: Final = 0.2
_RETRY_S: Final = 0.1
_ORDINAL_MAX: Final = (1 << 31) - 1


class Observer:
    """Looks at every node again and again, and keeps two watches open."""

    def __init__(self, target: Target, recorder: Recorder) -> None:
        self._target, self._recorder = target, recorder
        self._roles: dict[str, tuple[str, int]] = {}
        self._digests: dict[str, int] = {}
        self.looked_us: dict[str, int] = {}
        """When the last answer of each node came."""
        self._asked_us: dict[str, int] = {}
        """When what it answered last was asked: since then it may have become another one."""
        self._tasks: list[asyncio.Task[None]] = []
        self.arrived: dict[tuple[int, int], int] = {}
        self.terms: list[tuple[int, int]] = []
        self.elections = 0

    def start(self, after: int, group: str) -> None:
        """Begin to look; watch all groups, and one alone, after the entry `after`."""
        self._tasks = [
            *(asyncio.create_task(self._look_for_ever(name)) for name in self._target.names),
            asyncio.create_task(self._watch("watch-all", "", after)),
            asyncio.create_task(self._watch("watch-one", group, after)),
        ]

    async def stop(self) -> None:
        """Stop; raises a task's failure, once."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, Exception):
                raise result

    async def look(self) -> None:
        """Look at all nodes once."""
        asked_us, seen = boot_us(), await self._target.seen()
        for name in self._target.names:
            self.note(name, seen.get(name), asked_us)

    async def _look_for_ever(self, name: str) -> None:
        """Look at one node again and again; by itself, so that a frozen node hides no other."""
        while True:
            asked_us, seen = boot_us(), await self._target.describe(name)
            self.note(name, seen, asked_us)
            await asyncio.sleep(_LOOK_S)

    def note(self, name: str, one: DescribeClusterResponse | None, asked_us: int) -> None:
        """Record what a node answered to what was asked at `asked_us`, or that it is down."""
        if one is None:
            if not self._target.alive(name):
                self._role(name, "down", self._roles.get(name, ("", 0))[1])
            return
        self.terms.append((one.applied_index, one.term))
        self._role(name, "leader" if one.leader == name else "follower", one.term)
        self.looked_us[name], self._asked_us[name] = boot_us(), asked_us
        if one.digest and self._digests.get(name) != one.applied_index:
            self._digests[name] = one.applied_index
            self._recorder.note(Applied(boot_us(), name, one.applied_index, one.digest.hex()))

    def _role(self, name: str, role: str, term: int) -> None:
        if self._roles.get(name) == (role, term):
            return
        self._roles[name] = (role, term)
        kind: Role
        match role:
            case "leader":
                # It began to lead since it was last looked at: its deadlines count from then on.
                now_us = boot_us()
                looked_us = self.looked_us.get(name, now_us)
                kind = Role(looked_us, name, "leader", term, self._asked_us.get(name, now_us))
                self.elections += 1
            case "down":
                kind = Role(boot_us(), name, "down", term)
            case _:
                kind = Role(boot_us(), name, "follower", term)
        self._recorder.note(kind)

    # --- watches ---

    async def _watch(self, watch: str, group: str, after: int) -> None:
        """Follow the log from node to node; repeat no record and leave none out (INV-10)."""
        last, start = (after, _ORDINAL_MAX), Position(index=after + 1)
        for name in cycle(self._target.names):
            self._recorder.note(WatchOpened(boot_us(), watch, group, *last))
            stub = self._target.log_service(name)
            request = log_pb2.WatchRequest(start=start, group_id=group or None)
            try:
                async for message in stub.Watch(request):
                    for record in message.records:
                        last = self._watched(watch, record)
                    start = message.next
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.OUT_OF_RANGE:
                    self._recorder.note(WatchGap(boot_us(), watch))
            await asyncio.sleep(_RETRY_S)

    def _watched(self, watch: str, record: EventRecord) -> tuple[int, int]:
        now_us, place = boot_us(), (record.position.index, record.position.ordinal)
        self.arrived.setdefault(place, now_us)
        event = decode_record(record.SerializeToString(deterministic=True)).event
        self._recorder.note(
            Watched(now_us, watch, *place, record.group_seq, record.group_id, type(event).__name__)
        )
        return place
