"""Scripts of members: one joins, writes and commits while it owns, and goes in one of many ways.

What the group refuses is part of the script: the slot's next member begins. An error that is no
refusal is a defect and ends the worker. Knows the client and the store, no cluster and no fault.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, Literal

from holdfast.chaos.workload.callers import RecordedAdmin
from holdfast.chaos.workload.computing import ChaosAssignor
from holdfast.chaos.workload.members import RecordedMember
from holdfast.chaos.workload.store import StoreClient, Write
from holdfast.client import (
    CooperativeAssignor,
    GroupNotFound,
    HoldfastError,
    OwnershipLost,
    Tls,
)
from holdfast.client._translate.member_settings import DEFAULT_ASSIGNORS

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from holdfast.chaos.workload.recorder import Recorder
    from holdfast.chaos.workload.tasks import Slot, Task
    from holdfast.client import Partition
    from holdfast.client._session.session_io import GroupProtocol

logger = logging.getLogger(__name__)

Goodbye = Literal["restart", "leave", "crash", "twin"]
_STATIC_WAYS: Final[tuple[Goodbye, ...]] = (
    "restart",
    "restart",
    "restart",
    "leave",
    "crash",
    "twin",
)
_DYNAMIC_WAYS: Final[tuple[Goodbye, ...]] = ("leave", "leave", "crash")
_COMMIT_EVERY: Final = 3
"""Writes for each commit."""
_COMMIT_MS: Final = 3_000
_AFTER_REFUSAL_S: Final = 0.5
_OPERATOR_EVERY_S: Final = (3.0, 9.0)
_REMOVES: Final = 0.4
_REBALANCES: Final = 0.1
"""How often an operator who looks at a group removes somebody, or has it rebalance."""


class MemberScripts:
    """All slots of one process, on one event loop."""

    def __init__(self, task: Task, recorder: Recorder) -> None:
        self._task, self._recorder = task, recorder
        self._store = StoreClient(Path(task.store))
        self._tls = Tls(*task.tls) if task.tls else None
        self._ending = asyncio.Event()
        self._counts = {slot.name: itertools.count(1) for slot in task.slots}

    def end(self) -> None:
        """Let all members leave."""
        self._ending.set()

    async def run(self) -> None:
        """Live until `end`, then leave every group."""
        async with asyncio.TaskGroup() as group:
            for slot in self._task.slots:
                random = Random(f"{self._task.seed} {slot.name}")  # noqa: S311 - a seed gives the same scripts
                group.create_task(self._of(slot, random))
        self._store.close()

    def _of(self, slot: Slot, random: Random) -> Coroutine[None, None, None]:
        return self._operate(slot, random) if slot.kind == "operator" else self._fill(slot, random)

    def _next_who(self, slot: Slot) -> str:
        return f"{slot.name}#{self._task.number}.{next(self._counts[slot.name])}"

    # --- members ---

    async def _fill(self, slot: Slot, random: Random) -> None:
        """Run one member after another; a twin begins while the one before it still goes on."""
        ways = _STATIC_WAYS if slot.kind == "static" else _DYNAMIC_WAYS
        async with asyncio.TaskGroup() as twins:
            while not self._ending.is_set():
                way = random.choice(ways)
                stay_s = random.uniform(self._task.times.stay_least, self._task.times.stay_most)
                script = self._script(slot, way, stay_s / 1_000, random)
                if way == "twin":
                    twins.create_task(script)
                    await self._wait(stay_s / 1_000)
                else:
                    await script

    async def _script(self, slot: Slot, way: Goodbye, stay_s: float, random: Random) -> None:
        who = self._next_who(slot)
        member = self._member(slot, who, random)
        member.start()
        loop = asyncio.get_running_loop()
        until = loop.time() + (stay_s if way != "twin" else stay_s + 10.0)
        try:
            for turn in itertools.count():
                if member.stopped or self._ending.is_set() or loop.time() > until:
                    break
                await self._work(member, who, turn)
                await self._wait(self._task.times.write / 1_000)
            await self._depart(member, way)
        except HoldfastError as error:
            logger.info("%s ended: %s", who, error)
            await self._wait(_AFTER_REFUSAL_S)

    def _member(self, slot: Slot, who: str, random: Random) -> RecordedMember:
        times = self._task.times
        either: tuple[GroupProtocol, ...] = ("classic", "consumer")
        protocol = random.choice(either) if slot.protocol == "either" else slot.protocol
        of_protocol: dict[str, Any] = {"protocol": protocol}
        if protocol == "classic":  # in the other one, these are the group's
            of_protocol |= {
                "session_timeout_ms": times.session,
                "heartbeat_interval_ms": times.heartbeat,
                "assignors": (CooperativeAssignor(),) if slot.cooperative else DEFAULT_ASSIGNORS,
            }
        elif slot.computes:
            of_protocol["client_assignors"] = [ChaosAssignor(random)]
        return RecordedMember(
            self._task.endpoints,
            self._tls,
            self._recorder,
            who,
            group=slot.group,
            topics=[slot.topic],
            instance_id=slot.name if slot.kind == "static" else None,
            rebalance_timeout_ms=times.rebalance,
            echoes=Random(f"{self._task.seed} {who} echoes"),  # noqa: S311 - as above
            **of_protocol,
        )

    async def _work(self, member: RecordedMember, who: str, turn: int) -> None:
        """Write to every owned partition under its token; commit the progress now and then."""
        done: dict[tuple[str, int], int] = {}
        for partition in member.assignment:
            number = await self._write(partition, member.settings.group, who)
            if number:
                done[(partition.topic, partition.number)] = number
        if done and turn % _COMMIT_EVERY == 0:
            try:
                await member.commit(done, timeout_ms=_COMMIT_MS)
            except HoldfastError as error:
                logger.info("%s could not commit: %s", who, error)

    async def _write(self, partition: Partition, group: str, who: str) -> int:
        try:
            partition.check()
        except OwnershipLost:
            return 0
        asked = Write(who, group, partition.topic, partition.number, partition.fencing_token)
        return await self._store.write(asked)

    async def _depart(self, member: RecordedMember, way: Goodbye) -> None:
        if self._ending.is_set():
            await member.leave()
        elif way == "crash":
            await member.crash()
        elif way == "leave":
            await member.leave()
        else:
            await member.restart()

    # --- operators ---

    async def _operate(self, slot: Slot, random: Random) -> None:
        """Describe the group; now and then remove a member or trigger a rebalance."""
        who = self._next_who(slot)
        admin = RecordedAdmin(self._task.endpoints, self._tls, self._recorder, who)
        async with admin:
            while not self._ending.is_set():
                await self._wait(random.uniform(*_OPERATOR_EVERY_S))
                try:
                    await self._intervene(admin, slot.group, random)
                except HoldfastError as error:
                    logger.info("%s: %s", who, error)

    async def _intervene(self, admin: RecordedAdmin, group: str, random: Random) -> None:
        members = await _members_of(admin, group)
        chance = random.random()
        if chance < _REMOVES and members:
            member_id, instance_id = random.choice(members)
            names = [instance_id] if instance_id else []
            ids = [] if names else [member_id]
            await admin.remove_members(
                group, instance_ids=names, member_ids=ids, reason="an operator's whim"
            )
        elif chance < _REMOVES + _REBALANCES:
            await admin.trigger_rebalance(group, reason="an operator's whim")

    async def _wait(self, seconds: float) -> None:
        """Wait so long, or until the end."""
        try:
            async with asyncio.timeout(seconds):
                await self._ending.wait()
        except TimeoutError:
            return


async def _members_of(admin: RecordedAdmin, group: str) -> list[tuple[str, str]]:
    """Return member id and instance id of each member, whichever protocol the group is of."""
    try:
        classic = (await admin.describe_groups(group))[group]
    except GroupNotFound:
        described = (await admin.consumer_group_describe(group))[group]
        if isinstance(described, HoldfastError):
            raise described from None
        return [(each.member_id, each.instance_id) for each in described.members]
    return [(each.member_id, each.group_instance_id) for each in classic.members]
