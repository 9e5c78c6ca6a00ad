"""Levels: which version of Holdfast first understands what is written (docs/adr/0026).

The level in force (`State.level`) says what may stand on the log, in the state, and between nodes.
Every node of a cluster can run at it, so a newer version writes nothing above it, and each node
can go back to the older version, until an operator raises it. Level 1 is all that Holdfast wrote
before there were levels. Here stand the levels of events, and the refusal of a command that needs
more than the level in force; `cluster.levels` raises it. Knows no bytes and no nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from holdfast.coordinator.model.consumer_events import (
    AssignmentRequested,
    EpochRaised,
    GroupConverted,
    MemberAdvanced,
    MemberSubscribed,
    RegexResolved,
    TargetStored,
)
from holdfast.coordinator.model.events import (
    AccessModeChanged,
    AclsChanged,
    BackupVerified,
    Event,
    GroupCreated,
    HistoryCut,
    InstanceReleased,
    LevelRaised,
    RecoveryNumberRaised,
    RevocationsChanged,
)
from holdfast.coordinator.model.rejections import UnsupportedVersion

if TYPE_CHECKING:
    from holdfast.coordinator.model.state import State

LEVEL_MIN: Final = 1
"""The oldest level at which this version can run."""
LEVEL_MAX: Final = 2
"""The newest one. A release that adds an event or a field raises it by one, not each change."""

PRINCIPALS: Final = 2
"""From this level on a member keeps the principal that joined, whose instance id it is."""

GROUP_TYPES: Final = 2
"""From this level on a group may be of another type than classic, and topics tell when they were
created."""

BEATS: Final = 2
"""From this level on the log has the numbers of heartbeats (S26), and how long places are kept."""

NODE_CHANGES: Final = 2
"""From this level on the log may say which nodes the cluster has (S25, docs/adr/0034)."""

SEALED_SUMS: Final = 2
"""From this level on the manifest of a sealed segment tells the sums of its files (docs/adr/0059).
"""

SINCE: Final[Mapping[type, int]] = {
    LevelRaised: 2,
    AclsChanged: 2,
    AccessModeChanged: 2,
    RevocationsChanged: 2,
    RecoveryNumberRaised: 2,
    HistoryCut: 2,
    BackupVerified: 2,
    MemberSubscribed: 2,
    EpochRaised: 2,
    RegexResolved: 2,
    AssignmentRequested: 2,
    TargetStored: 2,
    MemberAdvanced: 2,
    GroupConverted: 2,
}
"""The level that first holds an event, by the event's class; what is not named is of level 1.

It is a line of this table that keeps a new event off the log of a cluster with older nodes.
"""


def level_of(event: Event) -> int:
    """Return the level that the log must be at to hold an event.

    A raise is of the level that it raises to: who cannot run at that must not read on. A group that
    names its type is of the level that knows types, and a release by a numbered heartbeat, or
    for a time, of the level that knows these.
    """
    if type(event) is LevelRaised:
        return event.level
    if type(event) is GroupCreated and event.group_type:
        return GROUP_TYPES
    if type(event) is InstanceReleased and (event.beat or event.absence_ms):
        return BEATS
    return SINCE.get(type(event), LEVEL_MIN)


VARYING: Final = frozenset({*SINCE, GroupCreated, InstanceReleased})
"""The classes of events that are not always of the first level: of no other need it be asked."""


def too_low(state: State, event: type[Event], what: str) -> UnsupportedVersion | None:
    """Refuse a command whose event the level in force does not hold; None: it holds it.

    To be asked by each decider of such an event. `what` begins the sentence: "an access rule".
    """
    needed = SINCE.get(event, LEVEL_MIN)
    return None if needed <= state.level else UnsupportedVersion(what, needed, state.level)
