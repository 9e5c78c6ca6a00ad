"""The table of a classic group's states and of the events that lead from one to the next.

`evolve` refuses an event that the table does not have, and the diagrams in the docs are drawn from
it. States have Kafka's names; `ABSENT` stands for a group that does not exist. Kafka's table
(kafka: ClassicGroupState) is the same but for the join phase: here it opens before members come or
go, so that membership changes in one state only. A group that is converted is no classic group any
more, so that leads to `ABSENT`, too. Knows events by their names and no rules.
"""

from __future__ import annotations

from typing import Final

from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.events import GroupEvent
from holdfast.coordinator.model.state import ABSENT, EMPTY, STABLE

PREPARING: Final = "PreparingRebalance"
"""The join phase is open."""
COMPLETING: Final = "CompletingRebalance"
"""A generation has started, and its assignment is waited for."""

TRANSITIONS: Final[dict[tuple[str, str], str]] = {
    (ABSENT, "GroupCreated"): EMPTY,
    (EMPTY, "RebalanceStarted"): PREPARING,
    (EMPTY, "OffsetsCommitted"): EMPTY,
    (EMPTY, "OffsetsDeleted"): EMPTY,
    (EMPTY, "GroupConverted"): ABSENT,
    (EMPTY, "GroupDeleted"): ABSENT,
    (PREPARING, "MemberJoined"): PREPARING,
    (PREPARING, "MemberUpdated"): PREPARING,
    (PREPARING, "StaticMemberReplaced"): PREPARING,
    (PREPARING, "InstanceReleased"): PREPARING,
    (PREPARING, "MembersLeft"): PREPARING,
    (PREPARING, "MembersRemoved"): PREPARING,
    (PREPARING, "MemberExpired"): PREPARING,
    (PREPARING, "MemberRefused"): PREPARING,
    (PREPARING, "OffsetsCommitted"): PREPARING,
    (PREPARING, "OffsetsDeleted"): PREPARING,
    (PREPARING, "GenerationStarted"): COMPLETING,
    (PREPARING, "GroupEmptied"): EMPTY,
    (PREPARING, "GroupConverted"): ABSENT,
    (COMPLETING, "MemberUpdated"): COMPLETING,
    (COMPLETING, "StaticMemberReplaced"): COMPLETING,
    (COMPLETING, "InstanceReleased"): COMPLETING,
    (COMPLETING, "OffsetsCommitted"): COMPLETING,
    (COMPLETING, "OffsetsDeleted"): COMPLETING,
    (COMPLETING, "AssignmentStored"): STABLE,
    (COMPLETING, "RebalanceStarted"): PREPARING,
    (COMPLETING, "GroupConverted"): ABSENT,
    (STABLE, "MemberUpdated"): STABLE,
    (STABLE, "StaticMemberReplaced"): STABLE,
    (STABLE, "InstanceReleased"): STABLE,
    (STABLE, "OffsetsCommitted"): STABLE,
    (STABLE, "OffsetsDeleted"): STABLE,
    (STABLE, "RebalanceStarted"): PREPARING,
    (STABLE, "GroupConverted"): ABSENT,
}


def target(state: str, event: GroupEvent) -> str:
    """Return the state that an event leads to.

    Raises InvariantBroken if `state` does not allow it.
    """
    name = type(event).__name__
    to = TRANSITIONS.get((state, name))
    if to is None:
        raise InvariantBroken("transitions", f"{name} cannot happen to a group that is {state}")
    return to
