"""What a rebalance was about, folded from its events, so that people can be told (Rebalance).

Nothing is decided on it. A record stays small whatever the group's size: of everything listed the
first few are kept, the rest is counted, and assignments are compared only up to a number of bytes,
so that the largest group's rebalance does not hold up the fold. Total: it never raises, because
telling what happened must not put a group into quarantine. Used by `evolve`.
"""

from __future__ import annotations

from heapq import nsmallest
from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.coordinator.model.events import (
    AssignmentStored,
    GenerationStarted,
    GroupEmptied,
    MemberJoined,
    RebalanceStarted,
)
from holdfast.coordinator.model.membership import (
    EXPIRED,
    LATE,
    LEFT,
    REFUSED,
    REMOVED,
    REPLACED,
    line_of,
)
from holdfast.coordinator.model.state import Change, Group, Move, Parted, Rebalance
from holdfast.coordinator.model.subscriptions import CONSUMER
from holdfast.coordinator.projections.assignment_bytes import partitions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from holdfast.coordinator.model.events import GroupEvent, Record
    from holdfast.coordinator.model.ids import MemberId, TopicPartition
    from holdfast.coordinator.model.state import Member

KEPT_MAX: Final = 10
"""Rebalances of a group that are told of."""
LISTED_MAX: Final = 32
"""Members, moves and names that are listed of one rebalance."""
PARTED_MAX: Final = 64
PARTED_BYTES_MAX: Final = 16_384
"""Assignments of members that went, kept until the next assignment."""
COMPARED_BYTES_MAX: Final = 65_536
"""Changed assignments that are compared partition by partition; of more only members count."""

_DEPARTURES: Final[Mapping[str, str | None]] = {
    LEFT: "left",
    REMOVED: "removed",
    EXPIRED: "expired",
    REFUSED: "refused",
    LATE: "expired",
    REPLACED: None,  # the static member stays
}
"""How a member went, in the words of `Change`."""


def noted(before: Group, after: Group, event: GroupEvent, record: Record) -> Group:
    """The group after an event, with what the event means to its rebalances."""
    match event:
        case RebalanceStarted():
            return after._replace(rebalances=opened(before, event, record).rebalances)
        case GenerationStarted() | GroupEmptied():
            return changed(before, closed(after, record), event)
        case AssignmentStored():
            return assigned(before, after, record)
    return changed(before, after, event)


def opened(group: Group, event: RebalanceStarted, record: Record) -> Group:
    """A join phase opens: begin a record. Who caused it may be a member that comes with it."""
    last = group.last_rebalance
    cause = group.members.get(event.member_id)
    begun = Rebalance(
        number=last.number + 1 if last else 1,
        reason=event.reason,
        member_id=event.member_id,
        at=record.position,
        log_time_ms=record.log_time_ms,
        wall_time_ms=record.wall_time_ms,
        rule=record.cause.rule,
        command=record.cause.command,
        principal=record.principal,
        instance_id=cause.instance_id if cause else None,
        client_id=cause.profile.client_id if cause else "",
        members=len(group.members),
        from_generation=group.generation,
        parted=last.parted if last else (),
    )
    kept = group.rebalances
    if last is not None and last.parted:
        kept = (*kept[:-1], last._replace(parted=()))
    return group._replace(rebalances=(*kept, begun)[-KEPT_MAX:])


def changed(before: Group, after: Group, event: GroupEvent) -> Group:
    """Members came or went: note who, in the rebalance that this belongs to."""
    if isinstance(event, MemberJoined):
        return _joined(after, event)
    line = line_of(event)
    how = _DEPARTURES.get(line.kind)
    gone = () if how is None else line.went(event)
    return _went(before, after, gone, how) if gone and how else after


def closed(after: Group, record: Record) -> Group:
    """The join phase is over."""
    last = after.last_rebalance
    if last is None:
        return after
    return _noted(after, last._replace(generation=after.generation, closed_ms=record.log_time_ms))


def assigned(before: Group, after: Group, record: Record) -> Group:
    """The assignment is stored: tell what moved, against the last one that was."""
    last = after.last_rebalance
    if last is None:
        return after
    done = _told(last, before, after)
    return _noted(after, done._replace(assigned_ms=record.log_time_ms, parted=()))


def _noted(group: Group, last: Rebalance) -> Group:
    """The group with this in the place of its last rebalance."""
    return group._replace(rebalances=(*group.rebalances[:-1], last))


def _joined(group: Group, event: MemberJoined) -> Group:
    last = group.last_rebalance
    if last is None:
        return group
    name = event.member_id if event.instance_id is None else event.instance_id
    noted = last._replace(came=last.came + 1, changes=_listed(last, (name,), "joined"))
    if event.member_id == last.member_id:
        noted = noted._replace(instance_id=event.instance_id, client_id=event.profile.client_id)
    return _noted(group, noted)


def _went(before: Group, after: Group, gone: Sequence[MemberId], how: str) -> Group:
    last = after.last_rebalance
    if last is None:
        return after
    members = [before.members[member_id] for member_id in gone if member_id in before.members]
    noted = last._replace(
        went=last.went + len(members),
        changes=_listed(last, [member.name for member in members[:LISTED_MAX]], how),
        parted=_parted(last.parted, members),
    )
    return _noted(after, noted)


def _listed(last: Rebalance, names: Iterable[str], how: str) -> tuple[Change, ...]:
    if len(last.changes) >= LISTED_MAX:
        return last.changes
    return (*last.changes, *(Change(name, how) for name in names))[:LISTED_MAX]


def _parted(kept: tuple[Parted, ...], members: Sequence[Member]) -> tuple[Parted, ...]:
    if len(kept) >= PARTED_MAX:
        return kept
    size = sum(len(each.assignment) for each in kept)
    found = list(kept)
    for member in members[:PARTED_MAX]:
        held = member.assignment or member.abandoned
        size += len(held)
        if size > PARTED_BYTES_MAX or len(found) >= PARTED_MAX:
            break
        if held:
            found.append(Parted(member.name, held))
    return tuple(found)


# --- what moved ---


class _Difference(NamedTuple):
    """One member's assignment before and after; empty: it had, or has, none."""

    name: str
    before: bytes
    after: bytes


def _told(last: Rebalance, before: Group, after: Group) -> Rebalance:
    """The record with what differs between the two last assignments."""
    differences = [_Difference(each.name, each.assignment, b"") for each in last.parted]
    staying = [
        _Difference(new.name, old.assignment or old.abandoned, new.assignment)
        for member_id, new in after.members.items()
        if (old := before.members[member_id]).assignment != new.assignment or old.abandoned
    ]
    staying = [each for each in staying if each.before != each.after]
    told = last._replace(
        reassigned=len(staying),
        reassigned_names=tuple(nsmallest(LISTED_MAX, (each.name for each in staying))),
    )
    differences += staying
    size = sum(len(each.before) + len(each.after) for each in differences)
    if after.protocol_type != CONSUMER or size > COMPARED_BYTES_MAX:
        return told
    owners = _owners(sorted(differences))
    return told if owners is None else _with_moves(told, *owners)


def _owners(
    differences: Iterable[_Difference],
) -> tuple[dict[TopicPartition, str], dict[TopicPartition, str]] | None:
    """Who owned each partition and who owns it now; None if some bytes cannot be read."""
    owned: dict[TopicPartition, str] = {}
    owns: dict[TopicPartition, str] = {}
    for name, old, new in differences:
        had, has = partitions(old), partitions(new)
        if had is None or has is None:
            return None
        owned.update(dict.fromkeys(had, name))
        owns.update(dict.fromkeys(has, name))
    return owned, owns


def _with_moves(
    told: Rebalance, owned: Mapping[TopicPartition, str], owns: Mapping[TopicPartition, str]
) -> Rebalance:
    known = owned.keys() | owns.keys()
    differing = [place for place in known if owned.get(place) != owns.get(place)]
    moves = (
        Move(place.topic, place.partition, owned.get(place, ""), owns.get(place, ""))
        for place in nsmallest(LISTED_MAX, differing)
    )
    given = sum(place not in owned for place in differing)
    dropped = sum(place not in owns for place in differing)
    return told._replace(
        moved=len(differing) - given - dropped,
        given=given,
        dropped=dropped,
        moves=tuple(moves),
        counted=True,
    )
