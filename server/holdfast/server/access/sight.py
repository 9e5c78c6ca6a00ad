"""Which events of the log a caller may be told of.

A group's events are its readers'. The cluster's own need a reader of the cluster; those that name
groups or topics are told to nobody who may not read all of these, and answers that are kept for a
repetition, which may name anything, to administrators alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.coordinator.model.access import ADMIN, CLUSTER
from holdfast.server.access.table import CLUSTER_READ, Need, need_of, topics_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.server.access.gate import Gate
    from holdfast.v1.events_pb2 import Event, EventRecord

_GROUP: Final = need_of("LogService.ReadEvents")
_TOPIC: Final = topics_of("AdminService.ListTopics")
_EVERYTHING: Final = Need(CLUSTER, ADMIN)
_TOPICS: Final = frozenset({"topics_created", "partitions_added", "topics_deleted"})
_ADMINS: Final = frozenset({"request_recorded", "acls_changed", "revocations_changed"})
"""Events of the cluster that name topics; and those that may name anything."""


class Sight:
    """What one caller may be told of, by one call; it follows the grants from event to event."""

    def __init__(self, gate: Gate, principal: str, call: str) -> None:
        self._gate, self._principal, self._call = gate, principal, call

    def check(self, group_id: str) -> None:
        """Raise Refused if the caller may not read this group."""
        self._gate.check(self._principal, self._call, _GROUP, group_id)

    def sees(self, record: EventRecord) -> bool:
        """Return whether the caller may be told of an event."""
        if self._gate.open:
            return True
        if record.group_id:
            return self._may(_GROUP, record.group_id)
        return self._may(CLUSTER_READ) and self._may_read_all(record.event)

    def _may_read_all(self, event: Event) -> bool:
        """Return whether the caller may read all that an event of the cluster names."""
        kind = event.WhichOneof("body") or ""
        if kind in _ADMINS:
            return self._may(_EVERYTHING)
        if kind == "settings_changed" and event.settings_changed.group_id:
            return self._may(_GROUP, event.settings_changed.group_id)
        return all(self._may(_TOPIC, name) for name in _topics(event, kind))

    def _may(self, need: Need, name: str = "") -> bool:
        return self._gate.may(self._principal, self._call, need, name)


def _topics(event: Event, kind: str) -> Iterable[str]:
    if kind not in _TOPICS:
        return ()
    if kind == "topics_deleted":
        return event.topics_deleted.names
    return [topic.name for topic in getattr(event, kind).topics]
