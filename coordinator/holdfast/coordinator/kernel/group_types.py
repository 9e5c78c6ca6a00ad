"""The table of group types: the only place that knows which there are.

A group's events and commands belong to its type. The first event of a group may name it; without
a name, and for the first simple commit, a group is classic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.coordinator.classic.group_type import CLASSIC
from holdfast.coordinator.consumer.group_type import CONSUMER_TYPE
from holdfast.coordinator.model.state import Group

if TYPE_CHECKING:
    from holdfast.coordinator.groups.draft import Draft
    from holdfast.coordinator.groups.group_type import GroupType
    from holdfast.coordinator.model.ids import GroupId

TYPES: dict[str, GroupType[Draft]] = {
    CLASSIC.name: CLASSIC,
    CONSUMER_TYPE.name: CONSUMER_TYPE,
}


def type_of(group: Group[Any] | None) -> GroupType[Draft]:
    """Return the type of a group; for None, the type that the first commit or join gives it."""
    return CLASSIC if group is None else TYPES[group.group_type]


def new_group(group_id: GroupId, group_type: str = "") -> Group[Any]:
    """Return a new group, as its first event makes it; "" is the classic type.

    Raises KeyError for a type that there is not.
    """
    kind = TYPES[group_type or CLASSIC.name]
    return Group(group_id, kind.name, kind.body(), generation=kind.first_generation)


def for_command(group: Group[Any] | None, command: object) -> GroupType[Draft] | None:
    """Return the type that decides a command; None: not in a group of this type."""
    if group is not None:
        found = TYPES[group.group_type]
        return found if found.takes(command) else None
    return next((each for each in TYPES.values() if each.takes(command)), None)


def answering(command: object) -> GroupType[Draft] | None:
    """Return the type that a call belongs to; None if groups of all types answer it alike."""
    return next((each for each in TYPES.values() if each.answers(command)), None)


def is_of_a_type(command: object) -> bool:
    """Return whether only groups of some type take a command, not any group or the cluster."""
    return any(each.takes(command) for each in TYPES.values())
