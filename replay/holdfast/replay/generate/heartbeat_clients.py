"""What the clients of a group of the heartbeat protocol send next, by where its members are.

All members that have not come to own what they are to own send a heartbeat each, in one batch. No
rules are here: what a heartbeat brings about is the coordinator's to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.coordinator.kernel.queries import describe_consumer_group
from holdfast.coordinator.model.commands import ConsumerGroupHeartbeat
from holdfast.coordinator.model.ids import TopicPartitions
from holdfast.replay.generate.living import Living

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.coordinator.model.commands import Command
    from holdfast.coordinator.model.described import (
        DescribedConsumerGroup,
        DescribedConsumerMember,
    )
    from holdfast.coordinator.model.ids import InstanceId
    from holdfast.replay.generate.cast import Cast
    from holdfast.replay.generate.world import World

REBALANCE_MS: Final = 15_000
JOIN: Final = 0
LEAVE: Final = -1
RELEASE: Final = -2
_STABLE: Final = "stable"


class HeartbeatClients:
    """The clients of one group of the heartbeat protocol."""

    def __init__(self, world: World, cast: Cast) -> None:
        self._world, self._cast = world, cast
        self._shown: DescribedConsumerGroup = describe_consumer_group(
            world.leader.state, cast.group_id
        )

    @property
    def living(self) -> tuple[Living, ...]:
        """The members, oldest first."""
        return tuple(
            [
                Living(each.member_id, each.instance_id, each.member_epoch, away=each.released)
                for each in self._shown.members
            ]
        )

    def unsettled(self) -> list[Command]:
        """Return a heartbeat of each member that is on its way; of all, if a target is due."""
        shown = self._shown
        here = [each for each in shown.members if not each.released]
        due = shown.group_epoch != shown.assignment_epoch
        late = [each for each in here if due or not self._settled(each)]
        return [self._beat(each) for each in late]

    def _settled(self, member: DescribedConsumerMember) -> bool:
        return member.state == _STABLE and member.member_epoch == self._shown.assignment_epoch

    def _beat(self, member: DescribedConsumerMember) -> Command:
        """Return a heartbeat that says what the member owns: no more what it was asked to give."""
        cast, owned = self._cast, dict[str, list[int]]()
        for place in member.owned:
            owned.setdefault(place.topic, []).append(place.partition)
        told = tuple(TopicPartitions(name, tuple(owned[name])) for name in sorted(owned))
        return ConsumerGroupHeartbeat(
            self._world.caller(cast.group_id), cast.group_id, member.member_id,
            member.member_epoch, member.instance_id, owned=told,
        )  # fmt: skip

    def joins(self, instances: Sequence[InstanceId | None]) -> list[Command]:
        """Return joins of newcomers, who choose their member ids themselves."""
        return [self._join(each) for each in instances]

    def return_of(self, instance_id: InstanceId) -> Command:
        """Return the join of another process of a static member, which has an id of its own."""
        return self._join(instance_id)

    def _join(self, instance_id: InstanceId | None) -> Command:
        cast = self._cast
        return ConsumerGroupHeartbeat(
            self._world.caller(cast.group_id), cast.group_id,
            self._world.new_member(instance_id or cast.group_id), JOIN, instance_id,
            rebalance_timeout_ms=REBALANCE_MS, topics=(cast.topic.name,), owned=(),
        )  # fmt: skip

    def release(self, member: Living) -> Command:
        """Return what a static member says as its process stops, and its place is kept."""
        return self._goodbye(member, RELEASE)

    def leave(self, member: Living) -> Command:
        """Return a member's goodbye."""
        return self._goodbye(member, LEAVE)

    def _goodbye(self, member: Living, epoch: int) -> Command:
        caller = self._world.caller(self._cast.group_id)
        return ConsumerGroupHeartbeat(
            caller, self._cast.group_id, member.member_id, epoch, member.instance_id
        )
