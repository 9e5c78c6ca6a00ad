"""Clients of both protocols in one group, as far as they matter to who owns what.

Each keeps what it believes to own. An eager classic client gives everything up before it joins
again; a client of the heartbeat protocol gives up what it is not assigned any more, and says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from harness.core import Core
from holdfast.coordinator.groups.assignment_bytes import partitions, written
from holdfast.coordinator.model.commands import (
    Caller,
    Command,
    ConsumerGroupHeartbeat,
    CreateTopics,
    FormCluster,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    LeavingMember,
    SyncGroup,
)
from holdfast.coordinator.model.events import Assigned, SettingChange, TopicSize
from holdfast.coordinator.model.ids import TopicPartitions
from holdfast.coordinator.model.levels import LEVEL_MAX
from holdfast.coordinator.model.member_profile import Protocol
from holdfast.coordinator.model.rejections import MemberIdRequired
from holdfast.coordinator.model.replies import (
    ConsumerHeartbeatReply,
    HeartbeatReply,
    JoinReply,
    Reply,
    SyncReply,
)

GROUP = "g"
SUBSCRIPTION = Protocol("range", b"subscription", ("t",))
SESSION_MS = 30_000
REBALANCE_MS = 5_000

Owned: TypeAlias = frozenset[int]


@dataclass
class World:
    """A core with a topic of some partitions, and numbers for calls."""

    count: int = 4
    settings: tuple[SettingChange, ...] = ()
    level: int = LEVEL_MAX
    core: Core = field(default_factory=Core)
    calls: int = 0

    def __post_init__(self) -> None:
        delay = SettingChange("group.initial_rebalance_delay_ms", "0")
        self.core.submit(FormCluster("c", (delay, *self.settings), self.level))
        self.core.submit(CreateTopics(self.caller(), (TopicSize("t", self.count),)))

    def caller(self, request_id: str = "") -> Caller:
        self.calls += 1
        return Caller(self.calls, request_id=request_id, principal="anonymous", client_id="c")

    def ask(self, command: Command) -> Reply | None:
        """Submit a command; its answer, None if it is parked."""
        self.core.submit(command)
        return self.core.answers.pop(self.calls, None)


def _share(numbers: tuple[int, ...]) -> bytes:
    return written((TopicPartitions("t", numbers),))


@dataclass
class Classic:
    """An eager client of the classic protocol."""

    world: World
    name: str
    instance: str | None = None
    id: str = ""
    generation: int = -1
    owned: Owned = frozenset()
    token: int = 0
    parked: int = 0
    """The number of its call that waits; 0: none."""
    syncs: bool = True
    """It goes on to sync after a join."""
    metadata: bytes = SUBSCRIPTION.metadata
    """What it says beside the topics, as it joins."""

    def join(
        self, request_id: str = "", owned: tuple[TopicPartitions, ...] = ()
    ) -> JoinReply | None:
        """Give up everything, or all but `owned`, and join; None: the join is parked."""
        self.owned = frozenset(number for each in owned for number in each.partitions)
        command = JoinGroup(
            caller=self.world.caller(request_id),
            group_id=GROUP,
            member_id=self.id,
            instance_id=self.instance,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            protocol_type="consumer",
            protocols=(SUBSCRIPTION._replace(metadata=self.metadata),),
            fresh_member_id=f"{self.name}-{self.world.calls}",
            owned=owned,
        )
        reply = self.world.ask(command)
        if reply is None:
            self.parked = command.caller.call
            self.world.core.advance(0)  # an initial delay of nothing is over
            self.look()
            return None
        assert isinstance(reply, JoinReply)
        return self.joined(reply)

    def joined(self, reply: JoinReply) -> JoinReply | None:
        """Take the answer of a join, which may ask for another."""
        if isinstance(reply.error, MemberIdRequired):
            self.id = reply.member_id
            return self.join()
        if reply.error is None:
            self.id, self.generation = reply.member_id, reply.generation
            if self.syncs:
                self.sync(reply)
        return reply

    def sync(self, joined: JoinReply) -> SyncReply | None:
        """Ask for the assignment; a group leader gives each partition to somebody first."""
        names, count = [each.member_id for each in joined.members], self.world.count
        shares = {name: range(at, count, len(names)) for at, name in enumerate(names)}
        given = [Assigned(name, _share(tuple(numbers))) for name, numbers in shares.items()]
        command = self.syncing(tuple(given))
        reply = self.world.ask(command)
        if reply is None:
            self.parked = command.caller.call
            return None
        assert isinstance(reply, SyncReply)
        return self.synced(reply)

    def syncing(self, given: tuple[Assigned, ...]) -> SyncGroup:
        """The sync of a member that gives these assignments out, if it leads."""
        ids = (GROUP, self.generation, self.id, self.instance)
        return SyncGroup(self.world.caller(), *ids, "consumer", "range", given)

    def synced(self, reply: SyncReply) -> SyncReply:
        if reply.error is None:
            places = partitions(reply.assignment)
            assert places is not None
            self.owned = frozenset(each.partition for each in places)
            self.token = reply.grant.fencing_token
        return reply

    def look(self) -> None:
        """Take the answer of a parked call, if it came."""
        reply = self.world.core.answers.pop(self.parked, None)
        if reply is None:
            return
        self.parked = 0
        if isinstance(reply, JoinReply):
            self.joined(reply)
        elif isinstance(reply, SyncReply):
            self.synced(reply)

    def beat(self) -> HeartbeatReply:
        command = Heartbeat(self.world.caller(), GROUP, self.generation, self.id, self.instance)
        reply = self.world.ask(command)
        assert isinstance(reply, HeartbeatReply)
        return reply

    def leave(self) -> None:
        self.owned = frozenset()
        members = (LeavingMember(self.id, self.instance),)
        self.world.ask(LeaveGroup(self.world.caller(), GROUP, members))


@dataclass
class Consumer:
    """A client of the heartbeat protocol."""

    world: World
    id: str
    instance: str | None = None
    epoch: int = 0
    owned: Owned = frozenset()
    tokens: dict[int, int] = field(default_factory=dict)

    def beat(self) -> ConsumerHeartbeatReply:
        """Send all that there is to say, and do as the answer says."""
        joining = self.epoch == 0
        if joining:
            self.owned = frozenset()
        numbers = tuple(sorted(self.owned))
        reply = self.world.ask(
            ConsumerGroupHeartbeat(
                self.world.caller(),
                GROUP,
                self.id,
                self.epoch,
                self.instance,
                rebalance_timeout_ms=REBALANCE_MS,
                topics=("t",),
                owned=(TopicPartitions("t", numbers),) if numbers else (),
            )
        )
        assert isinstance(reply, ConsumerHeartbeatReply)
        if reply.error is None:
            self.epoch = reply.member_epoch
            self.owned = frozenset(each.partition for each in reply.assignment or ())
            self.tokens = {each.partition: each.fencing_token for each in reply.assignment or ()}
        else:
            self.epoch, self.owned = 0, frozenset()
        return reply

    def leave(self) -> None:
        self.owned = frozenset()
        epoch = -1
        self.world.ask(
            ConsumerGroupHeartbeat(self.world.caller(), GROUP, self.id, epoch, self.instance)
        )
        self.epoch = 0


def stable(world: World, *names: str) -> list[Classic]:
    """A Stable classic group of these members; all are static, so that each joins in one step."""
    people = [Classic(world, name, f"i-{name}") for name in names]
    for one in people:
        one.join()
        settle(people, rounds=3)
    return people


def settle(people: list[Classic], rounds: int = 8) -> None:
    """Let classic clients do what they are told until nobody has anything to do."""
    for _ in range(rounds):
        for one in people:
            one.look()
            if one.id and not one.parked and one.beat().error is not None:
                one.join()
