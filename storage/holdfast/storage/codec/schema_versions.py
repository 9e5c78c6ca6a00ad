"""Schema versions: the number before stored bytes that says which version of Holdfast reads them.

Bytes carry the lowest version that holds what they say, so that at a level (`model.levels`) every
node writes the same bytes, whatever its own newest is: digests and hash chains are taken over them
(S3). An event of the first level is of version 1 and a record of the state of version 2, as they
were before there were levels; from level 2 on, both are of the level's number and one more.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from holdfast.coordinator.consumer.state import Member as ConsumerMember
from holdfast.coordinator.model.access import Acl, Revocation
from holdfast.coordinator.model.consumer_events import MemberTarget, ResolvedRegex
from holdfast.coordinator.model.events import TopicSize
from holdfast.coordinator.model.levels import GROUP_TYPES, LEVEL_MAX, LEVEL_MIN, VARYING, level_of
from holdfast.coordinator.model.state import Group, State

if TYPE_CHECKING:
    from holdfast.coordinator.model.events import Event, Part

EVENTS_FIRST: Final = 1
"""Of entries and records with events of level 1 alone."""
STATE_FIRST: Final = 2
"""Of records of the state that hold nothing newer than level 1. Version 1 is only read."""
SCHEMA_VERSION: Final = LEVEL_MAX + 1
"""The newest version that is read, and written once the level is in force."""

_FIRST_TYPE: Final = "classic"
"""The only type of groups at level 1."""

STATE_SINCE: Final[dict[type, int]] = {
    Acl: 2,
    Revocation: 2,
    ConsumerMember: 2,
    MemberTarget: 2,
    ResolvedRegex: 2,
}
"""The level that first holds a kind of state record, by its value's class; else it is level 1."""


def of_event(event: Event) -> int:
    """Return the version of the record of an event.

    Two nodes make the same record of an entry, also where only one of them was upgraded in between.
    """
    if type(event) not in VARYING:
        return EVENTS_FIRST
    level = level_of(event)
    return EVENTS_FIRST if level == LEVEL_MIN else level + 1


def of_entry(parts: Iterable[Part]) -> int:
    """Return the version of an entry with these parts: the newest of its events'."""
    newer = [
        of_event(it.event) for part in parts for it in part.events if type(it.event) in VARYING
    ]
    return max(newer, default=EVENTS_FIRST)


def of_state(value: object) -> int:
    """Return the version of a record of the state.

    That of the cluster's own record is the level in force: it keeps an older version from opening
    the directory.
    """
    level = _level_of_state(value)
    return STATE_FIRST if level == LEVEL_MIN else level + 1


def _level_of_state(value: object) -> int:
    if type(value) is State:
        return value.level
    if type(value) is TopicSize and value.created_index:
        return GROUP_TYPES
    if type(value) is Group and value.group_type != _FIRST_TYPE:
        return GROUP_TYPES
    return STATE_SINCE.get(type(value), LEVEL_MIN)
