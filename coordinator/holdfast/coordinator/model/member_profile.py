"""What a member says of itself when it joins. Plain values; knows no rules.

One value for a command, the events that it becomes, and the member that these make, so that a new
field is named here and in `events.proto` and `state.proto`, and nowhere between.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.coordinator.model.flattened import flattened
from holdfast.coordinator.model.ids import TopicName


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
