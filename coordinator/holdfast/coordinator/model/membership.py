"""What each event does to a group's members: who came, who went, who was fenced, what is granted.

One table for all code that follows members from event to event: a batch that is being decided, the
counts of protocols, the story of rebalances, pushes on heartbeat streams, the analyses of `replay`.
A new event gets a line here, or `tests/tidy/test_membership.py` fails. The fold of a group is its
type's `evolve`; a unit test holds this table against it. The fold in SQL and the checkers of chaos
say the same on their own, on purpose. Values only; knows no rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from holdfast.coordinator.model import consumer_events as consumer
from holdfast.coordinator.model import events as ev
from holdfast.coordinator.model.ids import InstanceId, MemberId
from holdfast.coordinator.model.member_profile import Protocol

Kind: TypeAlias = Literal[
    "",
    "joined",
    "updated",
    "subscribed",
    "advanced",
    "replaced",
    "released",
    "left",
    "removed",
    "expired",
    "refused",
    "late",
]
"""How the members that an event names were changed by it; "" if none were."""

JOINED: Final = "joined"
UPDATED: Final = "updated"
"""A member rejoined with other protocols, timeouts or client (K-B17)."""
SUBSCRIBED: Final = "subscribed"
"""A member of the heartbeat protocol came, or says something new of itself (K-M16)."""
ADVANCED: Final = "advanced"
"""A member of the heartbeat protocol came closer to its target: it alone is granted something."""
REPLACED: Final = "replaced"
"""A static member goes on under another id: the old one went, and the new one came (K-B3)."""
RELEASED: Final = "released"
"""A static member's id is fenced, and the member stays (S12)."""
LEFT: Final = "left"
REMOVED: Final = "removed"
"""By an operator (K-G23)."""
EXPIRED: Final = "expired"
REFUSED: Final = "refused"
"""Thrown out because the group was full (K-I10)."""
LATE: Final = "late"
"""Thrown out because the join phase closed without it (K-D5)."""

Everyone: TypeAlias = Literal["", "recalled", "freed", "granted", "converted", "ended"]
"""What an event does to all members, whether it names them or not; "" if nothing."""

RECALLED: Final = "recalled"
"""All have to rejoin: a join phase opened."""
FREED: Final = "freed"
"""What all were granted is over: another generation started."""
GRANTED: Final = "granted"
"""All are granted something, be it nothing: the assignment of the generation (K-E5)."""
CONVERTED: Final = "converted"
"""All go on as members of a group of another type, and keep what they were granted."""
ENDED: Final = "ended"
"""Nobody is left, and what anybody was granted is over."""

Ids: TypeAlias = tuple[MemberId, ...]


def _nobody(_event: object) -> Ids:
    return ()


def _nothing(_event: object) -> None:
    return None


class Line(NamedTuple):
    """What events of one class do to members; what depends on the event is a function of it.

    A member that went or is fenced loses its grant. A member that comes by a swap is granted what
    the old id held; any other member that comes is granted nothing before `everyone` is. A member
    that begins to speak the classic protocol under its own id (SUBSCRIBED) is granted anew what it
    owns, since there it has one token for all (S13).
    """

    kind: Kind = ""
    everyone: Everyone = ""
    came: Callable[[Any], Ids] = _nobody
    """Ids that are members from here on."""
    went: Callable[[Any], Ids] = _nobody
    """Ids that are none any more, and never will be again."""
    fenced: Callable[[Any], Ids] = _nobody
    """Ids that no process may act under any more, although the static member stays (S12)."""
    named: Callable[[Any], Ids] = _nobody
    """Other ids that the event speaks of, members or not; they do not come or go by it."""
    instance_id: Callable[[Any], InstanceId | None] = _nothing
    """The static member that came, was replaced, or was released."""
    protocols: Callable[[Any], tuple[Protocol, ...] | None] = _nothing
    """What the member that came or was updated supports now."""
    reason: Callable[[Any], str | None] = _nothing
    """Why, in the words of the event."""


_OfOne: TypeAlias = (
    ev.MemberJoined
    | ev.MemberUpdated
    | ev.InstanceReleased
    | ev.MemberExpired
    | ev.MemberRefused
    | consumer.MemberAdvanced
)


def line_of(event: ev.Event) -> Line:
    """Return what an event does to members."""
    return TABLE[type(event)]


def _one(event: _OfOne) -> Ids:
    return (event.member_id,)


def _old(event: ev.StaticMemberReplaced) -> Ids:
    return (event.old_member_id,)


def _new(event: ev.StaticMemberReplaced) -> Ids:
    return (event.new_member_id,)


def _new_subscriber(event: consumer.MemberSubscribed) -> Ids:
    return (event.member_id,) if event.joined else ()


def _old_subscriber(event: consumer.MemberSubscribed) -> Ids:
    return () if event.joined else (event.member_id,)


def _chosen(event: consumer.AssignmentRequested) -> Ids:
    return (event.member_id,)


def _causer(event: ev.RebalanceStarted) -> Ids:
    return (event.member_id,) if event.member_id else ()


_MANY: Final = attrgetter("member_ids")
_INSTANCE: Final = attrgetter("instance_id")
_PROTOCOLS: Final = attrgetter("profile.protocols")
_REASON: Final = attrgetter("reason")
UNTOUCHED: Final = Line()
"""Of events that do nothing to members."""

TABLE: Final[Mapping[type, Line]] = {
    ev.GroupCreated: UNTOUCHED,
    ev.MemberJoined: Line(JOINED, came=_one, instance_id=_INSTANCE, protocols=_PROTOCOLS),
    ev.MemberUpdated: Line(UPDATED, named=_one, protocols=_PROTOCOLS),
    ev.StaticMemberReplaced: Line(
        REPLACED,
        came=_new,
        went=_old,
        fenced=_old,
        instance_id=_INSTANCE,
        protocols=_PROTOCOLS,
    ),
    ev.InstanceReleased: Line(RELEASED, fenced=_one, instance_id=_INSTANCE),
    ev.RebalanceStarted: Line(everyone=RECALLED, named=_causer, reason=_REASON),
    ev.GenerationStarted: Line(LATE, FREED, went=attrgetter("removed")),
    ev.GroupEmptied: Line(everyone=ENDED),
    ev.AssignmentStored: Line(everyone=GRANTED),
    ev.MembersLeft: Line(LEFT, went=_MANY, reason=_REASON),
    ev.MembersRemoved: Line(REMOVED, went=_MANY, reason=_REASON),
    ev.MemberExpired: Line(EXPIRED, went=_one),
    ev.MemberRefused: Line(REFUSED, went=_one),
    consumer.MemberSubscribed: Line(
        SUBSCRIBED, came=_new_subscriber, named=_old_subscriber, instance_id=_INSTANCE
    ),
    consumer.EpochRaised: UNTOUCHED,
    consumer.RegexResolved: UNTOUCHED,
    consumer.AssignmentRequested: Line(named=_chosen),
    consumer.TargetStored: UNTOUCHED,
    consumer.MemberAdvanced: Line(ADVANCED, named=_one),
    consumer.GroupConverted: Line(everyone=CONVERTED),
    ev.GroupDeleted: Line(everyone=ENDED),
    ev.OffsetsCommitted: UNTOUCHED,
    ev.OffsetsDeleted: UNTOUCHED,
    ev.RequestRecorded: UNTOUCHED,
    ev.ClusterFormed: UNTOUCHED,
    ev.SettingsChanged: UNTOUCHED,
    ev.TopicsCreated: UNTOUCHED,
    ev.PartitionsAdded: UNTOUCHED,
    ev.TopicsDeleted: UNTOUCHED,
    ev.SegmentSealed: UNTOUCHED,
    ev.LevelRaised: UNTOUCHED,
    ev.AclsChanged: UNTOUCHED,
    ev.AccessModeChanged: UNTOUCHED,
    ev.RevocationsChanged: UNTOUCHED,
    ev.RecoveryNumberRaised: UNTOUCHED,
    ev.HistoryCut: UNTOUCHED,
    ev.BackupVerified: UNTOUCHED,
}
"""By the event's class: a line for every event, also for those that leave members alone."""
COMING: Final = frozenset(kind for kind, line in TABLE.items() if line.came is not _nobody)
"""The classes of events by which somebody becomes a member."""
