"""Which members of a group of the heartbeat protocol are still on their way to its target.

Plain Python over records, like `rebalances`: no Spark, no files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from holdfast.coordinator.model.consumer_events import (
    MemberAdvanced,
    MemberSubscribed,
    TargetStored,
)
from holdfast.coordinator.model.events import Event, StaticMemberReplaced
from holdfast.coordinator.model.ids import MemberId, TopicPartition, TopicPartitions
from holdfast.replay.analyse.departures import departures


@dataclass(slots=True)
class Convergence:
    """The members of one group, and those of them that do not own all of the target yet."""

    members: set[MemberId] = field(default_factory=set)
    unsettled: set[MemberId] = field(default_factory=set)
    asked: dict[MemberId, set[TopicPartition]] = field(default_factory=dict)
    """What members were asked to give up, and still own."""
    target_epoch: int = 0

    def reached(self, epoch: int) -> bool:
        """Return whether all members own what the target of this epoch gives them."""
        return 0 < epoch == self.target_epoch and not self.unsettled

    def follow(self, event: Event) -> None:
        """Take in an event of a group of the heartbeat protocol."""
        match event:
            case MemberSubscribed(member_id=member_id):
                self.members.add(member_id)
            case StaticMemberReplaced(old_member_id=old, new_member_id=new):
                self._drop((old,))
                self.members.add(new)
                self.unsettled.add(new)
            case TargetStored(epoch=epoch):
                self.target_epoch = epoch
                self.unsettled = set(self.members)
            case MemberAdvanced():
                self._advanced(event)
            case _:
                self._drop(departures(event).member_ids)

    def _advanced(self, event: MemberAdvanced) -> None:
        member_id = event.member_id
        asked = self.asked.pop(member_id, set()) - _places(event.freed)
        asked |= _places(event.asked_back)
        if asked:
            self.asked[member_id] = asked
        if asked or event.waiting or event.epoch != self.target_epoch:
            self.unsettled.add(member_id)
        else:
            self.unsettled.discard(member_id)

    def _drop(self, member_ids: Collection[MemberId]) -> None:
        self.members.difference_update(member_ids)
        self.unsettled.difference_update(member_ids)
        for member_id in member_ids:
            self.asked.pop(member_id, None)


def _places(several: Iterable[TopicPartitions]) -> set[TopicPartition]:
    return {TopicPartition(each.topic, number) for each in several for number in each.partitions}
