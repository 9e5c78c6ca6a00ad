"""What members say that they own when they join, as sticky and cooperative assignors ask for it.

A partition is a topic and number; with it comes the generation in which the member owned it
(`owned_partitions` in a member's subscription, KIP-792). Knows no invariant.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, TypeAlias

from google.protobuf.message import DecodeError

from holdfast.chaos.evidence.heartbeats.group import listed
from holdfast.chaos.evidence.log_view import assigned_by
from holdfast.chaos.history.happenings import Fields, Recorded
from holdfast.v1 import group_pb2

Partition: TypeAlias = tuple[str, int]
Owned: TypeAlias = dict[Partition, int]
"""What a member says that it has, and since which generation."""

COOPERATIVE: Final = "cooperative"
"""Part of the names of assignors that move a partition in two rebalances (KIP-429)."""

ASKS: Final[Mapping[str, str]] = {
    "MemberJoined": "member_id",
    "MemberUpdated": "member_id",
    "StaticMemberReplaced": "new_member_id",
}
"""The events that say what a member asks for, and the field that says whose wishes they are."""


class OwnedPartitions:
    """The partitions that each member of one group last said it owns, along the group's records."""

    def __init__(self) -> None:
        self._of: dict[str, Owned] = {}
        self._given: dict[int, Mapping[str, Collection[Partition]]] = {}
        self._names: dict[str, frozenset[str]] = {}
        self._holds: dict[str, set[Partition]] = {}
        """What each member owns in a group of the heartbeat protocol."""

    def follow(self, record: Recorded) -> None:
        """Take in one record."""
        fields = record.fields
        if record.kind in ASKS:
            self._of[fields[ASKS[record.kind]]] = _owned(fields)
        if record.kind == "StaticMemberReplaced":
            old, new = fields["old_member_id"], fields["new_member_id"]
            self._names[new] = self._names.get(old, frozenset({old})) | {new}
        elif record.kind == "AssignmentStored":
            self._given[fields["generation"]] = assigned_by(fields)
        elif record.kind == "GroupConverted":  # it tells who owns what (K-Q2, K-Q12)
            told = {each["member_id"]: listed(each["partitions"]) for each in fields["members"]}
            self._given[fields["generation"]] = told
            self._holds = {member_id: set(own) for member_id, own in told.items()}
        elif record.kind == "MemberAdvanced":
            self._advance(fields)
        elif record.kind == "GroupDeleted":
            self._given.clear()

    def _advance(self, fields: Fields) -> None:
        """Take in a step of the heartbeat protocol: a classic member claims by its epoch (K-Q9)."""
        member_id, epoch = fields["member_id"], fields["epoch"]
        own = self._holds.setdefault(member_id, set())
        own -= set(listed(fields["freed"]))
        own |= set(listed(fields["granted"]))
        before = self._given.get(self._last(epoch) or 0, {})
        self._given[epoch] = {**before, member_id: frozenset(own)}

    def _last(self, generation: int) -> int | None:
        """Return the last generation up to this one that gave something."""
        return max((each for each in self._given if each <= generation), default=None)

    def of(self, member_id: str) -> Owned:
        """Return the partitions that a member last said it owns."""
        return self._of.get(member_id, {})

    def confirmed(self, member_ids: Iterable[str]) -> frozenset[Partition]:
        """Return what one of these says it owns, if the generation that it names gave it that."""
        return frozenset(
            partition
            for each in member_ids
            for partition, generation in self.of(each).items()
            if self._was_given(each, partition, generation)
        )

    def _was_given(self, member_id: str, partition: Partition, generation: int) -> bool:
        """Return whether the last assignment up to a generation gave a partition to a member.

        True for a generation that is not known. A member that joined later says what it had under
        another member id, which the log does not tell: so any partition given then may be its own.
        """
        last = self._last(generation)
        if last is None:
            return True
        given = self._given[last]
        names = self._names.get(member_id, frozenset({member_id})) & given.keys()
        return any(partition in given[name] for name in names or given)


def _owned(fields: Fields) -> Owned:
    found: Owned = {}
    for protocol in fields["protocols"]:
        if "sticky" not in protocol["name"] and COOPERATIVE not in protocol["name"]:
            continue
        message = group_pb2.ConsumerProtocolSubscription()
        try:
            message.ParseFromString(bytes.fromhex(protocol["metadata"]))
        except DecodeError:
            continue  # opaque bytes of another protocol type: nobody can tell what is owned
        for topic in message.owned_partitions:
            found |= {(topic.topic, number): message.generation_id for number in topic.partitions}
    return found
