"""Which events may happen to a group of the heartbeat protocol, and the state that it then is in.

The state is never stored: it follows from epochs and members after each event (kafka:
ConsumerGroup.ConsumerGroupState). So the table here only says what cannot happen: nobody advances
in an empty group, and only an empty group is deleted. Knows events by their names and no rules.
"""

from __future__ import annotations

from typing import Final

from holdfast.coordinator.consumer.state import ConsumerGroup
from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.events import GroupEvent
from holdfast.coordinator.model.state import ABSENT, EMPTY, STABLE

ASSIGNING: Final = "Assigning"
"""The group epoch is newer than the target."""
RECONCILING: Final = "Reconciling"
"""There is a target, and somebody is still on the way to it, or its process has stopped."""
BUSY: Final = "*"
"""Stands for every state with members."""

ALLOWED: Final = frozenset(
    {
        (ABSENT, "GroupCreated"),
        (EMPTY, "MemberSubscribed"),
        (EMPTY, "EpochRaised"),
        (EMPTY, "OffsetsCommitted"),
        (EMPTY, "OffsetsDeleted"),
        (EMPTY, "GroupConverted"),
        (EMPTY, "GroupDeleted"),
        (BUSY, "MemberSubscribed"),
        (BUSY, "StaticMemberReplaced"),
        (BUSY, "InstanceReleased"),
        (BUSY, "MembersLeft"),
        (BUSY, "MembersRemoved"),
        (BUSY, "MemberExpired"),
        (BUSY, "EpochRaised"),
        (BUSY, "RegexResolved"),
        (BUSY, "AssignmentRequested"),
        (BUSY, "TargetStored"),
        (BUSY, "MemberAdvanced"),
        (BUSY, "GroupConverted"),
        (BUSY, "OffsetsCommitted"),
        (BUSY, "OffsetsDeleted"),
    }
)


def target(state: str, event: GroupEvent) -> str:
    """Return the state itself; where the event leads, `derived` tells after it.

    Raises InvariantBroken if `state` does not allow the event.
    """
    name = type(event).__name__
    if (state if state in {ABSENT, EMPTY} else BUSY, name) not in ALLOWED:
        raise InvariantBroken("transitions", f"{name} cannot happen to a group that is {state}")
    return EMPTY if state == ABSENT else state


def derived(group: ConsumerGroup) -> str:
    """Return the state that a group is in, in time independent of its size."""
    body = group.body
    if not body.members:
        return EMPTY
    if group.generation > body.assignment_epoch:
        return ASSIGNING
    return STABLE if len(body.settled) == len(body.members) else RECONCILING
