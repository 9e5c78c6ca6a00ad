"""Entries for the row `fold`, as the rules choose them: payloads of a log, and its last chain hash.

64 groups go through the same turns, so an entry has a part for each. Nothing here is random, and
nothing is timed.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from random import Random
from typing import Final, NamedTuple

from holdfast.coordinator.kernel.decide import decide_all
from holdfast.coordinator.model.commands import (
    Caller,
    Command,
    CommitOffsets,
    CreateTopics,
    DeadlineFired,
    FormCluster,
    JoinGroup,
    LeaveGroup,
    LeavingMember,
    SyncGroup,
)
from holdfast.coordinator.model.events import (
    Assigned,
    LogEntry,
    OffsetCommitted,
    Part,
    SettingChange,
    TopicSize,
)
from holdfast.coordinator.model.ids import GroupId, InstanceId, MemberId
from holdfast.coordinator.model.member_profile import Protocol
from holdfast.coordinator.model.state import State
from holdfast.coordinator.model.volatile import JOIN_PHASE, DeadlineKey, Volatile
from holdfast.runtime.replica.state_machine import StateMachine
from holdfast.storage.codec.event_codec import encode_entry

GROUPS: Final = tuple(f"orders-{number:03}" for number in range(64))
STATIC: Final = tuple(f"worker-{number}" for number in range(4))
TOPIC: Final = "work"
PARTITIONS: Final = 100
COMMITS: Final = 16
"""So many commits a group are between two changes of its members."""
PROTOCOLS: Final = (Protocol("range", b"m" * 40), Protocol("roundrobin", b"m" * 40))
BEGIN_MS: Final = 1_700_000_000_000
STEP_MS: Final = 5


class Log(NamedTuple):
    """What is folded. `chain`: the hash over all records, by which folds of it are compared."""

    name: str
    payloads: tuple[bytes, ...]
    events: int
    chain: str


class _Groups:
    """The groups on a log that always commits."""

    def __init__(self, chance: Random | None) -> None:
        """`chance`: makes request ids as clients do; None: they are counted."""
        self._chance = chance
        self.machine = StateMachine(State())
        self.volatile: dict[GroupId, Volatile] = {}
        self.payloads: list[bytes] = []
        self.events = self._calls = self._fresh = 0
        self._now_ms = BEGIN_MS
        setting = SettingChange("group.initial_rebalance_delay_ms", "0")
        self.turn({"": FormCluster("bench", (setting,))})
        self.turn({"": CreateTopics(self.caller(), (TopicSize(TOPIC, PARTITIONS),))})

    def turn(self, commands: dict[GroupId, Command | list[Command]]) -> None:
        """Decide commands, at most one batch a group; their events are one entry."""
        self._now_ms += STEP_MS
        parts = []
        for group_id, given in commands.items():
            batch = given if isinstance(given, list) else [given]
            held, state = self.volatile.get(group_id, Volatile()), self.machine.state
            decision = decide_all(state, held, group_id, batch, self._now_ms)
            self.volatile[group_id] = decision.volatile
            if decision.events:
                parts.append(Part(group_id, 1, state.version_of(group_id), decision.events))
        if parts:
            self._append(encode_entry(LogEntry(self._now_ms, self._now_ms, tuple(parts))))

    def _append(self, payload: bytes) -> None:
        index = self.machine.state.applied_index + 1
        applied = self.machine.apply(index, 1, payload)
        if applied.skipped:
            raise AssertionError(f"parts of entry {index} were skipped: {applied.skipped}")
        self.payloads.append(payload)
        self.events += len(applied.records)

    def every(self, command: Callable[[GroupId], Command | list[Command]]) -> None:
        """One turn of all groups."""
        self.turn({group_id: command(group_id) for group_id in GROUPS})

    def caller(self, *, repeatable: bool = False) -> Caller:
        """The next caller; with a request id, its answer is kept (S15)."""
        self._calls += 1
        number = self._now_ms << 80 | 7 << 76 | 2 << 62  # a UUID of version 7
        number |= self._chance.getrandbits(62) if self._chance else self._calls
        request_id = str(uuid.UUID(int=number)) if repeatable else ""
        digest = b"d" * 32 if repeatable else b""
        return Caller(self._calls, "spiffe://bench/app", "app", "10.0.0.7", request_id, digest)

    def join(
        self, group_id: GroupId, instance_id: InstanceId | None, member_id: MemberId = ""
    ) -> JoinGroup:
        """A member comes, or joins again; an instance without a member id replaces its member."""
        self._fresh += 1
        fresh = f"{instance_id or 'app'}-{self._fresh:012}"
        caller = self.caller()
        return JoinGroup(
            caller, group_id, member_id, instance_id, 10_000, 15_000, "app", PROTOCOLS, fresh
        )

    def joins_of_all(self, group_id: GroupId) -> list[Command]:
        """Each member joins again."""
        members = self.machine.state.groups[group_id].body.members
        return [self.join(group_id, each.instance_id, each.member_id) for each in members.values()]

    def settle(self) -> None:
        """Close join phases that wait for time, then let all members sync, the leader last."""
        groups = self.machine.state.groups
        waiting = [each for each in GROUPS if groups[each].state == "PreparingRebalance"]
        key = DeadlineKey(JOIN_PHASE)
        self.turn(
            {each: DeadlineFired(each, key, self.volatile[each].armed[key], 0) for each in waiting}
        )
        self.every(self._syncs)

    def _syncs(self, group_id: GroupId) -> list[Command]:
        group = self.machine.state.groups[group_id]
        leader = group.body.leader
        ranked = sorted(group.body.members.values(), key=lambda each: each.member_id == leader)
        given = tuple(Assigned(member.member_id, b"a" * 60) for member in ranked)
        return [
            SyncGroup(
                self.caller(), group_id, group.generation, member.member_id, member.instance_id,
                "app", "range", given if member.member_id == leader else (),
            )
            for member in ranked
        ]  # fmt: skip

    def commit(self, group_id: GroupId, number: int, *, repeatable: bool) -> Command:
        """Any member's commit; of a group without members, one from outside."""
        group, caller = self.machine.state.groups.get(group_id), self.caller(repeatable=repeatable)
        offset = (OffsetCommitted(TOPIC, number % PARTITIONS, number, -1, ""),)
        if group is None or not group.body.members:
            return CommitOffsets(caller, group_id, -1, "", None, offset)
        member = next(iter(group.body.members.values()))
        return CommitOffsets(
            caller, group_id, group.generation, member.member_id, member.instance_id, offset
        )

    def done(self, name: str) -> Log:
        """All of it."""
        chain = self.machine.digest()[-32:].hex()  # the state's own digest is not of all versions
        return Log(name, tuple(self.payloads), self.events, chain)


def commits(events: int, chance: Random | None = None) -> Log:
    """Commits alone, one partition each, to groups without members; with request ids by chance."""
    groups, number, repeatable = _Groups(chance), 0, chance is not None
    while groups.events < events:
        number += 1
        groups.every(lambda each: groups.commit(each, number, repeatable=repeatable))  # noqa: B023 - called at once
    return groups.done("commits with request ids" if repeatable else "commits")


def mixed(events: int, chance: Random | None = None) -> Log:
    """Joins, syncs, commits, replacements and leaves; half of the commits have request ids."""
    groups, number = _Groups(chance), 0
    for instance_id in STATIC:
        groups.every(lambda each: groups.join(each, instance_id))  # noqa: B023 - called at once
    groups.settle()
    while groups.events < events:
        for number in range(number + 1, number + 1 + COMMITS):  # noqa: B020 - goes on counting
            odd = bool(number % 2)
            groups.every(lambda each: groups.commit(each, number, repeatable=odd))  # noqa: B023 - called at once
        for instance_id in STATIC:
            groups.every(lambda each: groups.join(each, instance_id))  # noqa: B023 - called at once
        _come_and_go(groups)
    return groups.done("mixed events")


def _come_and_go(groups: _Groups) -> None:
    """A member without an instance id joins each group, and leaves it."""
    groups.every(lambda each: groups.join(each, None))
    groups.every(lambda each: groups.join(each, None, next(iter(groups.volatile[each].pending))))
    groups.every(groups.joins_of_all)
    groups.settle()
    groups.every(lambda each: _leaving(groups, each))
    groups.every(groups.joins_of_all)
    groups.settle()


def _leaving(groups: _Groups, group_id: GroupId) -> Command:
    members: Iterable[MemberId] = (
        member.member_id
        for member in groups.machine.state.groups[group_id].body.members.values()
        if member.instance_id is None
    )
    leaving = tuple(LeavingMember(member_id, None, "done") for member_id in members)
    return LeaveGroup(groups.caller(repeatable=True), group_id, leaving)
