"""What the clients of a classic group send next, by the state that the group is in.

A whole step of all its members is one batch: joins of all, then syncs of all, the leader last. No
rules are here: whether a call is taken is the coordinator's to say.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final

from holdfast.coordinator.groups import assignment_bytes
from holdfast.coordinator.kernel.queries import describe_group
from holdfast.coordinator.model.commands import (
    DeadlineFired,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    LeavingMember,
    SyncGroup,
)
from holdfast.coordinator.model.events import Assigned
from holdfast.coordinator.model.ids import TopicPartitions
from holdfast.coordinator.model.member_profile import Protocol
from holdfast.coordinator.model.volatile import JOIN_PHASE, DeadlineKey
from holdfast.replay.generate.living import Living
from holdfast.storage.codec.wire import text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.coordinator.kernel.queries import DescribedGroup
    from holdfast.coordinator.model.commands import Command
    from holdfast.coordinator.model.described import DescribedMember
    from holdfast.coordinator.model.events import TopicSize
    from holdfast.coordinator.model.ids import InstanceId, MemberId
    from holdfast.replay.generate.cast import Cast
    from holdfast.replay.generate.world import World

SESSION_MS: Final = 10_000
REBALANCE_MS: Final = 15_000
PROTOCOL_TYPE: Final = "consumer"
PROTOCOL: Final = "range"
_PREPARING: Final = "PreparingRebalance"
_COMPLETING: Final = "CompletingRebalance"
_DEAD: Final = ("Dead", "")
_TOPIC_TAG: Final = b"\x0a"
"""Field 1 of ConsumerProtocolSubscription: a topic."""


class ClassicClients:
    """The clients of one classic group."""

    def __init__(self, world: World, cast: Cast) -> None:
        self._world, self._cast = world, cast
        self._shown: DescribedGroup = describe_group(world.leader.state, cast.group_id)

    @property
    def living(self) -> tuple[Living, ...]:
        """The members, oldest first."""
        generation = self._shown.generation
        return tuple(
            [
                Living(each.member_id, each.instance_id, generation, away=each.released)
                for each in self._shown.members
            ]
        )

    def unsettled(self) -> list[Command]:
        """Return what has to be sent until the group is stable; nothing: it is, or has nobody."""
        if self._shown.state == _PREPARING:
            return self._rejoins()
        if self._shown.state == _COMPLETING:
            return self._syncs()
        return []

    def _rejoins(self) -> list[Command]:
        """All members join again that have not; then time closes the join phase."""
        held = self._world.leader.volatile(self._cast.group_id)
        late = [each for each in self._shown.members if each.member_id not in held.joins]
        if late:
            return [self._join(each.instance_id, each.member_id) for each in late]
        key = DeadlineKey(JOIN_PHASE)
        return [DeadlineFired(self._cast.group_id, key, held.armed[key], 0)]

    def joins(self, instances: Sequence[InstanceId | None]) -> list[Command]:
        """Return joins of newcomers; a dynamic one is given an id first, and comes back with it."""
        pending = list(self._world.leader.volatile(self._cast.group_id).pending)
        joins: list[Command] = []
        for each in instances:
            handed_out = pending.pop() if each is None and pending else ""
            joins.append(self._join(each, handed_out))
        return joins

    def return_of(self, instance_id: InstanceId) -> Command:
        """Return the join of another process of a static member: it knows no member id."""
        return self._join(instance_id, "")

    def _join(self, instance_id: InstanceId | None, member_id: MemberId) -> JoinGroup:
        cast, world = self._cast, self._world
        fresh = world.new_member(instance_id or cast.group_id)
        metadata = text(_TOPIC_TAG, cast.topic.name)
        protocols = tuple(
            Protocol(name, metadata, (cast.topic.name,)) for name in (PROTOCOL, "roundrobin")
        )
        caller = world.caller(cast.group_id, repeatable=True)
        return JoinGroup(
            caller, cast.group_id, member_id, instance_id, SESSION_MS, REBALANCE_MS,
            PROTOCOL_TYPE, protocols, fresh,
        )  # fmt: skip

    def _syncs(self) -> list[Command]:
        shown, cast = self._shown, self._cast
        given = shares(shown.members, cast.topic)
        ranked = sorted(shown.members, key=lambda each: each.member_id == shown.leader)
        return [
            SyncGroup(
                self._world.caller(cast.group_id), cast.group_id, shown.generation, each.member_id,
                each.instance_id, PROTOCOL_TYPE, PROTOCOL,
                given if each.member_id == shown.leader else (),
            )
            for each in ranked
        ]  # fmt: skip

    def release(self, member: Living) -> Command:
        """Return the last heartbeat before a planned restart (S12)."""
        return Heartbeat(
            self._world.caller(self._cast.group_id), self._cast.group_id, member.epoch,
            member.member_id, member.instance_id, release=True,
        )  # fmt: skip

    def leave(self, member: Living) -> Command:
        """Return a member's goodbye."""
        leaving = (LeavingMember(member.member_id, member.instance_id, "scaled down"),)
        caller = self._world.caller(self._cast.group_id, repeatable=True)
        return LeaveGroup(caller, self._cast.group_id, leaving)


def shares(members: Sequence[DescribedMember], topic: TopicSize) -> tuple[Assigned, ...]:
    """Share the partitions of a topic out, as a group leader does by `range`."""
    ranked, count = sorted(members, key=attrgetter("member_id")), topic.num_partitions
    edges = [count * nth // len(ranked) for nth in range(len(ranked) + 1)]
    given = []
    for nth, member in enumerate(ranked):
        mine = TopicPartitions(topic.name, tuple(range(edges[nth], edges[nth + 1])))
        given.append(Assigned(member.member_id, assignment_bytes.written((mine,))))
    return tuple(given)
