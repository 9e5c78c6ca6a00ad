"""Static members of protocol type `consumer`, whose leader assigns what a test says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.calls import Calls
from holdfast.coordinator.model.member_profile import Protocol
from holdfast.v1.group_pb2 import ConsumerProtocolAssignment, ConsumerProtocolTopicPartitions

if TYPE_CHECKING:
    from holdfast.coordinator.projections.history import Rebalance

READS_T = (Protocol("p", b"p-bytes", ("t",)),)


def owning(*partitions: int, topic: str = "t") -> bytes:
    """The bytes of an assignment."""
    some = ConsumerProtocolTopicPartitions(topic=topic, partitions=partitions)
    made = ConsumerProtocolAssignment(assigned_partitions=[some] if partitions else [])
    return made.SerializeToString()


@dataclass
class Consumers:
    """One group of them."""

    calls: Calls = field(default_factory=Calls)

    @property
    def last(self) -> Rebalance:
        return self.calls.history[-1]

    def join(self, instance_id: str, member_id: str = "") -> None:
        fresh = f"{instance_id}-1"
        self.calls.join(
            instance_id, member_id, fresh=fresh, protocols=READS_T, protocol_type="consumer"
        )

    def rejoin(self) -> None:
        """Everyone who is not parked joins the open phase."""
        parked = set(self.calls.volatile.joins)
        for member_id, member in sorted(self.calls.group.body.members.items()):
            if member_id not in parked:
                self.join(str(member.instance_id), member_id)
        self.calls.core.advance(0)

    def assign(self, **owned: bytes) -> None:
        """Everybody syncs; the leader last, with these assignments by instance id."""
        group = self.calls.group
        assert group.state == "CompletingRebalance"
        given = {group.body.instances[name]: bytes_ for name, bytes_ in owned.items()}
        kind = {"protocol_type": "consumer"}
        for member_id in group.body.members:
            if member_id != group.body.leader:
                self.calls.sync(member_id, **kind)  # type: ignore[arg-type]  # one known keyword
        self.calls.sync(str(group.body.leader), given, **kind)  # type: ignore[arg-type]  # as above

    def form(self, **owned: bytes) -> None:
        """A first generation of these members."""
        for name in owned:
            self.join(name)
        self.calls.core.advance(0)
        self.assign(**owned)
