"""What members say that they have when they join: the claims of sticky and cooperative assignors.

A claim is a topic and number, with the generation in which the member owned it. Knows no invariant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from google.protobuf.message import DecodeError

from holdfast.chaos.history import Fields, Recorded
from holdfast.v1 import group_pb2

Partition: TypeAlias = tuple[str, int]
Claimed: TypeAlias = dict[Partition, int]
"""What a member says that it has, and since which generation."""

COOPERATIVE: Final = "cooperative"
"""Part of the names of assignors that move a partition in two rounds (KIP-429)."""

ASKS: Final[Mapping[str, str]] = {
    "MemberJoined": "member_id",
    "MemberUpdated": "member_id",
    "StaticMemberReplaced": "new_member_id",
}
"""The events that say what a member asks for, and the field that says whose wishes they are."""


class Claims:
    """The newest claims of all members of one group, followed along its records."""

    def __init__(self) -> None:
        self._of: dict[str, Claimed] = {}

    def follow(self, record: Recorded) -> None:
        """Take in one record."""
        if record.kind in ASKS:
            self._of[record.fields[ASKS[record.kind]]] = _claimed(record.fields)

    def of(self, member_id: str) -> Claimed:
        """What a member claimed last."""
        return self._of.get(member_id, {})

    def of_any(self, member_ids: Iterable[str]) -> frozenset[Partition]:
        """What at least one of these claims."""
        return frozenset(partition for each in member_ids for partition in self.of(each))


def _claimed(fields: Fields) -> Claimed:
    found: Claimed = {}
    for protocol in fields["protocols"]:
        if "sticky" not in protocol["name"] and COOPERATIVE not in protocol["name"]:
            continue
        message = group_pb2.ConsumerProtocolSubscription()
        try:
            message.ParseFromString(bytes.fromhex(protocol["metadata"]))
        except DecodeError:
            continue  # opaque bytes of another protocol type: nobody can tell what is claimed
        for topic in message.owned_partitions:
            found |= {(topic.topic, number): message.generation_id for number in topic.partitions}
    return found
