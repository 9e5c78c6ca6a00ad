"""Commits and reads offsets all the time, so that there is always a change to be accepted or not.

Its callers are in no group, so nothing but the cluster decides whether they are served: the time
from a fault to the first change that was begun after it and accepted is the failover. Knows no
fault.
"""

from __future__ import annotations

import asyncio
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from holdfast.chaos.clock import US_PER_S, boot_us
from holdfast.chaos.cluster.target import until
from holdfast.chaos.workload.callers import RecordedCaller
from holdfast.v1 import extras_pb2
from holdfast.v1 import offset_pb2 as o

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.chaos.workload.recorder import Recorder
    from holdfast.client import Credentials

CALLERS: Final = 4
_PAUSE_S: Final = 0.08
_ATTEMPT_MS: Final = 1_000
_READ_EVERY: Final = 4


class Prober:
    """A few callers, each with a partition of its own; another one reads what it wrote."""

    def __init__(
        self, endpoints: Sequence[str], tls: Credentials, recorder: Recorder, group: str
    ) -> None:
        self._group = group
        self._ending = asyncio.Event()
        self._callers = [
            RecordedCaller(endpoints, tls, recorder, f"prober-{n}") for n in range(CALLERS)
        ]
        self._accepted: list[tuple[int, int]] = []
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin."""
        self._tasks = [asyncio.create_task(self._probe(number)) for number in range(CALLERS)]

    async def stop(self) -> None:
        """Stop; raises a caller's failure, once."""
        self._ending.set()
        tasks, self._tasks = self._tasks, []
        results = await asyncio.gather(*tasks, return_exceptions=True)
        for caller in self._callers:
            await caller.close()
        for result in results:
            if isinstance(result, BaseException):
                raise result

    @property
    def accepted(self) -> int:
        """How many changes were accepted."""
        return len(self._accepted)

    async def accepted_after(self, moment_us: int) -> float:
        """Wait for an accepted change begun after a moment; return the seconds between the two.

        Raises NotHealed, or a caller's failure.
        """
        found: list[int] = []

        def one() -> bool:
            for task in self._tasks:
                if task.done():
                    task.result()
            recent = takewhile(lambda each: each[1] > moment_us, reversed(self._accepted))
            found[:] = [ended for began, ended in recent if began > moment_us]
            return bool(found)

        await until(one, "a change is accepted")
        return (min(found) - moment_us) / US_PER_S

    async def _probe(self, number: int) -> None:
        caller, turn = self._callers[number], 0
        while not self._ending.is_set():
            turn += 1
            if turn % _READ_EVERY == 0:
                await self._ask(caller, self._read((number + 1) % CALLERS))
            elif await self._ask(caller, await self._commit(caller, number, turn)):
                self._accepted.append((caller.attempt_began_us, boot_us()))
            await asyncio.sleep(_PAUSE_S)

    async def _ask(
        self, caller: RecordedCaller, request: o.OffsetCommitRequest | o.OffsetFetchRequest
    ) -> bool:
        answer = await caller.insist(request, attempt_ms=_ATTEMPT_MS, until=self._ending.is_set)
        return answer is not None

    async def _commit(
        self, caller: RecordedCaller, number: int, offset: int
    ) -> o.OffsetCommitRequest:
        partition = o.OffsetCommitRequestPartition(partition_index=number, committed_offset=offset)
        return o.OffsetCommitRequest(
            group_id=self._group,
            topics=[o.OffsetCommitRequestTopic(name=self._group, partitions=[partition])],
            holdfast=extras_pb2.RequestExtras(request_id=await self._request_id(caller)),
        )

    async def _request_id(self, caller: RecordedCaller) -> str:
        """Return a fresh request id; before the first answer, ask the leader by short attempts."""
        while not caller.ids.ready and not self._ending.is_set():
            await caller.learn_log_time(_ATTEMPT_MS)
            await asyncio.sleep(_PAUSE_S)
        return await caller.new_request_id() if caller.ids.ready else ""

    def _read(self, number: int) -> o.OffsetFetchRequest:
        topic = o.OffsetFetchRequestTopic(name=self._group, partition_indexes=[number])
        asked = o.OffsetFetchRequestGroup(group_id=self._group, topics=[topic])
        return o.OffsetFetchRequest(groups=[asked])
