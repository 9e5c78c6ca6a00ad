"""A workload for a real cluster: commits with request ids, and static members that bounce.

It runs in a thread of its own, goes on through every fault, and keeps a witness: what was
acknowledged to it must be true for ever. It speaks through the client's own calls, so a retry
after an unknown outcome repeats the same request id (S5, S15).
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from cluster.processes import PATIENCE_SECONDS, poll
from harness.poll import until_async
from holdfast.client import Member, OutcomeUnknown
from holdfast.client._rpc.caller import Caller
from holdfast.client._session.session_io import Failure
from holdfast.v1 import offset_pb2 as o
from holdfast.v1.errors_pb2 import ERROR_CODE_NONE
from holdfast.v1.extras_pb2 import RequestExtras

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from google.protobuf.message import Message

    from holdfast.client import Partition, Tls

COMMITTERS = 20
TOPIC = "work"
CREW = "crew"
CREW_SIZE = 4
PARTITIONS = 12
SHARE = PARTITIONS // CREW_SIZE
"""A member's share once all have joined, and never before: three would have four each."""
COMMITS_A_BOUNCE = 50
LOAD_SECONDS_MAX = 600.0
_PATIENCE_MS = int(PATIENCE_SECONDS * 1000)
SESSION_MS = 60_000
"""Longer than any outage here: what these members lose, they lose by a defect, not by time."""
START_MS = 120_000
"""How long a member that comes waits for a leader: it may come while no node has power."""


class Place(NamedTuple):
    """One committed partition of one group."""

    group: str
    partition: int


class Acked(NamedTuple):
    """An acknowledged commit: what was told to the client, and when it had begun."""

    request_id: str
    place: Place
    offset: int
    position: tuple[int, int]
    began: float
    ended: float


def commit_of(place: Place, offset: int, request_id: str) -> o.OffsetCommitRequest:
    """A commit of one partition, not as a member."""
    partition = o.OffsetCommitRequestPartition(
        partition_index=place.partition, committed_offset=offset
    )
    return o.OffsetCommitRequest(
        group_id=place.group,
        topics=[o.OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])],
        holdfast=RequestExtras(request_id=request_id),
    )


class WatchfulCaller(Caller):
    """A caller that remembers whose outcome was unknown after an attempt (S5)."""

    def __init__(self, endpoints: Sequence[str], credentials: Tls | None) -> None:
        super().__init__(endpoints, credentials=credentials)
        self.unknown: list[str] = []

    async def attempt(
        self,
        request: Message,
        timeout_ms: int,
        *,
        elsewhere: bool = False,
        on_sent: Callable[[], None] | None = None,
    ) -> Message | Failure:
        result = await super().attempt(request, timeout_ms, elsewhere=elsewhere, on_sent=on_sent)
        if isinstance(result, Failure) and isinstance(result.error, OutcomeUnknown):
            self.unknown.append(getattr(request, "holdfast").request_id)  # noqa: B009 - untyped
        return result


@dataclass
class Load:
    """The running workload. Use as a context manager: it ends with the block."""

    endpoints: Sequence[str]
    credentials: Tls | None
    pause_s: float = 0.0
    """How long each committer rests after an acknowledged commit. Without a rest they keep the
    processors busy, and every start of a node takes several times as long."""
    seconds_max: float = LOAD_SECONDS_MAX
    """How long the block may take at most: members that stay longer end with TimeoutError."""
    witness: list[Acked] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    bounces: int = 0
    _ending: threading.Event = field(default_factory=threading.Event)
    _crew_ready: threading.Event = field(default_factory=threading.Event)
    _failure: list[BaseException] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run, name="load")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive(), "the workload ends"
        if self._failure:
            raise self._failure[0]

    # --- for the test's thread ---

    def await_crew(self) -> None:
        """Wait until all static members own partitions."""
        poll(lambda: self._crew_ready.is_set() or self._failure, "the crew has joined")

    def await_more(self, count: int, *, bounces: int = 0) -> None:
        """Wait for so many more acknowledged commits, and bounces, that begin from now on."""
        since, bounced, seen = time.monotonic(), self.bounces, len(self.witness)
        poll(
            lambda: self._failure or self.bounces >= bounced + bounces,
            f"{bounces} more bounces of a static member",
        )
        poll(
            lambda: self._failure or sum(a.began > since for a in self.witness[seen:]) >= count,
            f"{count} more acknowledged commits",
        )

    def first_after(self, moment: float) -> float:
        """Seconds from a moment to the first acknowledged commit that had begun after it."""
        return min(a.ended for a in self.witness if a.began > moment) - moment

    # --- the workload ---

    def _run(self) -> None:
        try:
            asyncio.run(self._all())
        except BaseException as error:  # noqa: BLE001 - raised again in the test's thread
            self._failure.append(error)

    async def _all(self) -> None:
        places = [Place(f"g{n % 5}", n // 5) for n in range(COMMITTERS)]
        async with asyncio.TaskGroup() as group:
            for place in places:
                group.create_task(self._commit_for_ever(place))
            group.create_task(self._crew())

    async def _commit_for_ever(self, place: Place) -> None:
        caller = WatchfulCaller(self.endpoints, self.credentials)
        try:
            for offset in itertools.count(1):
                if self._ending.is_set():
                    return
                await self._commit(caller, place, offset)
                await self._rest()
        finally:
            self.unknown += caller.unknown
            await caller.close()

    async def _rest(self) -> None:
        until = time.monotonic() + self.pause_s
        await until_async(
            lambda: self._ending.is_set() or time.monotonic() >= until, "the next commit"
        )

    async def _commit(self, caller: Caller, place: Place, offset: int) -> None:
        request_id = await caller.new_request_id()
        request = commit_of(place, offset, request_id)
        began = time.monotonic()
        response = await caller.call(request, o.OffsetCommitResponse, timeout_ms=_PATIENCE_MS)
        codes = [p.error_code for topic in response.topics for p in topic.partitions]
        if codes != [ERROR_CODE_NONE]:
            raise AssertionError(f"{place} {offset} was refused: {codes}")
        at = response.holdfast.position
        self.witness.append(
            Acked(request_id, place, offset, (at.index, at.ordinal), began, time.monotonic())
        )

    async def _crew(self) -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(CREW_SIZE - 1):
                group.create_task(self._stay(f"crew-{number}"))
            group.create_task(self._bounce(f"crew-{CREW_SIZE - 1}"))

    def _member(self, instance_id: str) -> Member:
        async def note(partitions: Sequence[Partition]) -> None:
            if not self._ending.is_set() and self._crew_ready.is_set():
                self.lost.append(f"{instance_id}: {[str(p) for p in partitions]}")

        return Member(
            self.endpoints,
            group=CREW,
            topics=[TOPIC],
            instance_id=instance_id,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=500,
            start_timeout_ms=START_MS,
            credentials=self.credentials,
            on_lost=note,
        )

    async def _stay(self, instance_id: str) -> None:
        async with self._member(instance_id):
            await until_async(self._ending.is_set, "the end", within_s=self.seconds_max)

    async def _bounce(self, instance_id: str) -> None:
        """Come and go: a planned restart of a static member, again and again (KIP-345, S12)."""
        while not self._ending.is_set():
            async with self._member(instance_id) as member:
                await self._until(partial(_has_its_share, member))
                self._crew_ready.set()
                self.bounces += 1
                await self._until(partial(self._has_seen, len(self.witness) + COMMITS_A_BOUNCE))

    def _has_seen(self, commits: int) -> bool:
        return len(self.witness) >= commits

    async def _until(self, holds: Callable[[], bool]) -> None:
        await until_async(
            lambda: holds() or self._ending.is_set(), "a bounce", within_s=self.seconds_max
        )


def _has_its_share(member: Member) -> bool:
    return len(member.assignment) == SHARE
