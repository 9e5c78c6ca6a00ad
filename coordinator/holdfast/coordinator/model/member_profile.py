"""What a member says of itself. Plain values; knows no rules.

One value of each protocol for the events of a member, and the member that these make, so that a new
field is named here and in `events.proto` and `state.proto`, and nowhere between.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from holdfast.coordinator.model.ids import (
    InstanceId,
    MemberId,
    RequestId,
    TopicName,
    TopicPartitions,
)
from holdfast.coordinator.structures.flattened import flattened


class Protocol(NamedTuple):
    """One protocol that a member supports."""

    name: str
    metadata: bytes
    topics: tuple[TopicName, ...] | None = None
    """The topics that the metadata subscribes to, read by the server for the protocol type
    `consumer`; None for every other type, whose metadata is opaque."""


@flattened
class MemberProfile(NamedTuple):
    """What a member is, beside who it is: its last join that changed any of it said so.

    Its ids are not here, which others know it by, nor its place in the group, which it is given.
    """

    client_id: str
    """What its process calls itself; shown to people."""
    client_host: str
    """The address that it joined from; shown to people."""
    session_timeout_ms: int
    """How long it may be silent."""
    rebalance_timeout_ms: int
    """How long it may take to rejoin."""
    protocols: tuple[Protocol, ...]
    """What it can do, the most wanted first."""

    def metadata(self, protocol_name: str) -> bytes:
        """Return the metadata for one protocol; empty if the member does not support it."""
        return next((p.metadata for p in self.protocols if p.name == protocol_name), b"")


class ClientAssignor(NamedTuple):
    """An assignor that a member of the heartbeat protocol can run itself (KIP-848)."""

    name: str
    minimum_version: int
    """The oldest version of metadata that the member understands."""
    maximum_version: int
    reason: int
    """Why the member wants another target, by the assignor's own numbers; 0: it does not."""
    version: int
    """That of its own metadata."""
    metadata: bytes
    """What the assignor needs to know of the member."""

    def understands(self, version: int) -> bool:
        """Return whether the member can read metadata of a version."""
        return self.minimum_version <= version <= self.maximum_version


@flattened
class ConsumerProfile(NamedTuple):
    """What a member is and wants, beside who it is."""

    client_id: str = ""
    """What its process calls itself; shown to people."""
    client_host: str = ""
    """The address that it spoke from; shown to people."""
    rack_id: str | None = None
    """Where it runs."""
    rebalance_timeout_ms: int = 0
    """How long it may take to give partitions up."""
    topics: tuple[TopicName, ...] = ()
    """The topics that it names, sorted."""
    regex: str = ""
    """The regular expression that it wants topics by; "": none."""
    server_assignor: str = ""
    """The assignor that it would have; "": any."""
    client_assignors: tuple[ClientAssignor, ...] = ()
    """Those that it can run itself, the most wanted first."""

    def client_assignor(self, name: str) -> ClientAssignor | None:
        """Return what the member says for an assignor; None: it cannot run it."""
        return next((each for each in self.client_assignors if each.name == name), None)


class ClassicProfile(NamedTuple):
    """What a member says that speaks the classic protocol in a group of the heartbeat protocol."""

    session_timeout_ms: int
    """How long it may be silent."""
    protocols: tuple[Protocol, ...]
    """What it can do, the most wanted first."""
    request_id: RequestId = ""
    """The request id of its last join (S14)."""


class MemberSpec(NamedTuple):
    """One member as an assignor sees it."""

    instance_id: InstanceId | None
    """None for a dynamic member."""
    rack_id: str | None
    """Where it runs. Neither assignor looks at it, nor do Kafka's."""
    topics: frozenset[TopicName]
    """What it subscribes to, by name or by regular expression; they need not exist."""
    current: tuple[TopicPartitions, ...] = ()
    """Its target until now. Of members whose targets share a partition one keeps it at most."""


class GroupSpec(NamedTuple):
    """All members of a group."""

    members: Mapping[MemberId, MemberSpec]
    homogeneous: bool
    """All members subscribe to the same names, or all to one regular expression and no names.

    `uniform` has one rule for such groups and another for all others. A topic that does not exist
    counts here, as in Kafka: members that differ in nothing else are not homogeneous.
    """
