"""Builds the rebalance histories from the event log, beside the state, for people (`history`).

Nothing is decided on them. A rebalance stays small whatever the group's size and its names: of
everything listed the first few are kept, the rest is counted, long texts are cut, and assignments
are compared only up to a number of bytes, so that the largest group's rebalance does not delay the
apply. Groups of the heartbeat protocol have epochs instead (`epochs`). Total for records that
`evolve` has taken; the caller still guards against a defect here, which must stop nothing (S6).
Knows no type of group: what an event did to members is in the table of `model.membership`; who they
are and what they held, their type says.
"""

from __future__ import annotations

from heapq import nsmallest
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from holdfast.coordinator.groups.assignment_bytes import partitions
from holdfast.coordinator.groups.usage import of_texts
from holdfast.coordinator.model.consumer_events import GroupConverted
from holdfast.coordinator.model.events import (
    AssignmentStored,
    GenerationStarted,
    GroupDeleted,
    GroupEmptied,
    MemberJoined,
    RebalanceStarted,
)
from holdfast.coordinator.model.membership import line_of
from holdfast.coordinator.model.subscriptions import CONSUMER
from holdfast.coordinator.projections import epochs
from holdfast.coordinator.projections.history import (
    REASON_BYTES_MAX,
    Parted,
    Rebalance,
    cut,
    fitting,
    weight_of_parted,
)
from holdfast.coordinator.projections.stories import (
    DEPARTURES,
    LISTED_MAX,
    NAMES_BYTES_MAX,
    PARTED_BYTES_MAX,
    PARTED_MAX,
    kept,
    listed,
    with_last,
    with_moves,
)
from holdfast.coordinator.structures.transient import Transient

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.coordinator.groups.group_type import GroupType, Types
    from holdfast.coordinator.model.events import Event, Record
    from holdfast.coordinator.model.ids import GroupId, MemberId, TopicPartition
    from holdfast.coordinator.model.state import Group
    from holdfast.coordinator.projections.history import Histories, History

COMPARED_BYTES_MAX: Final = 65_536
"""Changed assignments that are compared partition by partition; of more only members count."""


def tell(
    histories: Transient[GroupId, History],
    types: Types,
    before: Group[Any] | None,
    record: Record,
    after: Group[Any] | None,
) -> None:
    """Add a record to the histories; the fold has made `after` of `before`, its group."""
    event, group_id = record.event, record.group_id
    line = line_of(event)
    if not line.kind and not line.everyone and not epochs.is_told(event):
        return
    if isinstance(event, GroupDeleted | GroupConverted):  # rebalances are of one protocol
        histories.set(group_id, None)
    elif before is not None and after is not None:
        history = histories.get(group_id) or ()
        told = noted(history, types[after.group_type], before, record, after)
        if told is not history:
            histories.set(group_id, told)


def followed(
    histories: Histories,
    types: Types,
    steps: Iterable[tuple[Group[Any] | None, Record, Group[Any] | None]],
) -> Histories:
    """Return the histories after some records, each between its group before and after it."""
    told = Transient(histories)
    for before, record, after in steps:
        tell(told, types, before, record, after)
    told.keep()
    return told.persistent()


def noted(
    history: History, kind: GroupType[Any], before: Group[Any], record: Record, after: Group[Any]
) -> History:
    """Return the history of a group of this type after one of its records."""
    if kind.has_epochs:
        return epochs.noted(history, kind, before, record, after)
    event = record.event
    if isinstance(event, RebalanceStarted):
        return opened(history, kind, before, event, record)
    if not history:
        return history
    match event:
        case GenerationStarted() | GroupEmptied():
            return changed(closed(history, after, record), kind, before, event)
        case AssignmentStored():
            return assigned(history, kind, before, record, after)
    return changed(history, kind, before, event)


def opened(
    history: History,
    kind: GroupType[Any],
    group: Group[Any],
    event: RebalanceStarted,
    record: Record,
) -> History:
    """Begin a rebalance, because a join phase opens.

    Its cause may be a member that comes with it.
    """
    last = history[-1] if history else None
    members = kind.members(group)
    found = members.get(event.member_id)
    cause = None if found is None else kind.identify(found)
    begun = Rebalance(
        number=last.number + 1 if last else 1,
        reason=cut(event.reason, REASON_BYTES_MAX),
        member_id=cut(event.member_id),
        at=record.position,
        log_time_ms=record.log_time_ms,
        wall_time_ms=record.wall_time_ms,
        rule=cut(record.cause.rule),
        command=cut(record.cause.command),
        principal=cut(record.principal),
        instance_id=cut(cause.instance_id) if cause and cause.instance_id else None,
        client_id=cut(cause.client_id) if cause else "",
        members=len(members),
        from_generation=group.generation,
        parted=fitting(last.parted, weight_of_parted, PARTED_BYTES_MAX) if last else (),
    )
    if last is not None and last.parted:
        history = with_last(history, last._replace(parted=()))
    return (*kept(history), begun)


def changed(history: History, kind: GroupType[Any], before: Group[Any], event: Event) -> History:
    """Note the members that came or went in the rebalance that the event belongs to."""
    if isinstance(event, MemberJoined):
        return _joined(history, event)
    line = line_of(event)
    how = DEPARTURES.get(line.kind)
    gone = () if how is None else line.went(event)
    return _went(history, kind, _those(kind, before, gone), how) if gone and how else history


def closed(history: History, after: Group[Any], record: Record) -> History:
    """Note that the join phase is over."""
    last = history[-1]
    over = last._replace(generation=after.generation, closed_ms=record.log_time_ms)
    return with_last(history, over)


def assigned(
    history: History, kind: GroupType[Any], before: Group[Any], record: Record, after: Group[Any]
) -> History:
    """Note what a stored assignment moved, compared with the last one."""
    done = _told(history[-1], kind, before, after)
    return with_last(history, done._replace(assigned_ms=record.log_time_ms))


def _joined(history: History, event: MemberJoined) -> History:
    last = history[-1]
    name = event.member_id if event.instance_id is None else event.instance_id
    joined = last._replace(came=last.came + 1, changes=listed(last, (name,), "joined"))
    if cut(event.member_id) == last.member_id:
        client_id = cut(event.profile.client_id)
        joined = joined._replace(instance_id=event.instance_id, client_id=client_id)
    return with_last(history, joined)


def _those(kind: GroupType[Any], group: Group[Any], member_ids: Iterable[MemberId]) -> list[Any]:
    """Return the members with these ids; ids of no members are skipped."""
    members = kind.members(group)
    return [members[member_id] for member_id in member_ids if member_id in members]


def _went(history: History, kind: GroupType[Any], members: Sequence[Any], how: str) -> History:
    last = history[-1]
    names = [kind.identify(member).name for member in members[:LISTED_MAX]]
    went = last._replace(
        went=last.went + len(members),
        changes=listed(last, names, how),
        parted=_parted(last.parted, kind, members),
    )
    return with_last(history, went)


def _parted(
    known: tuple[Parted, ...], kind: GroupType[Any], members: Sequence[Any]
) -> tuple[Parted, ...]:
    if len(known) >= PARTED_MAX:
        return known
    gone = [
        Parted(cut(kind.identify(member).name), held)
        for member in members[:PARTED_MAX]
        if (held := kind.held(member))
    ]
    return fitting(islice(chain(known, gone), PARTED_MAX), weight_of_parted, PARTED_BYTES_MAX)


# --- what moved ---


class _Difference(NamedTuple):
    """One member's assignment before and after; empty: it had, or has, none."""

    name: str
    before: bytes
    after: bytes


def _told(
    last: Rebalance, kind: GroupType[Any], before: Group[Any], after: Group[Any]
) -> Rebalance:
    """Return the rebalance with the differences between the two last assignments."""
    differences = [_Difference(each.name, each.assignment, b"") for each in last.parted]
    was = kind.members(before)
    staying = [
        _Difference(kind.identify(new).name, had, has)
        for member_id, new in kind.members(after).items()
        if (had := kind.held(was.get(member_id, new))) != (has := kind.held(new))
    ]
    names = map(cut, nsmallest(LISTED_MAX, (each.name for each in staying)))
    told = last._replace(
        reassigned=len(staying),
        reassigned_names=fitting(names, lambda name: of_texts((name,)), NAMES_BYTES_MAX),
        parted=(),
    )
    differences += staying
    size = sum(len(each.before) + len(each.after) for each in differences)
    if kind.describe(after).protocol_type != CONSUMER or size > COMPARED_BYTES_MAX:
        return told
    owners = _owners(sorted(differences))
    return told if owners is None else with_moves(told, *owners)


def _owners(
    differences: Iterable[_Difference],
) -> tuple[dict[TopicPartition, str], dict[TopicPartition, str]] | None:
    """Return the old and the new owner of each partition; None if some bytes cannot be read."""
    owned: dict[TopicPartition, str] = {}
    owns: dict[TopicPartition, str] = {}
    for name, old, new in differences:
        had, has = partitions(old), partitions(new)
        if had is None or has is None:
            return None
        owned.update(dict.fromkeys(had, name))
        owns.update(dict.fromkeys(has, name))
    return owned, owns
